"""Triggers: whoever writes, with whatever client, the task is stored with the change."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import Engine, insert, inspect, text, update
from sqlalchemy.dialects import mssql, postgresql
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.orm import sessionmaker

from sa_taskqueue.exceptions import UnsupportedStatement
from sa_taskqueue.session import TaskSession
from sa_taskqueue.states import Status
from tests.session.change_models import Parcel, heavy, queue, sent

Stored = Callable[..., list[Any]]
TABLE: Any = Parcel.__table__
FIRST, SECOND = uuid.UUID(int=1), uuid.UUID(int=2)


@pytest.fixture
def parcels(engine: Engine, jobs: Any) -> None:
    with engine.begin() as connection:
        connection.execute(insert(TABLE), [{"id": each, "Order": "new", "weight": 1} for each in (FIRST, SECOND)])


def arguments(stored: Stored) -> list[dict[str, Any]]:
    handlers = {"sent": sent, "heavy": heavy}
    return [handlers[name].decode(body)[1] for name, body in zip(stored("name"), stored("body"), strict=True)]


@pytest.mark.every_driver
def test_a_raw_update_enqueues(engine: Engine, parcels: None, stored: Stored) -> None:
    quoted = engine.dialect.identifier_preparer.quote("Order")
    change = text(f"UPDATE session_parcel SET {quoted} = 'sent', weight = 2.5 WHERE {quoted} <> 'sent'")
    with engine.connect() as connection:
        connection.execute(change)
        connection.rollback()
        assert stored() == []
        connection.execute(change)
        connection.execute(change)  # which finds nothing more
        connection.execute(text(f"UPDATE session_parcel SET {quoted} = 'sent'"))  # which changes nothing
        connection.commit()
    strange = '100 % it\'s "so" \\ :x {}'
    expected = [{"parcel_id": each, "weight": Decimal("2.50"), "text": strange} for each in (FIRST, SECOND)]
    assert sorted(arguments(stored), key=lambda each: each["parcel_id"]) == expected
    assert {each.version for each in stored()} == {7}
    assert len(set(stored())) == 2
    assert (set(stored("status")), set(stored("queue"))) == ({Status.NEW}, {"parcels"})
    assert min(stored("created_at")).tzinfo is not None


def test_a_new_row_counts_and_the_condition_holds(engine: Engine, jobs: Any, stored: Stored) -> None:
    rows = [{"id": FIRST, "Order": "sent", "weight": 21}, {"id": SECOND, "Order": None, "weight": 3}]
    with engine.begin() as connection:
        connection.execute(insert(TABLE), rows)
        connection.execute(update(TABLE).where(TABLE.c.id == SECOND).values({"weight": 30}))
        connection.execute(update(TABLE).values({"weight": 5}))
    assert sorted(stored("name")) == ["heavy", "heavy", "sent"]


def test_the_session_leaves_it_to_the_trigger(engine: Engine, parcels: None, stored: Stored) -> None:
    with sessionmaker(engine, class_=TaskSession).begin() as session:
        session.get_one(Parcel, FIRST).status = "sent"
    assert stored("name") == ["sent"]


def test_the_statements_for_a_migration_make_and_drop_them(engine: Engine, parcels: None, stored: Stored) -> None:
    """As printed without a connection, for any version of the server."""
    dialect = type(engine.dialect)()
    with engine.begin() as connection:
        for statement in (*queue.triggers().drop_statements(dialect), *queue.triggers().drop_statements(dialect)):
            connection.exec_driver_sql(statement)
        connection.execute(update(TABLE).values({"Order": "sent"}))
    assert stored() == []
    with engine.begin() as connection:
        for statement in queue.triggers().create_statements(dialect):
            connection.exec_driver_sql(statement, execution_options={"no_parameters": True})
        connection.execute(update(TABLE).values({"Order": "back"}))
        connection.execute(update(TABLE).values({"Order": "sent"}))
    assert len(stored()) == 2
    assert inspect(engine).has_table("session_parcel")


def test_the_sql_can_be_printed_for_postgresql() -> None:
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    function, insertion, change = queue.triggers().create_statements(dialect)[:3]
    assert function.startswith("CREATE OR REPLACE FUNCTION on_session_parcel_Order_sent_")
    assert "jsonb_build_object(CAST('parcel_id' AS TEXT), NEW.id" in function
    assert "gen_random_uuid()" in function
    assert """WHEN (NEW."Order" IS NOT NULL AND NEW."Order" = 'sent')""" in insertion
    assert """WHEN (OLD."Order" IS DISTINCT FROM NEW."Order" AND NEW."Order" = 'sent')""" in change
    assert json.dumps('100 % it\'s "so" \\ :x {}').replace("'", "''") in function


@pytest.mark.parametrize("dialect", [DefaultDialect(), mssql.dialect()], ids=["generic", "mssql"])  # type: ignore[no-untyped-call]
def test_other_databases_have_none(dialect: Any) -> None:
    with pytest.raises(UnsupportedStatement, match="no triggers"):
        queue.triggers().create_statements(dialect)
