"""A strategy that the database cannot carry is refused by name, before anything else is complained about."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import Engine, Table
from sqlalchemy.dialects import mysql, postgresql
from sqlalchemy.orm import DeclarativeBase

from sa_taskqueue import CrashNoteMixin, RowLock, TaskQueue, Worker
from sa_taskqueue.adapters.registry import adapter_for
from sa_taskqueue.exceptions import MissingTable, SchemaMissing, UnsupportedReservation
from sa_taskqueue.reservation import STRATEGIES
from tests.models import Task
from tests.worker.support import drain


class OtherBase(DeclarativeBase):
    pass


class Absent(CrashNoteMixin, OtherBase):
    __tablename__ = "absent_crash_note"


@pytest.mark.servers("sqlite")
def test_sqlite_cannot_lock_rows_which_is_said_before_a_missing_table(worker_engine: Any) -> None:
    with pytest.raises(UnsupportedReservation, match=r"row-lock .* \(sqlite .*: lease\.") as refused:
        drain(Worker(TaskQueue(Task), worker_engine, reservation=RowLock(count_crashes=True)))
    assert refused.value.supported == "lease"


@pytest.mark.servers("postgresql", "mysql", "mariadb")
def test_crashes_cannot_be_counted_without_a_table(engine: Engine, tasks: Table) -> None:
    with pytest.raises(MissingTable, match="CrashNoteMixin"):
        drain(Worker(TaskQueue(Task), engine, reservation=RowLock(count_crashes=True)))


@pytest.mark.servers("postgresql", "mysql", "mariadb")
def test_a_table_of_crash_notes_that_was_not_created_is_named_at_the_start(engine: Engine, tasks: Table) -> None:
    with pytest.raises(SchemaMissing, match="absent_crash_note"):
        drain(Worker(TaskQueue(Task, crash_notes=Absent), engine, reservation=RowLock(count_crashes=True)))


@pytest.mark.parametrize(
    ("dialect", "version", "carried"),
    [
        (postgresql.dialect(), (9, 4), False),
        (postgresql.dialect(), (13, 0), True),
        (mysql.dialect(), (5, 7, 44), False),
        (mysql.dialect(), (8, 0, 36), True),
    ],
)
def test_servers_without_skip_locked_are_too_old(dialect: Any, version: tuple[int, ...], carried: bool) -> None:
    dialect.server_version_info = version
    assert ("row-lock" in adapter_for(dialect).reservations) is carried


def test_the_registry_has_each_strategy_under_its_own_name() -> None:
    assert all(make().name == name for name, make in STRATEGIES.items())
    assert next(iter(STRATEGIES)) == "lease"
