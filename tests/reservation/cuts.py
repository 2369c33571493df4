"""Ways in which the transaction of a handler's work is lost: what brings each about, and how often that was reached."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

from sqlalchemy import Connection, select, text, update
from sqlalchemy.util import await_only

from sa_taskqueue.adapters.errors import ErrorKind
from sa_taskqueue.adapters.registry import adapter_for
from sa_taskqueue.runtime.sockets import Breaker
from tests.models import Effect, Order
from tests.support import eventually
from tests.tcp_proxy import TcpProxy
from tests.worker.support import Database

#: Before the handler has returned.
IN_WORK = ("lease lost", "deadlock", "serialization failure", "backend killed")
#: In the network: before the COMMIT is sent, when it is sent and does not arrive, when it arrives and the answer does
#: not, and after the answer.
AT_COMMIT = ("cut before commit", "cut at commit, lost", "cut at commit, done", "cut after commit")

KILL = {
    "postgresql": ("SELECT pg_backend_pid()", "SELECT pg_terminate_backend({})"),
    "mysql": ("SELECT CONNECTION_ID()", "KILL {}"),
}
#: Only PostgreSQL can be made to raise it at READ COMMITTED, and there only by asking for it; on the others a deadlock
#: has this SQLSTATE.
SERIALIZATION = "DO $$ BEGIN RAISE EXCEPTION 'could not serialize access' USING ERRCODE = '40001'; END $$"
WAITS = {
    "postgresql": "SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = {}",
    "mysql": "SELECT count(*) FROM information_schema.innodb_trx "
    "WHERE trx_mysql_thread_id = {} AND trx_state = 'LOCK WAIT'",
}


def possible(kind: str, strategy: str) -> list[str]:
    """What can happen on this kind of server under the strategy."""
    never = set()
    if kind != "postgresql":
        never.add("serialization failure")
    if strategy == "row-lock":
        never.add("lease lost")  # the row is locked: only the end of the connection takes it away
    return [cut for cut in (*IN_WORK, *AT_COMMIT) if cut not in never]


class Cuts:
    """Brings a cut about in the first attempt of its task, and counts how often it was reached."""

    def __init__(self, db: Database, proxy: TcpProxy) -> None:
        self._db, self._proxy = db, proxy
        self.beside: Callable[[Callable[[], Any]], Any] = call
        """How a handler waits: an async one must not hold up the loop, on which its lease is renewed."""
        self._kind = "postgresql" if db.engine.dialect.name == "postgresql" else "mysql"
        self._armed: tuple[str, int] | None = None
        self._helpers: list[threading.Thread] = []
        self.reached: Counter[str] = Counter()
        self.begun: Counter[str] = Counter()

    def first(self, cut: str) -> bool:
        """Whether this is the task's first attempt."""
        self.begun[cut] += 1
        return self.begun[cut] == 1

    def in_work(self, connection: Connection, cut: str, task: Any) -> None:
        """Called by the handler, behind its effect; for those at the COMMIT it only remembers the connection."""
        if cut in AT_COMMIT:
            self._armed = cut, port_of(connection)
        elif cut == "lease lost":
            self.beside(lambda: self._db.raise_epoch(task))
            self.reached[cut] += 1
        elif cut == "deadlock":
            self._deadlock(connection)
        elif cut == "serialization failure":
            self._fails(connection, SERIALIZATION, cut, ErrorKind.SERIALIZATION)
        else:
            own, kill = KILL[self._kind]
            number = connection.scalar(text(own))
            self.beside(lambda: self._do(kill.format(number)))
            self._fails(connection, "SELECT 1", cut, ErrorKind.DISCONNECT)

    def at_point(self, name: str) -> None:
        """The hook of `faults`."""
        if self._armed is None or name not in ("complete.before_commit", "complete.after_commit"):
            return
        cut, port = self._armed
        if (name == "complete.after_commit") is not (cut == "cut after commit"):
            return
        self._armed = None
        if cut == "cut at commit, lost":
            self._proxy.set_mode("blackhole", port)
            self._aside(cut, port, lambda: self._proxy.swallowed[port])
        elif cut == "cut at commit, done":
            self._proxy.set_mode("drop_replies", port)
            self._aside(cut, port, lambda: cut in self._db.effects())
        else:
            self._cut(cut, port)

    def join(self) -> None:
        """Wait for what happens beside the worker."""
        for helper in self._helpers:
            helper.join(60)

    def _aside(self, cut: str, port: int, when: Any) -> None:
        def wait_and_cut() -> None:
            eventually(when)
            self._cut(cut, port)

        self._helpers.append(threading.Thread(target=wait_and_cut))
        self._helpers[-1].start()

    def _cut(self, cut: str, port: int) -> None:
        self._proxy.set_mode("cut", port)
        self._proxy.set_mode("ok")
        self.reached[cut] += 1

    def _fails(self, connection: Connection, statement: str, cut: str, kind: ErrorKind) -> None:
        try:
            connection.execute(text(statement))
        except Exception as error:
            self.reached[cut] += adapter_for(connection.dialect).classify(error) is kind
            raise

    def _deadlock(self, connection: Connection) -> None:
        """The other transaction is the heavier one, and slow to look for deadlocks: the handler's is the victim."""
        connection.execute(update(Order).where(Order.id == 1).values(status="mine"))
        locked, number = threading.Event(), 0

        def other() -> None:
            nonlocal number
            with self._db.engine.connect() as beside:
                if self._kind == "postgresql":
                    beside.execute(text("SET LOCAL deadlock_timeout = '60s'"))
                number = beside.scalar(text(KILL[self._kind][0])) or 0
                beside.execute(Order.__table__.insert(), [{"id": 1000 + n, "status": "heavy"} for n in range(50)])  # type: ignore[attr-defined]
                beside.execute(select(Order).where(Order.id == 2).with_for_update())
                locked.set()
                beside.execute(update(Order).where(Order.id == 1).values(status="theirs"))
                beside.rollback()

        self._helpers.append(threading.Thread(target=other))
        self._helpers[-1].start()
        # InnoDB's list of transactions is made anew only when nobody has read it for 0.1 s: look more rarely.
        blocked = partial(eventually, lambda: threading.Event().wait(0.15) or (locked.is_set() and self._waits(number)))
        self.beside(blocked)
        self._fails(connection, "UPDATE orders SET status = 'mine' WHERE id = 2", "deadlock", ErrorKind.DEADLOCK)

    def _do(self, statement: str) -> None:
        with self._db.engine.begin() as connection:
            connection.execute(text(statement))

    def _waits(self, number: int) -> bool:
        with self._db.engine.connect() as connection:
            return bool(connection.scalar(text(WAITS[self._kind].format(number))))


def call(function: Callable[[], Any]) -> Any:
    """As a sync handler waits."""
    return function()


def call_beside_loop(function: Callable[[], Any]) -> Any:
    """As an async handler waits, inside SQLAlchemy's greenlet."""
    return await_only(asyncio.to_thread(function))


def port_of(connection: Connection) -> int:
    """The client's port of the connection."""
    breaker = Breaker(connection)
    transport, own = breaker._transport, breaker._socket
    name = transport.get_extra_info("sockname") if transport is not None else own and own.getsockname()
    breaker.close()
    return int(name[1])


def effect(task: Any, cut: str) -> dict[str, str]:
    """The values of one effect."""
    return {"task_id": str(task), "note": cut}


EFFECTS = Effect.__table__
