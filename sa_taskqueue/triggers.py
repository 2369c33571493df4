"""Database triggers that do what `TaskQueue.on_change(..., by="trigger")` says, for writers outside SQLAlchemy."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from sqlalchemy import Column, ColumnElement, Dialect, Table, and_, bindparam, insert, literal_column, or_, select
from sqlalchemy.sql.visitors import replacement_traverse

from sa_taskqueue.adapters.derived import TriggerParts, TriggerSQL
from sa_taskqueue.adapters.registry import adapter_for
from sa_taskqueue.changes import ANY, Change, Publication, Reaction
from sa_taskqueue.columns import ColumnArguments
from sa_taskqueue.definitions import BoundTask
from sa_taskqueue.exceptions import UnsupportedStatement
from sa_taskqueue.models.names import explicit_name
from sa_taskqueue.states import Status
from sa_taskqueue.store.triggers import run_statements

if TYPE_CHECKING:
    from sqlalchemy import Connection


class Triggers:
    """The triggers of a queue, as text for a migration or as listeners to the events of tables and metadata.

    ``event.listen(Base.metadata, "after_create", queue.triggers().create)`` and ``"before_drop"`` with ``.drop``.
    """

    def __init__(self, reactions: Sequence[Reaction | Publication]) -> None:
        self._reactions = tuple(reactions)

    def create(self, _target: object, connection: Connection, **_: Any) -> None:
        """Create the triggers, as a listener to ``after_create``."""
        run_statements(connection, self.create_statements(connection.dialect))

    def drop(self, _target: object, connection: Connection, **_: Any) -> None:
        """Drop the triggers if they are there, as a listener to ``before_drop``."""
        run_statements(connection, self.drop_statements(connection.dialect))

    def create_statements(self, dialect: Dialect) -> list[str]:
        """The SQL that creates the triggers; each statement is to be executed alone, without parameters."""
        return [sql for reaction in self._reactions for sql in _sql(reaction, dialect).create]

    def drop_statements(self, dialect: Dialect) -> list[str]:
        """The SQL that drops the triggers if they are there."""
        return [sql for reaction in self._reactions for sql in _sql(reaction, dialect).drop]


def _sql(reaction: Reaction | Publication, dialect: Dialect) -> TriggerSQL:
    adapter = adapter_for(dialect)
    derivation = adapter.derivation()
    if derivation is None:
        _refuse(adapter.name, "it has no triggers here")
    change, preparer = reaction.change, dialect.identifier_preparer
    updated = and_(
        _column(change, dialect, "OLD").is_distinct_from(_column(change, dialect, "NEW")), *_values(change, dialect)
    )
    inserted = and_(_column(change, dialect, "NEW").is_not(None), *_values(change, dialect, with_old=False))
    on_insert = change.from_ is ANY or change.from_ is None
    insertion = _insert(reaction, dialect)
    if any(function in insertion for function in derivation.functions):
        _refuse(adapter.name, "it has no hash for the key, so give ordered=False, or no key")
    parts = TriggerParts(
        name=_name(reaction),
        table=preparer.format_table(change.table),
        schema=f"{preparer.quote_schema(change.table.schema)}." if change.table.schema else "",
        inserted=_text(inserted, dialect) if on_insert else None,
        updated=_text(updated, dialect),
        insert=insertion,
        insert_if_inserted=_insert(reaction, dialect, inserted),
        insert_if_updated=_insert(reaction, dialect, updated),
    )
    made = derivation.triggers(parts)
    return made or _refuse(adapter.name, "it has no triggers here")


def _refuse(database: str, reason: str) -> NoReturn:
    raise UnsupportedStatement(feature='on_change(by="trigger")', database=database, reason=reason)


def _name(reaction: Reaction | Publication) -> str:
    """The same name in each version of a program, as long as it registers the same."""
    change = reaction.change
    if change.name is not None:
        return change.name
    if isinstance(reaction, Publication):
        name, target = reaction.topic, reaction.queue.outbox_table
    else:
        name, target = reaction.task.name, reaction.task.task_queue.table
    what = f"{change.to!r} {change.from_!r} {change.when} {target.fullname}"
    digest = hashlib.sha256(what.encode()).hexdigest()[:6]
    role = re.sub(r"\W", "_", f"{change.column.name}_{name}_{digest}")
    return str(explicit_name("on", re.sub(r"\W", "_", change.table.name), role))


def _insert(reaction: Reaction | Publication, dialect: Dialect, condition: ColumnElement[bool] | None = None) -> str:
    """INSERT ... SELECT of one row, where the conditions hold."""
    change = reaction.change
    table, values = _message(reaction, dialect) if isinstance(reaction, Publication) else _task(reaction, dialect)
    source = select(*(_as_new(value, change.table, dialect) for value in values.values()))
    if condition is not None:
        source = source.where(condition)
    if change.when is not None:
        source = source.where(_as_new(change.when, change.table, dialect))
    return _text(insert(table).from_select(list(values), source, include_defaults=False), dialect)


def _message(reaction: Publication, dialect: Dialect) -> tuple[Table, dict[str, Any]]:
    plain, derived = reaction.columns().values(reaction.queue, dialect, mark=False)
    return reaction.queue.outbox_table, {**plain, **derived}


def _task(reaction: Reaction, dialect: Dialect) -> tuple[Table, dict[str, Any]]:
    task, adapter = reaction.task, adapter_for(dialect)
    queue, derivation = task.task_queue, adapter.derivation()
    if derivation is None:
        raise ValueError(f"{adapter.name} makes no values by SQL")
    given = ColumnArguments(task.name, reaction.arguments, not_null=frozenset(), certain=True)
    definition = task.definition if isinstance(task, BoundTask) else task
    body = given.json_object(definition.arguments, derivation, dialect, queue.max_body)
    options = task.options
    constants: dict[str, Any] = {
        "name": task.name,
        "queue": options.queue,
        "priority": options.priority,
        "status": Status.NEW if options.delay is None else Status.SCHEDULED,
        "max_attempts": options.max_attempts,
    }
    if options.headers is not None:
        constants["headers"] = options.headers
    values: dict[str, Any] = {"id": derivation.new_id()}
    values |= {key: bindparam(None, value, type_=queue.table.c[key].type) for key, value in constants.items()}
    if options.delay is not None:
        values["scheduled_at"] = adapter.after(options.delay.total_seconds())
    values["body"] = body
    return queue.table, values


def _values(change: Change, dialect: Dialect, *, with_old: bool = True) -> list[ColumnElement[bool]]:
    """The conditions on the new value, and the old one."""
    wanted = [_is(_column(change, dialect, "NEW"), change.to, change.column)] if change.to is not ANY else []
    if with_old and change.from_ is not ANY:
        wanted.append(_is(_column(change, dialect, "OLD"), change.from_, change.column))
    return wanted


def _is(side: ColumnElement[Any], wanted: Any, column: Column[Any]) -> ColumnElement[bool]:
    values = sorted(wanted, key=repr) if isinstance(wanted, (set, frozenset)) else [wanted]
    return or_(
        *(side.is_(None) if value is None else side == bindparam(None, value, type_=column.type) for value in values)
    )


def _column(change: Change, dialect: Dialect, row: str) -> ColumnElement[Any]:
    return _of_row(change.column, dialect, row)


def _of_row(column: Column[Any], dialect: Dialect, row: str) -> ColumnElement[Any]:
    return literal_column(f"{row}.{dialect.identifier_preparer.quote(column.name)}", column.type)


def _as_new(expression: ColumnElement[Any], table: Table, dialect: Dialect) -> Any:
    """The expression over the row that was changed."""

    def replace(element: Any, **_: Any) -> Any:
        if isinstance(element, Column) and getattr(element.table, "name", None) == table.name:
            return _of_row(element, dialect, "NEW")
        return None

    return replacement_traverse(expression, {}, replace)


def _text(element: Any, dialect: Dialect) -> str:
    """SQL without parameters, as a trigger takes none."""
    sql = str(
        element.compile(
            dialect=adapter_for(dialect).literals(dialect),
            compile_kwargs={"literal_binds": True, "include_table": True},
        )
    )
    doubled = getattr(dialect.identifier_preparer, "_double_percents", False)
    return sql.replace("%%", "%") if doubled else sql
