"""A second engine like a given one, without a pool."""

from __future__ import annotations

from sqlalchemy import Engine
from sqlalchemy.pool import NullPool


def copy_without_pool(engine: Engine) -> Engine:
    """An engine from the same creator, dialect, options and events: it connects just as the given one does.

    SQLAlchemy has no public way to copy an engine; tests/runtime/test_engines.py pins what is used here.
    """
    source = engine.pool
    pool = NullPool(
        source._creator,  # noqa: SLF001
        dialect=engine.dialect,
        reset_on_return=source._reset_on_return,  # noqa: SLF001
        _dispatch=source.dispatch,
    )
    copy = Engine(
        pool,
        engine.dialect,
        engine.url,
        execution_options=engine.get_execution_options(),
        hide_parameters=engine.hide_parameters,
    )
    copy.dispatch._update(engine.dispatch, only_propagate=False)  # noqa: SLF001
    copy._has_events = engine._has_events  # noqa: SLF001
    return copy
