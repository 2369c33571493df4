"""`QueueMixin` and `QueueDataclassMixin`: they turn a mapped class of the user's into a table of tasks."""

import datetime as dt
import uuid
from typing import Any, ClassVar

from sqlalchemy import inspect
from sqlalchemy.orm import Mapped, MappedAsDataclass, declared_attr

from sa_taskqueue.ids import new_id
from sa_taskqueue.models.columns import queue_column
from sa_taskqueue.models.indexes import QUEUE_INDEXES
from sa_taskqueue.models.table import LibraryTable
from sa_taskqueue.states import Status


class QueueTable(LibraryTable):
    """What both mixins share."""

    __index_roles__: ClassVar[Any] = QUEUE_INDEXES


class QueueMixin(QueueTable):
    """The columns of a queue table, for any declarative base: `class Task(QueueMixin, Base): __tablename__ = "task"`.

    All datetimes are aware UTC. The attributes are un-annotated on purpose: SQLModel takes annotated ones for its own.
    """

    @declared_attr
    def id(cls) -> Mapped[uuid.UUID]:
        """UUIDv7 made by the client; the idempotency key over all attempts."""
        return queue_column("id", default=new_id)

    @declared_attr
    def name(cls) -> Mapped[str]:
        """The handler's registered name."""
        return queue_column("name")

    @declared_attr
    def queue(cls) -> Mapped[str]:
        """The stream the task belongs to."""
        return queue_column("queue")

    @declared_attr
    def priority(cls) -> Mapped[int]:
        """-100 to 100, smaller first."""
        return queue_column("priority")

    @declared_attr
    def status(cls) -> Mapped[Status]:
        """Where the task stands."""
        return queue_column("status")

    @declared_attr
    def scheduled_at(cls) -> Mapped[dt.datetime]:
        """The next due time: set at enqueue, moved by retry, snooze and give-back."""
        return queue_column("scheduled_at")

    @declared_attr
    def ready_at(cls) -> Mapped[dt.datetime]:
        """The database's clock when the row became NEW; the claim orders by it."""
        return queue_column("ready_at")

    @declared_attr
    def body(cls) -> Mapped[str]:
        """JSON object text, keyed by the handler's parameter names."""
        return queue_column("body")

    @declared_attr
    def headers(cls) -> Mapped[str | None]:
        """JSON object text for what is not an argument: trace context, tenant."""
        return queue_column("headers")

    @declared_attr
    def attempt(cls) -> Mapped[int]:
        """How often the task was claimed."""
        return queue_column("attempt")

    @declared_attr
    def max_attempts(cls) -> Mapped[int]:
        """The attempt after which a failure is final."""
        return queue_column("max_attempts")

    @declared_attr
    def crashes(cls) -> Mapped[int]:
        """How often the lease was lost."""
        return queue_column("crashes")

    @declared_attr
    def epoch(cls) -> Mapped[int]:
        """The fencing token: raised at every change of holder and by every operator's action."""
        return queue_column("epoch")

    @declared_attr
    def reserved_until(cls) -> Mapped[dt.datetime | None]:
        """The end of the lease, by the database's clock."""
        return queue_column("reserved_until")

    @declared_attr
    def reserved_by(cls) -> Mapped[str | None]:
        """The worker that holds the task, for people."""
        return queue_column("reserved_by")

    @declared_attr
    def unique_key(cls) -> Mapped[str | None]:
        """The unique key as text, for people; kept when the key is free again."""
        return queue_column("unique_key")

    @declared_attr
    def unique_hash(cls) -> Mapped[bytes | None]:
        """SHA-256 of task name and key, unique; NULL when the key is free."""
        return queue_column("unique_hash")

    @declared_attr
    def unique_until(cls) -> Mapped[str | None]:
        """`start` or `end`: when the key is free again."""
        return queue_column("unique_until")

    @declared_attr
    def error(cls) -> Mapped[str | None]:
        """JSON object text: the last error."""
        return queue_column("error")

    @declared_attr
    def errors(cls) -> Mapped[str | None]:
        """JSON array text: the errors of earlier attempts."""
        return queue_column("errors")

    @declared_attr
    def result(cls) -> Mapped[str | None]:
        """JSON text of the handler's return value, where storing it was asked for."""
        return queue_column("result")

    @declared_attr
    def created_at(cls) -> Mapped[dt.datetime]:
        """The database's clock at the INSERT."""
        return queue_column("created_at")

    @declared_attr
    def finished_at(cls) -> Mapped[dt.datetime | None]:
        """The database's clock at the terminal write."""
        return queue_column("finished_at")

    def __repr__(self) -> str:
        """What is known without a query: an expired row still has its id."""
        state = inspect(self)
        key = state.identity[0] if state.identity else state.dict.get("id")
        known = (key, state.dict.get("name"), state.dict.get("status"))
        return f"<{' '.join([type(self).__name__, *(str(each) for each in known if each is not None)])}>"


class QueueDataclassMixin(QueueTable, MappedAsDataclass, kw_only=True):
    """`QueueMixin` for `MappedAsDataclass` bases: what a producer may set is a keyword, the rest is the library's."""

    id: Mapped[uuid.UUID] = queue_column("id", default_factory=new_id)
    name: Mapped[str] = queue_column("name")
    queue: Mapped[str] = queue_column("queue", default="default")
    priority: Mapped[int] = queue_column("priority", default=0)
    status: Mapped[Status] = queue_column("status", default=Status.NEW)
    scheduled_at: Mapped[dt.datetime] = queue_column("scheduled_at", init=False, repr=False)
    ready_at: Mapped[dt.datetime] = queue_column("ready_at", init=False, repr=False)
    body: Mapped[str] = queue_column("body", default="{}", repr=False)
    headers: Mapped[str | None] = queue_column("headers", default=None, repr=False)
    attempt: Mapped[int] = queue_column("attempt", init=False, repr=False)
    max_attempts: Mapped[int] = queue_column("max_attempts", default=10, repr=False)
    crashes: Mapped[int] = queue_column("crashes", init=False, repr=False)
    epoch: Mapped[int] = queue_column("epoch", init=False, repr=False)
    reserved_until: Mapped[dt.datetime | None] = queue_column("reserved_until", init=False, repr=False)
    reserved_by: Mapped[str | None] = queue_column("reserved_by", init=False, repr=False)
    unique_key: Mapped[str | None] = queue_column("unique_key", default=None, repr=False)
    unique_hash: Mapped[bytes | None] = queue_column("unique_hash", default=None, repr=False)
    unique_until: Mapped[str | None] = queue_column("unique_until", default=None, repr=False)
    error: Mapped[str | None] = queue_column("error", init=False, repr=False)
    errors: Mapped[str | None] = queue_column("errors", init=False, repr=False)
    result: Mapped[str | None] = queue_column("result", init=False, repr=False)
    created_at: Mapped[dt.datetime] = queue_column("created_at", init=False, repr=False)
    finished_at: Mapped[dt.datetime | None] = queue_column("finished_at", init=False, repr=False)
