"""The flow of the messages that no key orders."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import Connection

from sa_taskqueue import telemetry
from sa_taskqueue.relay.judging import end_unordered, message_of
from sa_taskqueue.relay.shares import Share
from sa_taskqueue.runtime.faults import point
from sa_taskqueue.states import MessageStatus
from sa_taskqueue.store.outbox import Batch, UnorderedMessages
from sa_taskqueue.store.outgoing import Ending, Outgoing
from sa_taskqueue.store.rows import Pair

if TYPE_CHECKING:
    from sa_taskqueue.relay.parts import Tools
    from sa_taskqueue.relay.target import Target


class RowShare(Share):
    """Messages for one broker."""

    def __init__(self, target: Target | None, messages: list[Outgoing], deadline: float) -> None:
        super().__init__(target, {each.id: each.epoch for each in messages}, deadline)
        self.messages = messages


class UnorderedFlow:
    """`unnumbered` is called when rows were seen that a key orders and that have no number yet."""

    name = "outbox"

    def __init__(self, tools: Tools, store: UnorderedMessages, unnumbered: Callable[[], None]) -> None:
        self._tools, self._store, self._unnumbered = tools, store, unnumbered

    async def claim(self) -> tuple[Sequence[RowShare], bool]:
        tools = self._tools
        sent_at, batch = await tools.claims.run(self._claim)
        if batch.unnumbered:
            self._unnumbered()
        if not batch.messages:
            return (), batch.full
        point("relay.claim.after_commit")
        tools.counts.claimed += len(batch.messages)
        by_target: dict[Target | None, list[Outgoing]] = {}
        for message in batch.messages:
            by_target.setdefault(tools.routes.target(message.topic), []).append(message)
        shares = [RowShare(target, some, tools.keeper.until(sent_at)) for target, some in by_target.items()]
        for share in shares:
            tools.keeper.hold(share, self._renew)
        return shares, batch.full

    async def deliver(self, share: RowShare) -> None:
        tools, target = self._tools, share.target
        try:
            if target is None or not share.trusted:
                tools.counts.lost += share.size
                return
            started = time.monotonic()
            source = tools.queue.source
            outcomes = await target.send([message_of(each, source, each.epoch) for each in share.messages])
            if outcomes is None:
                await self.put_off(share, target.wait if tools.several else 0.0)
                return
            pairs = zip(share.messages, outcomes, strict=True)
            endings = [end_unordered(message, outcome, tools.settings.retry) for message, outcome in pairs]
            changed = await tools.marks.run_repeatable(self._end, endings)
            point("relay.mark.after_commit")
            tools.counts.lost += len(endings) - len(changed)
            tools.count([each for each in endings if each.id in changed], None)
            if telemetry.listening():
                seconds = time.monotonic() - started
                telemetry.emit(telemetry.MessagesRelayed(target.name, len(changed), seconds))
        finally:
            tools.keeper.let_go(share)

    async def put_off(self, share: RowShare, delay: float) -> None:
        status = MessageStatus.SCHEDULED if delay else MessageStatus.NEW
        endings = [Ending(each, epoch, status, delay, count_attempt=False) for each, epoch in share.epochs.items()]
        try:
            self._tools.counts.put_off += len(await self._tools.marks.run_repeatable(self._end, endings))
        finally:
            self._tools.keeper.let_go(share)

    def _claim(self, connection: Connection) -> tuple[float, Batch]:
        settings, sent_at = self._tools.settings, time.monotonic()
        batch = self._store.claim(connection, settings.batch, lease=settings.lease, by=settings.name)
        if batch.messages:
            point("relay.claim.before_commit")
        return sent_at, batch

    def _end(self, connection: Connection, endings: Sequence[Ending]) -> set[UUID]:
        changed = self._store.end(connection, endings, keep=self._tools.keeps_sent)
        point("relay.mark.before_commit")
        return changed

    def _renew(self, connection: Connection, held: Sequence[Pair]) -> set[UUID]:
        return self._store.renew(connection, held, lease=self._tools.settings.lease)
