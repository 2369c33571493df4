"""What follows from what a publisher answered: pure decisions, tested without a broker."""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Sequence
from typing import NamedTuple

from sa_taskqueue.publishers.base import Failed, HeldBack, Message, Outcome, Refused, Sent
from sa_taskqueue.retry import RetryPolicy
from sa_taskqueue.runtime import errors
from sa_taskqueue.states import KeyStatus, MessageStatus
from sa_taskqueue.store.outbox_keys import KeyBatch
from sa_taskqueue.store.outgoing import Advance, Ending, Outgoing

logger = logging.getLogger("sa_taskqueue.relay")

LONGEST_DELAY = 86_400.0
"""Seconds, a day: a receiver may ask for any time with Retry-After, also for one that no database can add."""

TOMBSTONE = "sa-taskqueue-tombstone"
"""Header of the message that stands for one that was given up: same key and number, no content, an id of its own."""


class Verdict(NamedTuple):
    """What becomes of a message that was not sent: another try after `delay` seconds, or none (None)."""

    delay: float | None
    error: str


class KeyVerdict(NamedTuple):
    """How a key goes on, and its messages; `given_up` is the one that no try is left for, if there is one."""

    step: Advance
    endings: list[Ending]
    given_up: Outgoing | None = None


def message_of(outgoing: Outgoing, source: str, epoch: int) -> Message:
    """The message as a publisher takes it; `epoch` is that of its row, or of its key where one orders it."""
    return Message(
        id=outgoing.id,
        topic=outgoing.topic,
        payload=outgoing.payload.encode(),
        time=outgoing.created_at,
        source=source,
        type=outgoing.type,
        key=outgoing.key,
        seq=outgoing.seq,
        epoch=epoch,
        headers=_headers(outgoing),
    )


def tombstone_of(message: Message) -> Message:
    """The message that takes the place of one that was given up, which may still be sent under its own id later."""
    return Message(
        id=uuid.uuid5(message.id, "tombstone"),
        topic=message.topic,
        payload=b"null",
        time=message.time,
        source=message.source,
        type=message.type,
        key=message.key,
        seq=message.seq,
        epoch=message.epoch,
        headers={TOMBSTONE: "true"},
    )


def judge(outcome: Outcome, attempt: int, retry: RetryPolicy) -> Verdict | None:
    """None for a message that was sent; `attempt` counts from 1."""
    match outcome:
        case Sent():
            return None
        case Refused(reason):
            return Verdict(None, _record("refused", attempt, reason))
        case HeldBack():
            return Verdict(0.0, _record("held_back", attempt, "an earlier message of its key was not confirmed"))
        case Failed(reason, retry_after):
            delay = retry.delay(attempt, RuntimeError(reason))
            if delay is not None:
                delay = min(max(delay, retry_after or 0.0), LONGEST_DELAY)
            return Verdict(delay, _record("not_confirmed", attempt, reason))


def end_unordered(outgoing: Outgoing, outcome: Outcome, retry: RetryPolicy) -> Ending:
    """How a message without an order goes on."""
    verdict = judge(outcome, outgoing.attempt, retry)
    if verdict is None:
        return Ending(outgoing.id, outgoing.epoch, MessageStatus.SENT)
    if verdict.delay is None:
        return Ending(outgoing.id, outgoing.epoch, MessageStatus.FAILED, error=verdict.error)
    return Ending(outgoing.id, outgoing.epoch, MessageStatus.SCHEDULED, verdict.delay, verdict.error)


def end_key(batch: KeyBatch, outcomes: Sequence[Outcome], retry: RetryPolicy) -> KeyVerdict:
    """How a key goes on: what was confirmed from its beginning on is behind it, the first that was not stops it.

    What the broker took behind a gap goes out once more, in its order.
    """
    key = batch.key
    done = next((at for at, each in enumerate(outcomes) if not isinstance(each, Sent)), len(outcomes))
    endings = [Ending(each.id, each.epoch, MessageStatus.SENT) for each in batch.messages[:done]]
    if done == len(batch.messages):
        return KeyVerdict(Advance(key.id, key.epoch, batch.read_to - key.sent_seq), endings)
    head = batch.messages[done]
    settled = (head.seq or 0) - 1 - key.sent_seq
    if isinstance(outcomes[done], HeldBack):
        return KeyVerdict(Advance(key.id, key.epoch, settled, fails=key.fails, delay=0.1), endings)
    fails = key.fails + 1 if done == 0 else 1
    verdict = judge(outcomes[done], fails, retry)
    if verdict is None:
        raise AssertionError("a message that was sent stops no key")
    if verdict.delay is not None:
        step = Advance(key.id, key.epoch, settled, delay=verdict.delay, fails=fails, error=verdict.error)
        again = Ending(head.id, head.epoch, MessageStatus.QUEUED, error=verdict.error)
        return KeyVerdict(step, [*endings, again])
    step = Advance(key.id, key.epoch, settled, KeyStatus.BLOCKED, fails=fails, error=verdict.error)
    blocked = Ending(head.id, head.epoch, MessageStatus.BLOCKED, error=verdict.error)
    return KeyVerdict(step, [*endings, blocked], head)


def bury(verdict: KeyVerdict) -> KeyVerdict:
    """The same with the message FAILED, and the key free to go on behind it."""
    *endings, blocked = verdict.endings
    step = verdict.step
    return KeyVerdict(
        Advance(step.id, step.epoch, step.settled + 1), [*endings, blocked._replace(status=MessageStatus.FAILED)]
    )


def try_again(verdict: KeyVerdict, delay: float) -> KeyVerdict:
    """The same with another try: not even the tombstone could be sent."""
    *endings, _ = verdict.endings
    return KeyVerdict(verdict.step._replace(status=KeyStatus.READY, delay=delay), endings)


def _record(code: str, attempt: int, reason: str) -> str:
    return errors.dump(errors.record(code, None, attempt, message=reason))


def _headers(outgoing: Outgoing) -> dict[str, str]:
    """Those of the row; what another program wrote there and is no object of texts does not hold the message up."""
    if not outgoing.headers:
        return {}
    try:
        found = json.loads(outgoing.headers)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        logger.warning("message %s has headers that are no JSON object; it is sent without them", outgoing.id)
        return {}
    return {name: value if isinstance(value, str) else json.dumps(value) for name, value in found.items()}
