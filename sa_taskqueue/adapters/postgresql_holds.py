"""PostgreSQL: advisory locks of a connection, and the statements of an UNLOGGED table of reservations."""

from __future__ import annotations

from sqlalchemy import (
    BigInteger,
    Float,
    Integer,
    Table,
    bindparam,
    cast,
    column,
    delete,
    func,
    literal_column,
    select,
    table,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, insert
from sqlalchemy.sql.selectable import TableValuedAlias

from sa_taskqueue.adapters.base import Adapter, lock_key
from sa_taskqueue.adapters.shapes import AnySelect, ReservationShape, SessionLockShape


def session_locks() -> SessionLockShape:
    """`pg_try_advisory_lock` over keys that are brought along: no plan can run it on a row beyond a limit."""
    keys = cast(bindparam("packed", type_=ARRAY(BigInteger())), ARRAY(BigInteger()))
    brought = func.unnest(keys).table_valued(column("key", BigInteger())).render_derived(name="brought")
    backend = func.pg_backend_pid()
    return SessionLockShape(
        session=select(backend, func.current_schema()),
        take=select(brought.c.key, func.pg_try_advisory_lock(brought.c.key), backend),
        free=select(func.pg_advisory_unlock(brought.c.key)),
        taken=_taken(brought),
        key=lock_key,
        pack=list,
    )


def reservation_rows(table: Table, adapter: Adapter) -> ReservationShape:
    """Every statement locks in the order of the ids; the renewal does not wait."""
    columns = table.c
    id_type = adapter.id_type()
    until = adapter.after(bindparam("lease", type_=Float()))
    ids = cast(bindparam("packed", type_=ARRAY(id_type)), ARRAY(id_type))
    rows = func.unnest(ids).table_valued(column("id", id_type)).render_derived(name="brought")
    token = cast(bindparam("token", type_=columns.token.type), id_type)
    inserted = insert(table).from_select(["id", "token", "reserved_until"], select(rows.c.id, token, until))
    reserve = inserted.on_conflict_do_update(
        index_elements=[columns.id],
        set_={"token": inserted.excluded.token, "reserved_until": inserted.excluded.reserved_until},
        where=columns.reserved_until <= adapter.clock(),
    ).returning(columns.id)
    held = _under_token(table, adapter)
    waited = held.order_by(columns.id).with_for_update(of=table).cte("locked").prefix_with("MATERIALIZED")
    skipped = held.order_by(columns.id).with_for_update(of=table, skip_locked=True).cte("locked")
    skipped = skipped.prefix_with("MATERIALIZED")
    renew = update(table).where(columns.id == skipped.c.id).values(reserved_until=until).returning(columns.id)
    return ReservationShape(
        reserve=reserve,
        renew=renew,
        remove=delete(table).where(columns.id == waited.c.id),
        mine=held,
        returns=True,
        transactional=True,
        pack=list,
    )


def _taken(brought: TableValuedAlias) -> AnySelect:
    """A 64-bit key is shown as two halves, with 1 in `objsubid`."""
    locks = table(
        "pg_locks",
        column("locktype"),
        column("database", BigInteger()),
        column("classid", BigInteger()),
        column("objid", BigInteger()),
        column("objsubid", Integer()),
        column("pid", Integer()),
        column("granted"),
    )
    whole = (
        cast(locks.c.classid, BigInteger()).op("<<")(literal_column("32")).op("|")(cast(locks.c.objid, BigInteger()))
    )
    database: AnySelect = (
        select(literal_column("oid"))
        .select_from(table("pg_database", column("datname")))
        .where(literal_column("datname") == func.current_database())
    )
    return (
        select(brought.c.key)
        .join_from(brought, locks, whole == brought.c.key)
        .where(
            locks.c.locktype == literal_column("'advisory'"),
            locks.c.objsubid == literal_column("1"),
            locks.c.pid == bindparam("session", type_=Integer()),
            locks.c.granted,
            locks.c.database == database.scalar_subquery(),
        )
    )


def _under_token(table: Table, adapter: Adapter) -> AnySelect:
    id_type = adapter.id_type()
    arrays = [cast(bindparam(name, type_=ARRAY(id_type)), ARRAY(id_type)) for name in ("ids", "tokens")]
    brought = func.unnest(*arrays).table_valued(column("id", id_type), column("token", id_type))
    brought = brought.render_derived(name="brought")
    mine = (table.c.id == brought.c.id) & (table.c.token == brought.c.token)
    return select(table.c.id).join_from(brought, table, mine)
