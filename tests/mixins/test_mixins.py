"""The mixins on every kind of declarative base."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import ForeignKey, ForeignKeyConstraint, Index, MetaData, String, UniqueConstraint, insert
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.orm import (
    DeclarativeBase,
    Mapped,
    MappedAsDataclass,
    declarative_base,
    mapped_column,
    registry,
    relationship,
)
from sqlalchemy.schema import CreateIndex, CreateTable

from sa_taskqueue.models import QueueDataclassMixin, QueueMixin
from sa_taskqueue.models.columns import COLUMNS
from sa_taskqueue.models.types import TaskId
from sa_taskqueue.states import Status

ROLES = {"ix_task_claim", "ix_task_promote", "ix_task_prune", "ix_task_take_over", "uq_task_unique_hash"}


def declarative() -> Any:
    class Base(DeclarativeBase):
        pass

    class Task(QueueMixin, Base):
        __tablename__ = "task"

    return Task


def mixin_after_the_base() -> Any:
    class Base(DeclarativeBase):
        pass

    class Task(Base, QueueMixin):
        __tablename__ = "task"

    return Task


def metaclass_base() -> Any:
    base: Any = declarative_base()

    class Task(QueueMixin, base):
        __tablename__ = "task"

    return Task


def mapped_by_decorator() -> Any:
    @registry().mapped
    class Task(QueueMixin):
        __tablename__ = "task"

    return Task


def dataclass_base() -> Any:
    class Base(MappedAsDataclass, DeclarativeBase):
        pass

    class Task(QueueDataclassMixin, Base):
        __tablename__ = "task"

    return Task


def sqlmodel() -> Any:
    sqlmodel = pytest.importorskip("sqlmodel")

    class Base(sqlmodel.SQLModel, registry=registry()):
        metadata = MetaData()

    class Task(QueueMixin, Base, table=True):
        __tablename__ = "task"

    return Task


def flask() -> Any:
    flask = pytest.importorskip("flask")
    flask_sqlalchemy = pytest.importorskip("flask_sqlalchemy")
    db = flask_sqlalchemy.SQLAlchemy()
    app = flask.Flask(__name__)
    app.config["SQLALCHEMY_DATABASE_URI"] = "sqlite://"
    db.init_app(app)

    class Task(QueueMixin, db.Model):
        __tablename__ = "task"

    return Task


BASES = [declarative, mixin_after_the_base, metaclass_base, mapped_by_decorator, dataclass_base, sqlmodel, flask]


@pytest.mark.parametrize("make", BASES)
def test_every_base_gets_all_columns_and_all_indexes(make: Callable[[], Any]) -> None:
    table = make().__table__
    assert [column.key for column in table.c] == list(COLUMNS)
    assert {index.name for index in table.indexes} == ROLES
    assert [column.key for column in table.primary_key] == ["id"]


@pytest.mark.parametrize("make", BASES)
def test_every_base_gives_the_same_table(make: Callable[[], Any]) -> None:
    for dialect in (postgresql.dialect(), mysql.dialect(), sqlite.dialect()):
        expected = str(CreateTable(declarative().__table__).compile(dialect=dialect))
        assert str(CreateTable(make().__table__).compile(dialect=dialect)) == expected


def test_own_columns_follow_and_may_refer_to_other_tables() -> None:
    class Base(DeclarativeBase):
        pass

    class Customer(Base):
        __tablename__ = "customer"
        id: Mapped[int] = mapped_column(primary_key=True)

    class Task(QueueMixin, Base):
        __tablename__ = "task"
        customer_id: Mapped[int] = mapped_column(ForeignKey("customer.id", ondelete="CASCADE"))
        customer: Mapped[Customer] = relationship()
        tenant: Mapped[str] = mapped_column(String(30), default="main")

    assert [column.key for column in Task.__table__.c] == [*COLUMNS, "customer_id", "tenant"]
    assert Task(customer=Customer(id=1)).customer.id == 1


def test_several_queue_tables_share_a_metadata_and_a_schema_may_be_named() -> None:
    class Base(DeclarativeBase):
        pass

    class Mail(QueueMixin, Base):
        __tablename__ = "mail"

    class Report(QueueMixin, Base):
        __tablename__ = "report"
        __table_args__ = ({"schema": "jobs"},)

    names = [index.name for table in (Mail.__table__, Report.__table__) for index in table.indexes]
    assert len(names) == len(set(names)) == 10
    assert Report.__table__.fullname == "jobs.report"


def test_table_args_of_the_user_stand_beside_the_indexes() -> None:
    class Base(DeclarativeBase):
        pass

    class Task(QueueMixin, Base):
        __tablename__ = "task"
        tenant: Mapped[str] = mapped_column(String(30))
        __table_args__ = (
            UniqueConstraint("tenant", "unique_key", name="uq_tenant"),
            Index("ix_task_claim", "tenant", "queue", "status", "priority", "ready_at", "id"),
            {"comment": "ours", "mysql_charset": "utf8mb3", "sqlite_with_rowid": False},
        )

    table: Any = Task.__table__
    assert {index.name for index in table.indexes} == ROLES
    [claim] = [index for index in table.indexes if index.name == "ix_task_claim"]
    assert claim.columns.keys()[0] == "tenant"
    assert (table.comment, table.kwargs["mysql_charset"], table.kwargs["mysql_engine"]) == ("ours", "utf8mb3", "InnoDB")


def test_a_subclass_in_a_table_of_its_own_is_left_alone() -> None:
    class Base(DeclarativeBase):
        pass

    class Task(QueueMixin, Base):
        __tablename__ = "task"

    class Invoice(Task):
        __tablename__ = "invoice_task"
        id: Mapped[Any] = mapped_column(ForeignKey("task.id"), primary_key=True)
        total: Mapped[int]

    assert {column.key for column in Invoice.__table__.c} == {"id", "total"}
    assert not Invoice.__table__.indexes


CONVENTION = {
    "ix": "ix_%(column_0_label)s",
    "uq": "uq_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
}


def test_a_naming_convention_renames_no_index_of_ours() -> None:
    class Base(DeclarativeBase):
        metadata = MetaData(naming_convention=CONVENTION)

    class Task(QueueMixin, Base):
        __tablename__ = "task"

    assert {index.name for index in Task.__table__.indexes} == ROLES
    assert Task.__table__.primary_key.name == "pk_task"


@pytest.mark.parametrize("length", [40, 60, 63])
@pytest.mark.parametrize("letter", ["t", "ä"])
def test_long_table_names_give_distinct_names_that_every_database_takes(length: int, letter: str) -> None:
    class Base(DeclarativeBase):
        metadata = MetaData(naming_convention=CONVENTION)

    class Task(QueueMixin, Base):
        __tablename__ = letter * length

    names = [index.name or "" for index in Task.__table__.indexes]
    assert len(set(names)) == 5
    assert max(len(name.encode()) for name in names) <= 60
    for dialect in (postgresql.dialect(), mysql.dialect(), sqlite.dialect()):
        for index in Task.__table__.indexes:
            assert str(index.name) in str(CreateIndex(index).compile(dialect=dialect))


def test_a_copy_of_the_table_has_each_index_once() -> None:
    copy = declarative().__table__.to_metadata(MetaData())
    assert sorted(index.name for index in copy.indexes) == sorted(ROLES)


def test_foreign_key_constraints_to_the_task_may_be_declared() -> None:
    class Base(DeclarativeBase):
        pass

    class Task(QueueMixin, Base):
        __tablename__ = "task"
        parent_id: Mapped[uuid.UUID | None] = mapped_column(TaskId())
        __table_args__ = (ForeignKeyConstraint(["parent_id"], ["task.id"]),)

    assert len(Task.__table__.foreign_keys) == 1


def test_dataclass_models_take_what_a_producer_sets_by_keyword() -> None:
    task = dataclass_base()(name="mail", body="{}")
    assert (task.queue, task.priority, task.status) == ("default", 0, Status.NEW)
    with pytest.raises(TypeError):
        dataclass_base()("mail")
    with pytest.raises(TypeError):
        dataclass_base()(name="mail", epoch=3)


def test_instances_of_plain_models_stay_hashable() -> None:
    model = declarative()
    assert len({model(name="a"), model(name="a")}) == 2


def test_what_the_database_fills_in_is_left_out_of_the_insert() -> None:
    statement = insert(declarative().__table__).values(name="mail", body="{}")
    sql = str(statement.compile(dialect=postgresql.dialect()))
    assert sql.startswith("INSERT INTO task (id, name, body) VALUES")


def test_no_server_default_is_fetched_back() -> None:
    assert declarative().__mapper__.eager_defaults is False
