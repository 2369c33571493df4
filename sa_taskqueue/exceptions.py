"""Every error the library raises itself.

::

    TaskQueueError
     +-- ConfigurationError            the program or the server is set up wrongly
     |    +-- MissingTable
     |    +-- UnsupportedReservation
     |    +-- UnsupportedServer
     |    +-- DuplicateHandler
     |    +-- InvalidHandler
     |    +-- AutocommitEngine
     |    +-- InMemoryDatabase
     |    +-- IsolationRefused
     |    +-- InvalidSetting
     +-- InvalidTask (ValueError)      this task cannot be stored; nothing was sent to the database
     |    +-- InvalidName
     |    +-- InvalidPriority
     |    +-- InvalidDelay
     |    +-- InvalidDatetime
     |    +-- NaiveDatetime
     |    +-- InvalidAttempts
     |    +-- InvalidArguments (TypeError)
     |    +-- UnknownTask
     |    +-- InvalidUniqueKey
     |    +-- InvalidHeaders
     |    +-- BodyError
     |         +-- BodyNotSerializable
     |         +-- BodyTooLarge
     |         +-- BodyTooDeep
     |         +-- BodyInvalid
     +-- TransactionError              there is no transaction the task could be part of
     |    +-- NoTransaction
     |    +-- TransactionEnded
     |    +-- SavepointWithoutBegin
     +-- UniqueKeyError
     |    +-- DuplicateTask
     |    +-- TaskRunning
     +-- QueueDatabaseError            the database refused or could not answer
     |    +-- ServerUnreachable
     |    +-- SchemaMissing
     |    +-- SchemaOutdated
     |    +-- ReadOnlyDatabase
     |    +-- DatabaseBusy
     |    +-- InsufficientPrivilege
     |    +-- StorageFull
     |    +-- CommitUnknown
     +-- LeaseLost                     another worker holds the task now
     +-- UndecodableTask               the stored body does not fit the handler

The docstring of a class is its message, filled with the keywords it is raised with; each keyword is
also an attribute. ``code`` is stable and is what ``docs/reference/errors.md`` explains.
"""

from __future__ import annotations

import inspect
import uuid

# A message quotes values; a hostile or mistaken one of 10 MB must not travel into logs.
_LONGEST_QUOTE = 200


class TaskQueueError(Exception):
    """The task queue failed."""

    code = "error"

    def __init__(self, **fields: object) -> None:
        self.__dict__.update(fields)
        self.fields = fields
        super().__init__(_message(type(self), fields))

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.fields)


def _rebuild(kind: type[TaskQueueError], fields: dict[str, object]) -> TaskQueueError:
    return kind(**fields)


def _message(kind: type[TaskQueueError], fields: dict[str, object]) -> str:
    if not kind.__doc__:  # python -OO drops docstrings
        return f"{kind.code}: {', '.join(sorted(fields))}"
    template = " ".join(inspect.cleandoc(kind.__doc__).split())
    return template.format(**{name: _quote(value) for name, value in fields.items()})


def _quote(value: object) -> str:
    text = value if isinstance(value, str) else ascii(value)
    text = text.encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")
    return text if len(text) <= _LONGEST_QUOTE else text[:_LONGEST_QUOTE] + "..."


class ConfigurationError(TaskQueueError):
    """The task queue is not set up rightly."""

    code = "configuration"


class MissingTable(ConfigurationError):
    """{feature} needs a table of its own: map a class with {mixin} and pass it as TaskQueue({keyword}=...)."""

    code = "missing_table"
    feature: str
    mixin: str
    keyword: str


class UnsupportedReservation(ConfigurationError):
    """{reservation} cannot reserve tasks on {database}: {reason}. Use Lease(), which works on every database."""

    code = "unsupported_reservation"
    reservation: str
    database: str
    reason: str


class UnsupportedServer(ConfigurationError):
    """{server} {version} is too old: {minimum} or newer is needed. Upgrade the server."""

    code = "unsupported_server"
    server: str
    version: str
    minimum: str


class DuplicateHandler(ConfigurationError):
    """Two handlers are named {name}: {first} and {second}. Give one of them another name with
    @queue.task(name=...).
    """

    code = "duplicate_handler"
    name: str
    first: str
    second: str


class InvalidHandler(ConfigurationError):
    """The function {name} cannot be a handler: {reason}."""

    code = "invalid_handler"
    name: str
    reason: str


class AutocommitEngine(ConfigurationError):
    """The engine {engine} is in AUTOCOMMIT, so a task could not share a transaction with the change it belongs to.
    Use an engine without isolation_level="AUTOCOMMIT".
    """

    code = "autocommit_engine"
    engine: str


class InMemoryDatabase(ConfigurationError):
    """A worker cannot use the in-memory database {url}: each connection would see a database of its own.
    Use a file, such as sqlite:///tasks.db.
    """

    code = "in_memory_database"
    url: str


class IsolationRefused(ConfigurationError):
    """The isolation level {level} is refused for a handler's session: renewing the lease would make its commit fail.
    Use READ COMMITTED.
    """

    code = "isolation_refused"
    level: str


