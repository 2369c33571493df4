"""What becomes of a task after its handler: pure decisions from the claimed row, the retry policy and the result."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from sa_taskqueue import codec
from sa_taskqueue.retry import exponential
from sa_taskqueue.runtime import errors
from sa_taskqueue.states import Cancel, Complete, Fail, Outcome, Retry, Snooze, Status, delay_seconds
from sa_taskqueue.store import Settlement

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sa_taskqueue.queue import TaskDefinition
    from sa_taskqueue.store import Claimed
    from sa_taskqueue.worker.held import HeldTask, Unit

logger = logging.getLogger("sa_taskqueue.worker")

DEFAULT_POLICY = exponential()

Entry = dict[str, Any]
"""One error as `errors.record` makes it."""


class HandlerTimeout(TimeoutError):
    """The handler ran longer than its timeout."""


class Outcomes:
    """Decides with the retention of one queue: a status kept for no time is deleted instead of written."""

    def __init__(self, retention: Mapping[Status, timedelta]) -> None:
        self._deleted = frozenset(status for status, kept in retention.items() if not kept)

    def returned(self, claimed: Claimed, definition: TaskDefinition[..., Any], value: object) -> Settlement:
        """The handler returned a value or an outcome."""
        if isinstance(value, Outcome):
            return self.chosen(claimed, definition, value)
        if value is None or not definition.store_result:
            return self._ended(claimed, Status.COMPLETED)
        try:
            return self._ended(claimed, Status.COMPLETED, result=codec.encode(value, what="result"))
        except Exception as error:  # noqa: BLE001  a result may be any object, with any bug in it
            entry = errors.record("result_error", error, claimed.attempt)
            # The work is done; running it again would not make its result serialisable.
            return self._ended(claimed, Status.COMPLETED, error=errors.dump(entry))

    def raised(
        self, claimed: Claimed, definition: TaskDefinition[..., Any], error: BaseException, *, together: bool = False
    ) -> Settlement:
        """The handler raised an exception or an outcome, or ran out of time.

        An exception out of a batch says nothing about any one of the tasks that ran ``together``: none of them fails
        by it, and each runs alone from then on.
        """
        if isinstance(error, Outcome):
            return self.chosen(claimed, definition, error)
        code = "timeout" if isinstance(error, HandlerTimeout) else "error"
        entry = errors.record(code, error, claimed.attempt)
        if together:
            return self._again(claimed, _delay(claimed, definition, error) or 0.0, entry)
        return self._by_policy(claimed, definition, error, entry)

    def all_raised(self, unit: Unit, error: BaseException) -> list[tuple[HeldTask, Settlement]]:
        """The same for whatever one call of the handler was running."""
        members = unit.members
        together, definition = len(members) > 1, unit.handler
        return [(task, self.raised(task.claimed, definition, error, together=together)) for task in members]

    def undecodable(self, claimed: Claimed, error: BaseException) -> Settlement:
        """The body does not fit the handler: no attempt would."""
        return self._failed(claimed, errors.record("undecodable", error, claimed.attempt))

    def chosen(self, claimed: Claimed, definition: TaskDefinition[..., Any], outcome: Outcome) -> Settlement:
        """The handler said itself what is to happen."""
        match outcome:
            case Complete():
                return self.returned(claimed, definition, outcome.result)
            case Snooze():
                return self._again(claimed, outcome.after, count_attempt=False)
            case Retry():
                return self._retried(claimed, definition, outcome)
            case Cancel():
                entry = errors.record("cancelled", None, claimed.attempt, message=outcome.reason)
                return self._ended(claimed, Status.CANCELLED, error=errors.dump(entry))
            case Fail():
                return self._failed(claimed, errors.record("failed", outcome, claimed.attempt, message=outcome.reason))
            case _:
                entry = errors.record("error", outcome, claimed.attempt)
                return self._by_policy(claimed, definition, outcome, entry)

    def _retried(self, claimed: Claimed, definition: TaskDefinition[..., Any], outcome: Retry) -> Settlement:
        entry = errors.record("retry", outcome, claimed.attempt, message=outcome.reason)
        if outcome.after is None:
            return self._by_policy(claimed, definition, outcome, entry)
        if claimed.attempt >= claimed.max_attempts:
            return self._failed(claimed, entry)
        return self._again(claimed, outcome.after, entry)

    def _by_policy(
        self, claimed: Claimed, definition: TaskDefinition[..., Any], error: BaseException, entry: Entry
    ) -> Settlement:
        delay = _delay(claimed, definition, error)
        return self._failed(claimed, entry) if delay is None else self._again(claimed, delay, entry)

    def _again(
        self, claimed: Claimed, delay: float, entry: Entry | None = None, *, count_attempt: bool = True
    ) -> Settlement:
        error = history = None
        if entry is not None:
            error, history = errors.dump(entry), errors.extend(claimed.errors, entry)
            _log(claimed, entry, f"retry in {delay:.1f} s")
        return Settlement(
            claimed.id,
            claimed.epoch,
            Status.SCHEDULED,
            delay=delay,
            error=error,
            errors=history,
            count_attempt=count_attempt,
        )

    def _failed(self, claimed: Claimed, entry: Entry) -> Settlement:
        _log(claimed, entry, "FAILED")
        return self._ended(
            claimed, Status.FAILED, error=errors.dump(entry), history=errors.extend(claimed.errors, entry)
        )

    def _ended(
        self,
        claimed: Claimed,
        status: Status,
        *,
        result: str | None = None,
        error: str | None = None,
        history: str | None = None,
    ) -> Settlement:
        return Settlement(
            claimed.id,
            claimed.epoch,
            status,
            result=result,
            error=error,
            errors=history,
            delete=status in self._deleted,
        )


def keeps_work(settlement: Settlement) -> bool:
    """Whether the handler's work is committed: completed, cancelled and snoozed it is; failed and retried it is not."""
    if settlement.status is Status.SCHEDULED:
        return not settlement.count_attempt
    return settlement.status is not Status.FAILED


def _log(claimed: Claimed, entry: Entry, next_step: str) -> None:
    """Neither message nor traceback, which may quote arguments: the row has them."""
    kind = entry["type"] or entry["code"]
    logger.warning("task %s (%s), attempt %d: %s; %s", claimed.id, claimed.name, claimed.attempt, kind, next_step)


def _delay(claimed: Claimed, definition: TaskDefinition[..., Any], error: BaseException) -> float | None:
    """What the policy says, as a number that can be stored; a policy of the user's own may have any bug in it."""
    if claimed.attempt >= claimed.max_attempts:
        return None
    try:
        delay = definition.retry.delay(claimed.attempt, error, claimed.max_attempts)
        return None if delay is None else delay_seconds(delay)
    except Exception:
        logger.exception("the retry policy of %s failed; the default one decides", claimed.name)
        return DEFAULT_POLICY.delay(claimed.attempt, error, claimed.max_attempts)
