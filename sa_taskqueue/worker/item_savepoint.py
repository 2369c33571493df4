"""One item's part of a batch's work: its exception undoes that part, and is kept from the rest of the batch."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING

from sqlalchemy.orm import Session

from sa_taskqueue.exceptions import InvalidSetting

if TYPE_CHECKING:
    from sqlalchemy.orm import SessionTransaction


class ItemSavepoint:
    """Entered once. `decide` is told the item's error, and says whether its work is kept all the same."""

    def __init__(
        self,
        session: Session,
        decide: Callable[[BaseException], bool],
        ends_all: Callable[[BaseException], bool],
        *,
        is_async: bool,
    ) -> None:
        self._session = session
        self._decide = decide
        self._ends_all = ends_all
        self._is_async = is_async
        self._nested: SessionTransaction | None = None

    def __enter__(self) -> None:
        if self._is_async:
            allowed = "used as: async with context.savepoint(item)"
            raise InvalidSetting(setting="context.savepoint", value="with, in an async handler", allowed=allowed)
        self._begin()

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None, /
    ) -> bool:
        return self._end(error)

    async def __aenter__(self) -> None:
        from sqlalchemy.util import greenlet_spawn

        await greenlet_spawn(self._begin)

    async def __aexit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None, /
    ) -> bool:
        from sqlalchemy.util import greenlet_spawn

        return await greenlet_spawn(self._end, error)

    def _begin(self) -> None:
        self._nested = self._session.begin_nested()

    def _end(self, error: BaseException | None) -> bool:
        """Keep or undo the work; True: the error is dealt with. Raises what has ended the whole transaction."""
        if error is None:
            try:
                self._commit()
            except Exception as failed:  # noqa: BLE001  the last flush of the item
                return self._failed(failed, raised=False)
            return True
        return isinstance(error, Exception) and self._failed(error, raised=True)

    def _failed(self, error: Exception, *, raised: bool) -> bool:
        if self._ends_all(error):
            if raised:
                return False
            raise error
        if self._decide(error) and raised:
            self._commit()
        else:
            self._undo()
        return True

    def _commit(self) -> None:
        if self._nested is not None:
            self._nested.commit()

    def _undo(self) -> None:
        """Back to the savepoint. Where that fails the transaction is gone, and with it the work of all."""
        if self._nested is not None:
            self._nested.rollback()
