"""Errors of the transaction a task is part of, of unique keys, and of the database itself."""

from __future__ import annotations

import uuid

from sa_taskqueue.exceptions.base import TaskQueueError


class TransactionError(TaskQueueError):
    """The task has no transaction to be part of."""

    code = "transaction"


class NoTransaction(TransactionError):
    """The session has no transaction: {reason}. Enqueue inside `with Session.begin() as session:`."""

    code = "no_transaction"
    reason: str


class TransactionEnded(TransactionError):
    """The transaction is over, so {name} would not be stored with it. Enqueue and publish before the commit, not in an
    after_commit hook.
    """

    code = "transaction_ended"
    name: str


class SavepointWithoutBegin(TransactionError):
    """SQLite has a savepoint open but no BEGIN, so a later rollback would keep the task. Make the engine with
    sqlite_engine(url), or call prepare_sqlite(engine) once.
    """

    code = "savepoint_without_begin"


class UniqueKeyError(TaskQueueError):
    """The unique key is taken."""

    code = "unique_key"


class DuplicateTask(UniqueKeyError):
    """The task {id} holds the unique key "{key}" already. Choose on_duplicate="ignore" or "replace", or wait until it
    has ended.
    """

    code = "duplicate_task"
    id: uuid.UUID
    key: str


class TaskRunning(UniqueKeyError):
    """The task {id} with the unique key "{key}" is running, or locked by another transaction, and cannot be replaced
    now. Enqueue with unique_until="start", or again when it has ended.
    """

    code = "task_running"
    id: uuid.UUID
    key: str


class QueueDatabaseError(TaskQueueError):
    """The database could not do what the task queue asked."""

    code = "database"


class ServerUnreachable(QueueDatabaseError):
    """No connection could be made to {url}: {reason}. Check host, port, database name, user and password, and that the
    server is running.
    """

    code = "server_unreachable"
    url: str
    reason: str


class SchemaMissing(QueueDatabaseError):
    """The table {table} does not exist. Run your migrations (alembic upgrade head) or Base.metadata.create_all(engine),
    and check the schema and search path.
    """

    code = "schema_missing"
    table: str


class SchemaOutdated(QueueDatabaseError):
    """The table {table} has no column {column}. Make and run a migration: alembic revision --autogenerate, then
    alembic upgrade head.
    """

    code = "schema_outdated"
    table: str
    column: str


class IndexMissing(QueueDatabaseError):
    """The table {table} has no index {index} over {columns}: claims would read the whole table, or unique keys would
    not hold. Make and run a migration: alembic revision --autogenerate, then alembic upgrade head.
    """

    code = "index_missing"
    table: str
    index: str
    columns: str


class NarrowCharset(QueueDatabaseError):
    """The column {column} of the table {table} has the character set {charset}, which lacks emoji and many other
    characters. Run ALTER TABLE {table} CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_bin.
    """

    code = "narrow_charset"
    table: str
    column: str
    charset: str


class ReadOnlyDatabase(QueueDatabaseError):
    """The database takes no writes through this connection. Connect to the primary server, not to a replica; make
    an SQLite file and its folder writable; remove mode=ro or default_transaction_read_only.
    """

    code = "read_only_database"


class DatabaseBusy(QueueDatabaseError):
    """The database is locked by another transaction that writes. Make the SQLite engine with sqlite_engine(url), on
    which writers wait for each other, and look for a transaction that stays open too long.
    """

    code = "database_busy"


class InsufficientPrivilege(QueueDatabaseError):
    """The database user {user} may not do this with the table {table} ({reason}). Run as its owner: GRANT SELECT,
    INSERT, UPDATE, DELETE ON {table} TO {user}.
    """

    code = "insufficient_privilege"
    user: str
    table: str
    reason: str


class StorageFull(QueueDatabaseError):
    """The database has no space left, so nothing of this transaction is stored. Free some or raise the limit, then do
    it again; a running worker goes on by itself.
    """

    code = "storage_full"


class CommitUnknown(QueueDatabaseError):
    """The connection broke during COMMIT, so it is not known whether the transaction is stored. Read the rows again
    before repeating it.
    """

    code = "commit_unknown"
