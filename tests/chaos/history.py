"""The history checker: reads what happened to every task and names each promise that was broken.

It works in linear time because tasks have unique ids and rising epochs: one pass over the events, one small record
per task. Events come from two sources. The database's own journal (``journal.py``) tells what was *committed*; the
processes' files tell what was *tried* (an enqueue with its outcome, a finish that was refused).

====================  ==========================================================================================
rule                  what it says
====================  ==========================================================================================
``lost``              a task whose enqueue was acknowledged ends in exactly one terminal state
``finished_twice``    no task ends twice
``phantom``           nothing is stored, claimed or finished that nobody enqueued, or whose enqueue was rolled back
``epoch``             the epochs of successive claims rise
``stale_finish``      an accepted finish carries the epoch of the holder of that moment
``two_holders``       the lease intervals of one task never overlap (database clock)
``effect``            a completed task has exactly one effect, written under the completing epoch; others have none
``attempts``          a task is claimed at most ``max_attempts`` plus ``max_crashes`` times
``unique``            two live tasks never hold one unique key
====================  ==========================================================================================
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum

TERMINAL = frozenset({"COMPLETED", "FAILED", "CANCELLED"})


class Kind(StrEnum):
    """What an event tells."""

    ENQUEUE = "enqueue"
    """A producer's unit of work ended with ``outcome`` ok, fail or unknown."""
    STORED = "stored"
    """The row appeared in the table."""
    CLAIM = "claim"
    """The row was reserved under ``epoch`` from ``at`` to ``until`` (seconds, database clock)."""
    RENEW = "renew"
    """The lease of ``epoch`` now ends at ``until``."""
    PUT_BACK = "put_back"
    """The row left its holder unfinished; ``crashed`` tells a take-over from a retry or a release."""
    FINISH = "finish"
    """A finish with ``status`` was tried under ``epoch``; ``accepted`` tells whether it changed the row."""
    EFFECT = "effect"
    """The handler's own row was committed; ``epoch`` is the one its handler held."""


@dataclass(frozen=True, slots=True)
class Event:
    """One line of the history; unused fields keep their defaults."""

    kind: Kind
    task: str
    epoch: int = 0
    at: float = 0.0
    until: float = 0.0
    status: str = ""
    outcome: str = "ok"
    accepted: bool = True
    crashed: bool = False
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken promise: the rule's name, the task, and what was seen."""

    rule: str
    task: str
    seen: str


@dataclass(slots=True)
class Report:
    """What the checker found. ``counts``: events of each kind, ends of each status, ``refused`` and ``crashed``."""

    violations: list[Violation]
    counts: Counter[str]

    @property
    def broken_rules(self) -> set[str]:
        return {violation.rule for violation in self.violations}


@dataclass(slots=True)
class _Trail:
    """What is known of one task so far."""

    outcomes: list[str] = field(default_factory=list)
    stored: bool = False
    epoch: int = -1
    held: bool = False
    until: float = 0.0
    claims: int = 0
    ends: list[tuple[str, int]] = field(default_factory=list)
    effects: list[int] = field(default_factory=list)
    key: str | None = None


