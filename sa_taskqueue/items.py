"""The items of one batch: which task each belongs to, and what a range handler's answer says about each."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from sa_taskqueue.exceptions import InvalidOutcomes, UnknownItem
from sa_taskqueue.states import Outcome


class Items:
    """Items are found as the very objects the handler was given, by the id of their task, or as equal to one."""

    def __init__(self, name: str, items: Sequence[object], ids: Sequence[UUID]) -> None:
        self.items = list(items)
        self._name = name
        self._ids = ids
        self._by_identity = {id(item): index for index, item in enumerate(self.items)}

    def index(self, item: object) -> int:
        """Which of the items it is; UnknownItem for none."""
        found = self._by_identity.get(id(item))
        if found is not None:
            return found
        try:
            return self._ids.index(item) if isinstance(item, UUID) else self.items.index(item)
        except ValueError:
            raise UnknownItem(name=self._name, item=item) from None

    def outcomes(self, answer: object) -> list[object]:
        """What a handler's answer says about each item: an outcome, or what a single handler might return.

        In a mapping, what is not named is done, and a key stands for all the items equal to it. InvalidOutcomes and
        UnknownItem for an answer that fits no item.
        """
        if answer is None or isinstance(answer, Outcome):
            return [answer] * len(self.items)
        if isinstance(answer, Mapping):
            return self._named(answer.items())
        if isinstance(answer, list | tuple):
            if len(answer) != len(self.items):
                reason = f"a list of {len(answer)} entries for {len(self.items)} items"
                raise InvalidOutcomes(name=self._name, reason=reason)
            return list(answer)
        raise InvalidOutcomes(name=self._name, reason=f"it is of the type {type(answer).__qualname__}")

    def _named(self, pairs: Iterable[tuple[Any, object]]) -> list[object]:
        outcomes: list[object] = [None] * len(self.items)
        equal: dict[object, list[int]] | None = None
        for key, outcome in pairs:
            if isinstance(key, UUID):
                outcomes[self.index(key)] = outcome
                continue
            if equal is None:
                equal = self._equal()
            for index in equal.get(key) or [self.index(key)]:
                outcomes[index] = outcome
        return outcomes

    def _equal(self) -> dict[object, list[int]]:
        equal: dict[object, list[int]] = {}
        for index, item in enumerate(self.items):
            if isinstance(item, Hashable):
                equal.setdefault(item, []).append(index)
        return equal
