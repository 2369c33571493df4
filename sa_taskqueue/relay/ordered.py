"""The flow of the messages of keys: a key is leased, its messages leave in order, many keys in one call."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import Connection

from sa_taskqueue import telemetry
from sa_taskqueue.publishers.base import Outcome, Refused, Sent
from sa_taskqueue.relay.judging import KeyVerdict, bury, end_key, message_of, tombstone_of, try_again
from sa_taskqueue.relay.shares import Share
from sa_taskqueue.runtime.faults import point
from sa_taskqueue.states import KeyStatus, MessageStatus
from sa_taskqueue.store.outbox_keys import KeyBatch, OrderedMessages
from sa_taskqueue.store.outgoing import Advance, Ending
from sa_taskqueue.store.rows import Pair

if TYPE_CHECKING:
    from sa_taskqueue.publishers.base import Message
    from sa_taskqueue.relay.parts import Tools
    from sa_taskqueue.relay.target import Target

TOMBSTONE_DELAY = 5.0
"""Seconds until a tombstone is tried again."""

FEWEST = 5
"""A claim takes at least a fifth of the batch as keys: the wider it is, the fewer rounds a broker needs that takes only
one unconfirmed message of a key; the narrower, the fewer rows of keys are written."""


class KeyShare(Share):
    """Keys whose next messages go to one broker."""

    def __init__(self, target: Target | None, batches: list[KeyBatch], deadline: float) -> None:
        super().__init__(target, {each.key.id: each.key.epoch for each in batches}, deadline)
        self.batches = batches
        self.size = sum(len(each.messages) for each in batches)


class OrderedFlow:
    """`again` is called when a key has more to send than was read."""

    name = "keys of the outbox"

    def __init__(self, tools: Tools, store: OrderedMessages, again: Callable[[], None]) -> None:
        self._tools, self._store, self._again = tools, store, again
        self._least = max(1, tools.settings.batch // FEWEST)
        self._wanted = self._least

    async def claim(self) -> tuple[Sequence[KeyShare], bool]:
        tools, wanted = self._tools, self._wanted
        sent_at, batches = await tools.claims_keys.run(self._claim, wanted)
        if not batches:
            return (), False
        point("relay.claim_keys.after_commit")
        tools.counts.claimed += sum(len(each.messages) for each in batches)
        waiting = sum(each.key.next_seq - 1 - each.key.sent_seq for each in batches)
        per_key = max(1.0, waiting / len(batches))
        self._wanted = max(self._least, min(tools.settings.batch, int(tools.settings.batch / per_key)))
        by_target: dict[Target | None, list[KeyBatch]] = {}
        for batch in batches:
            target, part = self._to_one_broker(batch)
            by_target.setdefault(target, []).append(part)
        shares = [KeyShare(target, some, tools.keeper.until(sent_at)) for target, some in by_target.items()]
        for share in shares:
            tools.keeper.hold(share, self._renew)
        return shares, len(batches) == wanted

    async def deliver(self, share: KeyShare) -> None:
        tools, target = self._tools, share.target
        try:
            if target is None or not share.trusted:
                tools.counts.lost += share.size
                return
            started = time.monotonic()
            outcomes = await self._send(target, share)
            if outcomes is None:
                await self.put_off(share, target.wait if tools.several else 0.0)
                return
            verdicts = await self._judged(target, share, outcomes)
            moved = await self._advance(verdicts)
            self._count(share, verdicts, moved)
            if telemetry.listening():
                sent = sum(one.status is MessageStatus.SENT for each in verdicts for one in each.endings)
                telemetry.emit(telemetry.MessagesRelayed(target.name, sent, time.monotonic() - started))
        finally:
            tools.keeper.let_go(share)

    async def put_off(self, share: KeyShare, delay: float) -> None:
        steps = [Advance(each.key.id, each.key.epoch, 0, delay=delay, fails=each.key.fails) for each in share.batches]
        try:
            await self._tools.marks.run_repeatable(self._move, steps, {})
            self._tools.counts.put_off += share.size
        finally:
            self._tools.keeper.let_go(share)

    async def _send(self, target: Target, share: KeyShare) -> Sequence[Sequence[Outcome]] | None:
        """The outcomes of each key's messages."""
        messages = [
            message_of(each, self._tools.queue.source, batch.key.epoch)
            for batch in share.batches
            for each in batch.messages
        ]
        if not messages:
            return [()] * len(share.batches)
        outcomes = await target.send(messages)
        if outcomes is None:
            return None
        following = iter(outcomes)
        return [[next(following) for _ in batch.messages] for batch in share.batches]

    async def _judged(self, target: Target, share: KeyShare, outcomes: Sequence[Sequence[Outcome]]) -> list[KeyVerdict]:
        verdicts = [
            end_key(batch, some, self._tools.settings.retry)
            for batch, some in zip(share.batches, outcomes, strict=True)
        ]
        if self._tools.settings.after_limit == "dead_letter":
            for at, verdict in enumerate(verdicts):
                if verdict.given_up is not None:
                    verdicts[at] = await self._buried(target, share.batches[at], verdict)
        return verdicts

    async def _buried(self, target: Target, batch: KeyBatch, verdict: KeyVerdict) -> KeyVerdict:
        if verdict.given_up is None:
            return verdict
        message: Message = message_of(verdict.given_up, self._tools.queue.source, batch.key.epoch)
        outcomes = await target.send([tombstone_of(message)])
        # Nobody waits for a number on a topic that takes nothing at all.
        if outcomes is not None and isinstance(outcomes[0], Sent | Refused):
            return bury(verdict)
        return try_again(verdict, TOMBSTONE_DELAY)

    async def _advance(self, verdicts: Sequence[KeyVerdict]) -> set[UUID]:
        endings = {each.step.id: each.endings for each in verdicts}
        moved = await self._tools.marks.run_repeatable(self._move, [each.step for each in verdicts], endings)
        point("relay.mark_keys.after_commit")
        return moved

    def _claim(self, connection: Connection, wanted: int) -> tuple[float, list[KeyBatch]]:
        settings, sent_at = self._tools.settings, time.monotonic()
        batches = self._store.claim(connection, wanted, settings.batch, lease=settings.lease, by=settings.name)
        if batches:
            point("relay.claim_keys.before_commit")
        return sent_at, batches

    def _move(
        self, connection: Connection, steps: Sequence[Advance], endings: Mapping[UUID, Sequence[Ending]]
    ) -> set[UUID]:
        moved = self._store.advance(connection, steps, endings, keep=self._tools.keeps_sent)
        point("relay.mark_keys.before_commit")
        return moved

    def _renew(self, connection: Connection, held: Sequence[Pair]) -> set[UUID]:
        return self._store.renew(connection, held, lease=self._tools.settings.lease)

    def _to_one_broker(self, batch: KeyBatch) -> tuple[Target | None, KeyBatch]:
        """The beginning of a key's messages that goes to one broker: the next may only leave when this has arrived."""
        if not batch.messages:
            return self._tools.routes.targets[0], batch
        route = self._tools.routes.target
        first = route(batch.messages[0].topic)
        for at, message in enumerate(batch.messages):
            if route(message.topic) is not first:
                return first, KeyBatch(batch.key, batch.messages[:at], (message.seq or 1) - 1)
        return first, batch

    def _count(self, share: KeyShare, verdicts: Sequence[KeyVerdict], moved: set[UUID]) -> None:
        counts = self._tools.counts
        for batch, verdict in zip(share.batches, verdicts, strict=True):
            step = verdict.step
            if step.id not in moved:
                counts.lost += len(batch.messages)
                continue
            left = batch.key.next_seq - 1 - batch.key.sent_seq - step.settled
            if left and step.status is KeyStatus.READY and not step.delay:
                self._again()
            self._tools.count(verdict.endings, batch.messages[0].key if batch.messages else None)
