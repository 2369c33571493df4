"""An engine whose driver sends nothing: it keeps each statement, and answers with a row the first time it sees one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, NamedTuple

from sqlalchemy import Dialect, Engine, event, make_url
from sqlalchemy.pool import StaticPool

Row = tuple[Any, ...]


class Sent(NamedTuple):
    """A statement, and how far the driver might fetch ahead when it was executed (Oracle)."""

    sql: str
    arraysize: int
    prefetchrows: int


class Driver(ModuleType):
    """A DB-API module: the errors are real, any other name (a type, mostly) stands for itself."""

    class Error(Exception):
        pass

    class DatabaseError(Error):
        pass

    class IntegrityError(DatabaseError):
        pass

    class OperationalError(DatabaseError):
        pass

    class InterfaceError(Error):
        pass

    Binary = bytes
    version = __version__ = "9.9.9"

    def __init__(self, paramstyle: str) -> None:
        super().__init__("driver")
        self.paramstyle = paramstyle

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return name


class Recorder:
    """A server of that dialect.

    `value_of` gives the value of a column by its name. `refuse` is asked about each statement, and may raise.
    """

    def __init__(self, dialect: Dialect, value_of: Callable[[str], Any]) -> None:
        self.sent: list[Sent] = []
        self.fetched: Counter[str] = Counter()
        self.available = 1
        self.refuse: Callable[[str], None] = lambda _: None
        self.value_of = value_of
        pool = StaticPool(lambda: _Connection(self), dialect=dialect)  # type: ignore[arg-type, return-value]
        self.engine = Engine(pool, dialect, make_url("stub://"))
        event.listen(self.engine, "before_cursor_execute", _name_columns)

    def statements(self) -> list[str]:
        """Each statement once, in the order in which they were first sent."""
        return list(dict.fromkeys(sent.sql for sent in self.sent))


class _Cursor:
    # What python-oracledb begins with.
    arraysize = 100
    prefetchrows = 2
    outputtypehandler: Any = None
    lastrowid = None

    def __init__(self, server: Recorder) -> None:
        self._server = server
        self._left = 0
        self._sql = ""
        self.names: Sequence[str] = ()
        self.description: list[Row] | None = None
        self.rowcount = 1

    def setinputsizes(self, *_: Any, **__: Any) -> None:
        pass

    def execute(self, sql: str, parameters: Any = None) -> None:
        new = all(sent.sql != sql for sent in self._server.sent)
        self._server.sent.append(Sent(sql, self.arraysize, self.prefetchrows))
        self._server.refuse(sql)
        self._sql = sql
        if self.names:
            self.description = [(name, None, None, None, None, None, None) for name in self.names]
            self._left = self._server.available if new else 0

    def executemany(self, sql: str, parameters: Any) -> None:
        self.execute(sql)

    def fetchone(self) -> Row | None:
        found = self.fetchmany(1)
        return found[0] if found else None

    def fetchmany(self, size: int) -> list[Row]:
        count = min(size, self._left)
        self._left -= count
        self._server.fetched[self._sql] += count
        return [tuple(self._server.value_of(name) for name in self.names)] * count

    def fetchall(self) -> list[Row]:
        return self.fetchmany(self._left)

    def close(self) -> None:
        self._left = 0


class _Connection:
    outputtypehandler: Any = None

    def __init__(self, server: Recorder) -> None:
        self._server = server

    def cursor(self) -> _Cursor:
        return _Cursor(self._server)

    def commit(self) -> None:
        pass

    def rollback(self) -> None:
        pass

    def close(self) -> None:
        pass


def _name_columns(_connection: Any, cursor: Any, _sql: str, _parameters: Any, context: Any, _many: bool) -> None:
    compiled = context.compiled
    if compiled is not None:
        cursor.names = [column.keyname for column in compiled._result_columns]
