"""What databases bound that the others do not: rows that lock as they are fetched, lists of parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from sqlalchemy import Connection, event

from sa_taskqueue.adapters.base import Adapter
from sa_taskqueue.adapters.shapes import AnySelect

T = TypeVar("T")


def fetch_exactly(
    connection: Connection,
    cursor: AnySelect,
    values: Mapping[str, Any],
    *,
    rows: int,
    bound: Callable[[Any, int], None],
) -> list[Any]:
    """The first ``rows`` rows; no further one leaves the server, where it would be locked."""

    def bind(_connection: Any, driver_cursor: Any, *_: Any) -> None:
        bound(driver_cursor, rows)

    event.listen(connection, "before_cursor_execute", bind)
    try:
        # Streaming, because SQLAlchemy's asyncio cursors otherwise fetch all there is.
        with connection.execute(cursor, values, execution_options={"stream_results": True}) as found:
            return list(found.fetchmany(rows))
    finally:
        event.remove(connection, "before_cursor_execute", bind)


def skip_locked_first(
    connection: Connection, adapter: Adapter, pick: AnySelect, values: Mapping[str, Any] | None = None, *, rows: int
) -> list[Any]:
    """The first ``rows`` rows of ``pick``, without those that others hold; locked where a read can lock."""
    statement = adapter.skip_locked(pick.limit(rows))
    if adapter.locks_when_fetched:
        return fetch_exactly(connection, statement, values or {}, rows=rows, bound=adapter.bound_fetch)
    return list(connection.execute(statement, values or {}))


def in_parts(items: Sequence[T], longest: int | None) -> Iterator[Sequence[T]]:
    """The items in lists that the server takes; one list where it takes any."""
    step = longest or max(1, len(items))
    return (items[start : start + step] for start in range(0, len(items), step))
