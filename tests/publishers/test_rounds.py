"""Order within a key, over a sender that takes each message on its own."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from sa_taskqueue.publishers import Failed, HeldBack, Message, Outcome, Refused, Sent
from sa_taskqueue.publishers.rounds import Together, all_at_once, in_rounds, one_by_one, same_topic
from tests.publishers.messages import message


class Sender:
    """Confirms all but the messages at some places."""

    def __init__(self, *wrong: Message, outcome: Outcome = Failed("later")) -> None:  # noqa: B008 - frozen
        self.rounds: list[list[Message]] = []
        self._wrong = [each.id for each in wrong]
        self._outcome = outcome

    async def __call__(self, messages: Sequence[Message]) -> Sequence[Outcome]:
        self.rounds.append(list(messages))
        return [self._outcome if each.id in self._wrong else Sent() for each in messages]


def of(key: str | None, seq: int | None = None, topic: str = "t") -> Message:
    return message(topic, key=key, seq=seq)


async def test_the_first_of_each_key_goes_with_all_that_has_no_order() -> None:
    batch = [of("a", 1), of(None), of("a", 2), of("b", 1), of("c"), of("c")]
    sender = Sender()
    assert await in_rounds(batch, sender) == [Sent()] * 6
    assert sender.rounds == [[batch[0], batch[1], batch[3], batch[4], batch[5]], [batch[2]]]


async def test_what_is_not_confirmed_holds_back_the_rest_of_its_key_alone() -> None:
    batch = [of("a", 1), of("b", 1), of("a", 2), of("b", 2), of("a", 3)]
    for outcome in (Failed("later"), Refused("never")):
        sender = Sender(batch[0], outcome=outcome)
        assert await in_rounds(batch, sender) == [outcome, Sent(), HeldBack(), Sent(), HeldBack()]
        assert sender.rounds == [[batch[0], batch[1]], [batch[3]]]


async def test_a_round_takes_several_of_a_key_where_the_client_keeps_the_order() -> None:
    batch = [of("a", 1, "t"), of("a", 2, "t"), of("a", 3, "other"), of("a", 4, "other"), of("a", 5, "t")]
    sender = Sender()
    assert await in_rounds(batch, sender, together=same_topic) == [Sent()] * 5
    assert sender.rounds == [batch[:2], batch[2:4], batch[4:]]


async def test_what_was_taken_behind_a_gap_counts_as_held_back() -> None:
    batch = [of("a", 1), of("a", 2), of("a", 3), of("b", 1)]
    sender = Sender(batch[1])
    assert await in_rounds(batch, sender, together=same_topic) == [Sent(), Failed("later"), HeldBack(), Sent()]


async def test_nothing_to_send_needs_no_round() -> None:
    sender = Sender()
    assert await in_rounds([], sender) == []
    assert not sender.rounds


@given(
    keys=st.lists(st.tuples(st.sampled_from([None, "a", "b", "c"]), st.sampled_from(["t", "u"])), max_size=30),
    wrong=st.sets(st.integers(0, 29)),
    together=st.sampled_from([one_by_one, same_topic, all_at_once]),
)
async def test_each_key_is_sent_as_an_unbroken_prefix_in_order(
    keys: list[tuple[str | None, str]], wrong: set[int], together: Together
) -> None:
    batch = [of(key, place if key else None, topic) for place, (key, topic) in enumerate(keys)]
    sender = Sender(*(batch[place] for place in wrong if place < len(batch)))
    outcomes = await in_rounds(batch, sender, together=together)
    went = [each.id for round_ in sender.rounds for each in round_]
    assert len(went) == len(set(went))
    for key in ("a", "b", "c"):
        of_key = [(each, outcome) for each, outcome in zip(batch, outcomes, strict=True) if each.key == key]
        kinds = [type(outcome) for _, outcome in of_key]
        rest = len(kinds) - kinds.index(Failed) if Failed in kinds else 0
        assert kinds == [Sent] * (len(kinds) - rest) + [Failed, *[HeldBack] * (rest - 1)][:rest]
        order = [went.index(each.id) for each, _ in of_key if each.id in went]
        assert order == sorted(order)
