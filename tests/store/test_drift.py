"""What the database lacks is named, with what to do about it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Column, Engine, Index, Integer, MetaData, Table, UniqueConstraint, inspect

from sa_taskqueue.exceptions import IndexMissing, SchemaMissing, SchemaOutdated
from sa_taskqueue.store.drift import check_schema
from tests.models import Task

INDEXES = sorted(str(index.name) for index in Task.__table__.indexes)  # type: ignore[attr-defined]


@pytest.fixture
def table(engine: Engine) -> Iterator[Table]:
    """The same table under another name, in the database."""
    table = copy_of_the_table()
    table.drop(engine, checkfirst=True)
    yield table
    table.drop(engine, checkfirst=True)


def copy_of_the_table(*, without_column: str = "", without_index: str = "") -> Table:
    source: Table = Task.__table__  # type: ignore[assignment]
    metadata = MetaData()
    table = Table("drifted", metadata, *(column._copy() for column in source.c if column.name != without_column))
    for index in source.indexes:
        columns = [table.c[column.name] for column in index.columns if column.name in table.c]
        if index.name != without_index and len(columns) == len(index.columns):
            Index(str(index.name).replace("task", "drifted", 1), *columns, unique=index.unique)
    return table


def check(engine: Engine, table: Table) -> None:
    with engine.connect() as connection:
        check_schema(connection, table)


def test_a_table_as_the_model_says_is_right(engine: Engine, tasks: Table) -> None:
    check(engine, tasks)


def test_a_missing_table_is_named_with_the_migration(engine: Engine, table: Table) -> None:
    with pytest.raises(SchemaMissing, match=r"drifted.*migrations") as caught:
        check(engine, table)
    assert caught.value.table == "drifted"


@pytest.mark.parametrize("column", ["epoch", "unique_hash", "ready_at"])
def test_a_missing_column_is_named_with_the_migration(engine: Engine, table: Table, column: str) -> None:
    copy_of_the_table(without_column=column).create(engine)
    with pytest.raises(SchemaOutdated, match=rf"{column}.*migration") as caught:
        check(engine, table)
    assert caught.value.column == column


@pytest.mark.parametrize("index", INDEXES)
def test_a_missing_index_is_named_with_the_migration(engine: Engine, table: Table, index: str) -> None:
    copy_of_the_table(without_index=index).create(engine)
    with pytest.raises(IndexMissing, match="migration") as caught:
        check(engine, table)
    assert caught.value.index == index.replace("task", "drifted", 1)


def test_indexes_of_other_names_and_further_columns_are_fine(engine: Engine, table: Table) -> None:
    other = copy_of_the_table(without_index="uq_task_unique_hash")
    other.append_constraint(UniqueConstraint("unique_hash", name="own_name"))
    other.append_column(Column("own", Integer))
    other.create(engine)
    check(engine, table)


def test_a_schema_is_looked_at_by_name(engine: Engine, tasks: Table) -> None:
    with engine.connect() as connection:
        schema = inspect(connection).default_schema_name
    if schema is None:
        schema = "main"
    check(engine, tasks.to_metadata(MetaData(), schema=schema))
