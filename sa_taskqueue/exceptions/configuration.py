"""Errors of how the program or the server is set up."""

from __future__ import annotations

from sa_taskqueue.exceptions.base import TaskQueueError


class ConfigurationError(TaskQueueError):
    """The task queue is not set up rightly."""

    code = "configuration"


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
    """The engine {engine} is in AUTOCOMMIT, so a task or message could not share a transaction with its change.
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


class UnsupportedDatabase(ConfigurationError):
    """{server} {version} is too old: the task queue needs {floor} or newer. Upgrade the server, or keep the tasks in
    another database.
    """

    code = "unsupported_database"
    server: str
    version: str
    floor: str


class IsolationRefused(ConfigurationError):
    """The isolation level {level} is refused for a handler's session: a renewal of the lease would make its commit
    fail. It is READ COMMITTED already: lock what must not change (with_for_update), or use a session of your own.
    """

    code = "isolation_refused"
    level: str


class InvalidSetting(ConfigurationError, ValueError):
    """{setting} is {value}, but must be {allowed}."""

    code = "invalid_setting"
    setting: str
    value: object
    allowed: str


class MissingTable(ConfigurationError):
    """{feature} needs a table of its own: map a class with {mixin}, pass it as TaskQueue(..., {argument}=...), and
    create the table.
    """

    code = "missing_table"
    feature: str
    mixin: str
    argument: str


class UnsupportedStatement(ConfigurationError):
    """{feature} does not work on this database ({database}) with this statement: {reason}."""

    code = "unsupported_statement"
    feature: str
    database: str
    reason: str


class UnknownQueue(ConfigurationError):
    """The session does not know the TaskQueue whose {table} it should use: {reason}. Say it once, by
    install(Session, queue=queue) or sessionmaker(..., info={{"task_queue": queue}}), or use the function {function}.
    """

    code = "unknown_queue"
    table: str
    reason: str
    function: str


class UnsupportedReservation(ConfigurationError):
    """The reservation strategy {reservation} does not work on this database ({database}). Those that do:
    {supported}.
    """

    code = "unsupported_reservation"
    reservation: str
    database: str
    supported: str
