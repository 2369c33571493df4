"""The database's clock as a server default, so that no client's clock is ever stored."""

from __future__ import annotations

from typing import Any

from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from sa_taskqueue.adapters.registry import adapter_for
from sa_taskqueue.models.types import UtcDateTime


class DatabaseClock(FunctionElement[Any]):
    """The database's clock: UTC with microseconds."""

    inherit_cache = True
    type = UtcDateTime()


@compiles(DatabaseClock)
def _compile_clock(_clock: DatabaseClock, compiler: SQLCompiler, **options: Any) -> str:
    adapter = adapter_for(compiler.dialect)
    return adapter.clock_default() or f"({compiler.process(adapter.clock(), **options)})"
