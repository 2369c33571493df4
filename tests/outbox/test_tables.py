"""The tables as each database has them, and the errors for those that are absent."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from sqlalchemy import Engine, insert, select
from sqlalchemy.dialects import mssql, mysql, oracle, postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from sa_taskqueue import KeyStatus, MessageStatus, TaskQueue
from sa_taskqueue.exceptions import InvalidSetting, MissingTable
from sa_taskqueue.models.debezium import DEBEZIUM_COLUMNS
from sa_taskqueue.models.inbox import INBOX_COLUMNS
from sa_taskqueue.models.keys import key_hash
from sa_taskqueue.models.outbox import OUTBOX_COLUMNS
from sa_taskqueue.models.outbox_key import OUTBOX_KEY_COLUMNS
from sa_taskqueue.states import KEY_TRANSITIONS, MESSAGE_TRANSITIONS
from tests.outbox.models import CapturedOutbox, Inbox, Outbox, OutboxKey, Task, bare, captured, queue

OUTBOX: Any = Outbox.__table__
KEYS: Any = OutboxKey.__table__


def index_sql(table: Any, name: str, dialect: Any) -> str:
    [index] = [index for index in table.indexes if index.name == name]
    return " ".join(str(CreateIndex(index).compile(dialect=dialect)).split())


def test_each_table_has_its_columns_first_and_then_the_users_own() -> None:
    assert [column.key for column in OUTBOX.c] == [*OUTBOX_COLUMNS, "tenant"]
    assert [column.key for column in KEYS.c] == list(OUTBOX_KEY_COLUMNS)
    assert [column.key for column in Inbox.__table__.c] == list(INBOX_COLUMNS)
    assert [column.key for column in CapturedOutbox.__table__.c] == list(DEBEZIUM_COLUMNS)


@pytest.mark.parametrize("dialect", [postgresql.dialect(), sqlite.dialect(), mssql.dialect()], ids=lambda d: d.name)
def test_the_indexes_hold_only_the_rows_of_their_role(dialect: Any) -> None:
    assert index_sql(OUTBOX, "ix_ob_outbox_claim", dialect).endswith("(status, ready_at, id) WHERE status = 'NEW'")
    assert index_sql(OUTBOX, "ix_ob_outbox_sequence", dialect) == (
        "CREATE INDEX ix_ob_outbox_sequence ON ob_outbox (key_hash, seq) WHERE seq IS NOT NULL"
    )
    assert index_sql(KEYS, "ix_ob_outbox_key_claim", dialect).endswith("(status, due_at, id) WHERE status = 'READY'")


def test_on_oracle_the_index_holds_only_the_messages_that_have_a_number() -> None:
    sql = index_sql(OUTBOX, "ix_ob_outbox_sequence", oracle.dialect())
    assert sql.endswith("(CASE WHEN (seq IS NOT NULL) THEN key_hash END, CASE WHEN (seq IS NOT NULL) THEN seq END)")


def test_a_payload_may_be_any_json_value_on_oracle_too() -> None:
    sql = str(CreateTable(OUTBOX).compile(dialect=oracle.dialect()))
    [payload] = [line for line in sql.splitlines() if line.strip().startswith("payload")]
    assert "CHECK" not in payload
    assert "(headers IS JSON (STRICT))" in sql


def test_debezium_reads_ids_as_their_text_where_the_database_has_no_type_for_them() -> None:
    assert "id UUID" in str(CreateTable(CapturedOutbox.__table__).compile(dialect=postgresql.dialect()))
    assert "id VARCHAR(36)" in str(CreateTable(CapturedOutbox.__table__).compile(dialect=mysql.dialect()))


def test_each_status_fits_its_column_and_has_its_moves() -> None:
    assert set(MESSAGE_TRANSITIONS) == set(MessageStatus)
    assert set(KEY_TRANSITIONS) == set(KeyStatus)
    assert max(map(len, [*MessageStatus, *KeyStatus])) <= 9


def test_a_queue_knows_its_tables() -> None:
    assert queue.outbox_table is OUTBOX
    assert queue.outbox_keys_table is KEYS
    assert queue.inbox_table is Inbox.__table__
    assert not queue.for_debezium
    assert captured.for_debezium


@pytest.mark.parametrize(
    ("table", "mixin", "argument"),
    [
        ("outbox_table", "OutboxMixin", "outbox"),
        ("outbox_keys_table", "OutboxKeyMixin", "outbox_keys"),
        ("inbox_table", "InboxMixin", "inbox"),
    ],
)
def test_an_absent_table_is_named_with_its_mixin(table: str, mixin: str, argument: str) -> None:
    with pytest.raises(MissingTable, match=rf"with {mixin}, pass it as TaskQueue\(\.\.\., {argument}="):
        getattr(bare, table)
    with pytest.raises(InvalidSetting, match=mixin):
        getattr(TaskQueue(Task, **{argument: Task}), table)


@pytest.mark.parametrize("source", ["", "a b", "x" * 256, None, "é"])
def test_a_source_is_a_uri(source: Any) -> None:
    with pytest.raises(InvalidSetting, match="source"):
        TaskQueue(Task, source=source)


def test_the_database_fills_in_what_another_program_leaves_out(engine: Engine, tables: None) -> None:
    with engine.begin() as connection:
        connection.execute(insert(OUTBOX).values(id=uuid.uuid4(), topic="t", payload="1"))
        connection.execute(insert(KEYS).values(id=key_hash("k"), key="k"))
        message = connection.execute(select(OUTBOX)).one()
        key = connection.execute(select(KEYS)).one()
    assert message.status is MessageStatus.NEW
    assert (message.attempt, message.epoch, message.seq, message.sent_at) == (0, 0, None, None)
    assert message.created_at.tzinfo is not None
    assert (key.id, key.status, key.next_seq, key.sent_seq, key.fails) == (key_hash("k"), KeyStatus.IDLE, 1, 0, 0)