class Checker:
    """Takes events one by one, in the order of the database's journal for each task, and reports at the end."""

    def __init__(self, *, max_attempts: int, max_crashes: int) -> None:
        self._claims_allowed = max_attempts + max_crashes
        self._trails: dict[str, _Trail] = {}
        self._live_keys: dict[str, str] = {}
        self._violations: list[Violation] = []
        self._counts: Counter[str] = Counter()

    def feed(self, event: Event) -> None:
        """Take the next event."""
        self._counts[event.kind] += 1
        trail = self._trails.setdefault(event.task, _Trail())
        match event.kind:
            case Kind.ENQUEUE:
                trail.outcomes.append(event.outcome)
            case Kind.STORED:
                self._stored(event, trail)
            case Kind.CLAIM:
                self._claim(event, trail)
            case Kind.RENEW:
                trail.until = max(trail.until, event.until)
            case Kind.PUT_BACK:
                self._put_back(event, trail)
            case Kind.FINISH:
                self._finish(event, trail)
            case Kind.EFFECT:
                trail.effects.append(event.epoch)

    def report(self) -> Report:
        """Judge what can be judged only when everything is over."""
        for task, trail in self._trails.items():
            self._judge_enqueue(task, trail)
            self._judge_effects(task, trail)
            if trail.claims > self._claims_allowed:
                self._broken("attempts", task, f"claimed {trail.claims} times, {self._claims_allowed} allowed")
        return Report(self._violations, self._counts)

    def _broken(self, rule: str, task: str, seen: str) -> None:
        self._violations.append(Violation(rule, task, seen))

    def _stored(self, event: Event, trail: _Trail) -> None:
        trail.stored = True
        if event.key is None:
            return
        holder = self._live_keys.setdefault(event.key, event.task)
        if holder != event.task:
            self._broken("unique", event.task, f"key {event.key!r} is still held by {holder}")
        trail.key = event.key

    def _claim(self, event: Event, trail: _Trail) -> None:
        if event.epoch <= trail.epoch:
            self._broken("epoch", event.task, f"claimed under {event.epoch} after {trail.epoch}")
        if trail.held and event.at < trail.until:
            self._broken("two_holders", event.task, f"claimed {trail.until - event.at:.3f} s before the lease ended")
        if trail.ends:
            self._broken("finished_twice", event.task, f"claimed again after {trail.ends[-1][0]}")
        trail.epoch, trail.until, trail.held = event.epoch, event.until, True
        trail.claims += 1

    def _put_back(self, event: Event, trail: _Trail) -> None:
        if not event.accepted:
            self._counts["refused"] += 1
            return
        self._check_holder(event, trail)
        if event.crashed:
            self._counts["crashed"] += 1
            if event.at < trail.until:
                self._broken("two_holders", event.task, f"taken over {trail.until - event.at:.3f} s before the end")
        trail.held = False

    def _finish(self, event: Event, trail: _Trail) -> None:
        if not event.accepted:
            self._counts["refused"] += 1
            return
        self._check_holder(event, trail)
        trail.held = False
        trail.ends.append((event.status, event.epoch))
        self._counts[event.status.lower()] += 1
        if trail.key is not None and self._live_keys.get(trail.key) == event.task:
            del self._live_keys[trail.key]

    def _check_holder(self, event: Event, trail: _Trail) -> None:
        if event.epoch != trail.epoch:
            self._broken("stale_finish", event.task, f"accepted under {event.epoch}, the holder has {trail.epoch}")

    def _judge_enqueue(self, task: str, trail: _Trail) -> None:
        seen = trail.stored or trail.claims > 0 or bool(trail.ends)
        if seen and all(outcome == "fail" for outcome in trail.outcomes):
            self._broken("phantom", task, "stored, though no committed unit of work enqueued it")
        if "ok" in trail.outcomes and not trail.ends:
            self._broken("lost", task, "enqueued and acknowledged, but never ended")
        if len(trail.ends) > 1:
            self._broken("finished_twice", task, f"ended {len(trail.ends)} times: {trail.ends}")

    def _judge_effects(self, task: str, trail: _Trail) -> None:
        completing = [epoch for status, epoch in trail.ends if status == "COMPLETED"]
        if len(trail.effects) != min(len(completing), 1):
            self._broken("effect", task, f"{len(trail.effects)} effects for {len(completing)} completions")
        elif trail.effects and trail.effects[0] != completing[0]:
            self._broken("effect", task, f"written under {trail.effects[0]}, completed under {completing[0]}")


def check(events: Iterable[Event], *, max_attempts: int, max_crashes: int) -> Report:
    """Feed all ``events`` and report."""
    checker = Checker(max_attempts=max_attempts, max_crashes=max_crashes)
    for event in events:
        checker.feed(event)
    return checker.report()