class InvalidSetting(ConfigurationError, ValueError):
    """{setting} is {value}, but must be {allowed}."""

    code = "invalid_setting"
    setting: str
    value: object
    allowed: str


class InvalidTask(TaskQueueError, ValueError):
    """The task cannot be stored."""

    code = "invalid_task"


class InvalidName(InvalidTask):
    """The {field} name "{value}" is refused: use 1 to {limit} of the characters A-Z a-z 0-9 _ . : -"""

    code = "invalid_name"
    field: str
    value: object
    limit: int


class InvalidPriority(InvalidTask):
    """priority is {value}, but must be a whole number from -100 to 100, the smaller the sooner."""

    code = "invalid_priority"
    value: object


class InvalidDelay(InvalidTask):
    """A delay of {value} is refused: it must be from 0 seconds to {limit} days."""

    code = "invalid_delay"
    value: object
    limit: int


class InvalidDatetime(InvalidTask):
    """{field} is {value}, but its year must be from {first} to {last}, which every database can store."""

    code = "invalid_datetime"
    field: str
    value: object
    first: int
    last: int


class NaiveDatetime(InvalidTask):
    """{field} is a datetime without a time zone, which producer and worker may read differently. Give it one, such
    as datetime.now(timezone.utc).
    """

    code = "naive_datetime"
    field: str


class InvalidAttempts(InvalidTask):
    """{field} is {value}, but must be a whole number from {least} to {most}."""

    code = "invalid_attempts"
    field: str
    value: object
    least: int
    most: int


class InvalidArguments(InvalidTask, TypeError):
    """The arguments do not fit the task {name}: {reason}."""

    code = "invalid_arguments"
    name: str
    reason: str


class UnknownTask(InvalidTask):
    """No handler is named {name}; near it: {near}. Register it with @queue.task before enqueueing it."""

    code = "unknown_task"
    name: str
    near: str


class InvalidUniqueKey(InvalidTask):
    """The unique key is refused: {reason}."""

    code = "invalid_unique_key"
    reason: str


class InvalidHeaders(InvalidTask):
    """The headers are refused: {reason}. Give a flat mapping of strings to strings, at most {limit} bytes of JSON."""

    code = "invalid_headers"
    reason: str
    limit: int


class BodyError(InvalidTask):
    """The arguments cannot be stored as JSON."""

    code = "body"


class BodyNotSerializable(BodyError):
    """The value at {path} cannot be stored as JSON: {reason}."""

    code = "body_not_serializable"
    path: str
    reason: str


class BodyTooLarge(BodyError):
    """The arguments take {size} bytes as JSON, but the limit is {limit}. Store the data elsewhere and pass a
    reference to it, or raise TaskQueue(max_body=...).
    """

    code = "body_too_large"
    size: int
    limit: int


class BodyTooDeep(BodyError):
    """The arguments are nested deeper than {limit} levels at {path}. Store the data elsewhere and pass a reference."""

    code = "body_too_deep"
    path: str
    limit: int


class BodyInvalid(BodyError):
    """The text at {path} holds {what}, which not every database can store. Remove it or pass bytes."""

    code = "body_invalid"
    path: str
    what: str


class TransactionError(TaskQueueError):
    """The task has no transaction to be part of."""

    code = "transaction"


class NoTransaction(TransactionError):
    """The session has no transaction: {reason}. Enqueue inside `with Session.begin() as session:`."""

    code = "no_transaction"
    reason: str


class TransactionEnded(TransactionError):
    """The transaction is over, so the task {name} would not be stored with it. Enqueue before the commit, not in an
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
    """The task {id} with the unique key "{key}" is running and cannot be replaced any more. Enqueue with
    unique_until="start", or again when it has ended.
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


class ReadOnlyDatabase(QueueDatabaseError):
    """The database is read-only. Connect to the primary server, or make the file and its folder writable."""

    code = "read_only_database"


class DatabaseBusy(QueueDatabaseError):
    """The database stayed locked or kept refusing for {attempts} attempts. Look for a long transaction that holds its
    locks.
    """

    code = "database_busy"
    attempts: int


class InsufficientPrivilege(QueueDatabaseError):
    """The database user may not work with the table {table}. GRANT SELECT, INSERT, UPDATE, DELETE on it."""

    code = "insufficient_privilege"
    table: str


class StorageFull(QueueDatabaseError):
    """The database has no space left. Free some, then the worker goes on by itself."""

    code = "storage_full"


class CommitUnknown(QueueDatabaseError):
    """The connection broke during COMMIT, so it is not known whether the transaction is stored. Read the rows again
    before repeating it.
    """

    code = "commit_unknown"


class LeaseLost(TaskQueueError):
    """The lease on the task {id} (epoch {epoch}) is lost: another worker may hold it, so its end is not recorded. Make
    the lease longer if handlers freeze for that long.
    """

    code = "lease_lost"
    id: uuid.UUID
    epoch: int


class UndecodableTask(TaskQueueError):
    """The body does not fit the handler of {name}: {reason}. Correct the body or the handler, then retry the task."""

    code = "undecodable"
    name: str
    reason: str
