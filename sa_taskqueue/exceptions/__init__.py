"""Every error the library raises itself.

::

    TaskQueueError
     +-- ConfigurationError            the program or the server is set up wrongly
     |    +-- DuplicateHandler
     |    +-- InvalidHandler
     |    +-- AutocommitEngine
     |    +-- InMemoryDatabase
     |    +-- UnsupportedDatabase
     |    +-- IsolationRefused
     |    +-- InvalidSetting
     |    +-- MissingTable
     |    +-- UnknownQueue
     |    +-- UnsupportedReservation
     |    +-- UnsupportedStatement
     |    +-- UnknownPublisher
     |    +-- MissingExtra
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
     |    +-- InvalidMessage
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
     |    +-- IndexMissing
     |    +-- NarrowCharset
     |    +-- ReadOnlyDatabase
     |    +-- DatabaseBusy
     |    +-- InsufficientPrivilege
     |    +-- StorageFull
     |    +-- CommitUnknown
     +-- BrokerUnavailable             the broker does not answer; it may later
     +-- LeaseLost                     another worker holds the task now
     +-- MessageGap                    messages of its key are missing before it
     +-- UndecodableTask               the stored body does not fit the handler
     +-- UnknownItem (LookupError)     not one of the items of the batch
     +-- InvalidOutcomes               a range handler returned what fits no batch

The docstring of a class is its message, filled with the keywords it is raised with; each keyword is
also an attribute. ``code`` is stable and is what ``docs/reference/errors.md`` explains.
"""

from __future__ import annotations

from sa_taskqueue.exceptions.base import TaskQueueError
from sa_taskqueue.exceptions.configuration import (
    AutocommitEngine,
    ConfigurationError,
    DuplicateHandler,
    InMemoryDatabase,
    InvalidHandler,
    InvalidSetting,
    IsolationRefused,
    MissingTable,
    UnknownQueue,
    UnsupportedDatabase,
    UnsupportedReservation,
    UnsupportedStatement,
)
from sa_taskqueue.exceptions.database import (
    CommitUnknown,
    DatabaseBusy,
    DuplicateTask,
    IndexMissing,
    InsufficientPrivilege,
    NarrowCharset,
    NoTransaction,
    QueueDatabaseError,
    ReadOnlyDatabase,
    SavepointWithoutBegin,
    SchemaMissing,
    SchemaOutdated,
    ServerUnreachable,
    StorageFull,
    TaskRunning,
    TransactionEnded,
    TransactionError,
    UniqueKeyError,
)
from sa_taskqueue.exceptions.invalid_tasks import (
    BodyError,
    BodyInvalid,
    BodyNotSerializable,
    BodyTooDeep,
    BodyTooLarge,
    InvalidArguments,
    InvalidAttempts,
    InvalidDatetime,
    InvalidDelay,
    InvalidHeaders,
    InvalidMessage,
    InvalidName,
    InvalidPriority,
    InvalidTask,
    InvalidUniqueKey,
    NaiveDatetime,
    UnknownTask,
)
from sa_taskqueue.exceptions.publishing import (
    BrokerUnavailable,
    MissingExtra,
    UnknownPublisher,
)
from sa_taskqueue.exceptions.running import (
    InvalidOutcomes,
    LeaseLost,
    MessageGap,
    UndecodableTask,
    UnknownItem,
)

__all__ = [
    "AutocommitEngine",
    "BodyError",
    "BodyInvalid",
    "BodyNotSerializable",
    "BodyTooDeep",
    "BodyTooLarge",
    "BrokerUnavailable",
    "CommitUnknown",
    "ConfigurationError",
    "DatabaseBusy",
    "DuplicateHandler",
    "DuplicateTask",
    "InMemoryDatabase",
    "IndexMissing",
    "InsufficientPrivilege",
    "InvalidArguments",
    "InvalidAttempts",
    "InvalidDatetime",
    "InvalidDelay",
    "InvalidHandler",
    "InvalidHeaders",
    "InvalidMessage",
    "InvalidName",
    "InvalidOutcomes",
    "InvalidPriority",
    "InvalidSetting",
    "InvalidTask",
    "InvalidUniqueKey",
    "IsolationRefused",
    "LeaseLost",
    "MessageGap",
    "MissingExtra",
    "MissingTable",
    "NaiveDatetime",
    "NarrowCharset",
    "NoTransaction",
    "QueueDatabaseError",
    "ReadOnlyDatabase",
    "SavepointWithoutBegin",
    "SchemaMissing",
    "SchemaOutdated",
    "ServerUnreachable",
    "StorageFull",
    "TaskQueueError",
    "TaskRunning",
    "TransactionEnded",
    "TransactionError",
    "UndecodableTask",
    "UniqueKeyError",
    "UnknownItem",
    "UnknownPublisher",
    "UnknownQueue",
    "UnknownTask",
    "UnsupportedDatabase",
    "UnsupportedReservation",
    "UnsupportedStatement",
]
