"""`install` and the session classes of others (rule 19)."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Engine, event
from sqlalchemy.orm import Session, scoped_session, sessionmaker

from sa_taskqueue.exceptions import InvalidSetting
from sa_taskqueue.session import TaskSession, TaskSessionMixin, enqueue, enqueue_many, install
from tests.session.models import Job, send_receipt

Stored = Callable[..., list[Any]]

FEW = [{"order_id": 1}, {"order_id": 2}]


def _use(session: Any) -> None:
    """A savepoint rolled back, one kept, a duplicate and a bulk: 4 rows and one wake-up."""
    with session.begin_nested() as savepoint:
        session.enqueue(send_receipt.using(unique_key="k"), 1)
        session.flush()
        savepoint.rollback()
    session.enqueue(send_receipt.using(unique_key="k"), 1)
    session.enqueue(send_receipt.using(unique_key="k"), 1)
    session.enqueue(send_receipt, 1)
    session.enqueue_many(send_receipt, FEW)
    session.commit()


async def _use_async(session: Any) -> None:
    savepoint = await session.begin_nested()
    session.enqueue(send_receipt.using(unique_key="k"), 1)
    await session.flush()
    await savepoint.rollback()
    session.enqueue(send_receipt.using(unique_key="k"), 1)
    session.enqueue(send_receipt.using(unique_key="k"), 1)
    session.enqueue(send_receipt, 1)
    await session.enqueue_many(send_receipt, FEW)
    await session.commit()


@pytest.fixture(autouse=True)
def sqlalchemys_own_classes_stay_as_they_are() -> Any:
    yield
    assert not hasattr(Session, "enqueue")
    assert not Session().dispatch.before_flush
    from sqlalchemy.ext.asyncio import AsyncSession

    assert not hasattr(AsyncSession, "enqueue")
    assert AsyncSession.sync_session_class is Session


@pytest.mark.servers("sqlite", "postgresql")
def test_a_sessionmaker(engine: Engine, jobs: type[Job], stored: Stored, woken: list[str]) -> None:
    factory = install(sessionmaker(engine))
    with factory() as session:
        _use(session)
    assert len(stored()) == 4
    assert woken == ["mail"]
    assert not hasattr(sessionmaker(engine)(), "enqueue")


@pytest.mark.servers("sqlite")
def test_a_subclass_of_session(engine: Engine, jobs: type[Job], stored: Stored, woken: list[str]) -> None:
    class MySession(Session):
        pass

    assert install(MySession) is MySession
    install(MySession)
    with MySession(engine) as session:
        _use(session)
    assert len(stored()) == 4
    assert woken == ["mail"]


@pytest.mark.servers("sqlite")
def test_a_scoped_session(engine: Engine, jobs: type[Job], stored: Stored, woken: list[str]) -> None:
    registry = install(scoped_session(sessionmaker(engine)))
    _use(registry)
    registry.remove()
    assert len(stored()) == 4
    assert woken == ["mail"]


@pytest.mark.servers("sqlite")
def test_a_scoped_task_session_and_the_free_functions(engine: Engine, jobs: type[Job], stored: Stored) -> None:
    registry = scoped_session(sessionmaker(engine, class_=TaskSession))
    enqueue(registry, send_receipt, 1)
    enqueue_many(registry, send_receipt, FEW)
    registry.commit()
    registry.remove()
    assert len(stored()) == 3


@pytest.mark.servers("sqlite", "postgresql")
async def test_an_async_sessionmaker(async_engine: Any, jobs: type[Job], stored: Stored, woken: list[str]) -> None:
    from sqlalchemy.ext.asyncio import async_sessionmaker

    factory = install(async_sessionmaker(async_engine))
    async with factory() as session:
        await _use_async(session)
    assert len(stored()) == 4
    assert woken == ["mail"]
    assert not hasattr(async_sessionmaker(async_engine)(), "enqueue")


@pytest.mark.servers("sqlite")
async def test_a_subclass_of_async_session(async_engine: Any, jobs: type[Job], stored: Stored) -> None:
    from sqlalchemy.ext.asyncio import AsyncSession

    class MyAsyncSession(AsyncSession):
        pass

    install(MyAsyncSession)
    async with MyAsyncSession(async_engine) as session:
        await _use_async(session)
    assert len(stored()) == 4


@pytest.mark.servers("sqlite")
async def test_an_async_scoped_session(async_engine: Any, jobs: type[Job], stored: Stored, woken: list[str]) -> None:
    from sqlalchemy.ext.asyncio import async_scoped_session, async_sessionmaker

    registry = install(async_scoped_session(async_sessionmaker(async_engine), scopefunc=lambda: "one"))
    await _use_async(registry)
    await registry.remove()
    assert len(stored()) == 4
    assert woken == ["mail"]


@pytest.mark.servers("sqlite")
async def test_the_free_functions_serve_a_plain_async_session(
    async_engine: Any, jobs: type[Job], stored: Stored
) -> None:
    from sqlalchemy.ext.asyncio import AsyncSession

    async with AsyncSession(async_engine) as session:
        enqueue(session, send_receipt.using(unique_key="k"), 1)
        await enqueue_many(session, send_receipt, FEW)
        await session.commit()
    assert len(stored()) == 3


@pytest.mark.servers("sqlite")
@pytest.mark.parametrize("way", ["install", "mixin"])
def test_flask_sqlalchemy(url: Any, jobs: type[Job], stored: Stored, woken: list[str], way: str) -> None:
    flask = pytest.importorskip("flask")
    flask_sqlalchemy = pytest.importorskip("flask_sqlalchemy")
    from flask_sqlalchemy.session import Session as FlaskSession

    from sa_taskqueue.session import prepare_sqlite

    class MixedSession(TaskSessionMixin, FlaskSession):
        pass

    app = flask.Flask(__name__)
    app.config["SQLALCHEMY_DATABASE_URI"] = url.render_as_string(hide_password=False)
    db = flask_sqlalchemy.SQLAlchemy(app, session_options={"class_": MixedSession} if way == "mixin" else {})
    if way == "install":
        install(db.session)
    with app.app_context():
        prepare_sqlite(db.engine)
        session = db.session if way == "install" else db.session()
        _use(session)
        db.engine.dispose()
    assert len(stored()) == 4
    assert woken == ["mail"]


@pytest.mark.servers("sqlite")
def test_sqlmodels_session(engine: Engine, jobs: type[Job], stored: Stored, woken: list[str]) -> None:
    sqlmodel = pytest.importorskip("sqlmodel")

    with install(sessionmaker(engine, class_=sqlmodel.Session))() as session:
        _use(session)
    assert len(stored()) == 4
    assert woken == ["mail"]


@pytest.mark.servers("sqlite")
def test_an_event_of_the_users_on_the_same_class_stays(engine: Engine, jobs: type[Job], stored: Stored) -> None:
    factory = install(sessionmaker(engine))
    flushed: list[object] = []
    event.listen(factory, "after_flush", lambda session, _context: flushed.append(session))
    with factory.begin() as session:
        session.enqueue(send_receipt, 1)  # type: ignore[attr-defined]
    assert len(flushed) == 1


@pytest.mark.parametrize("target", [Session, object(), "app:Session", int])
def test_what_cannot_be_installed_into_is_refused(target: Any) -> None:
    with pytest.raises(InvalidSetting, match="sessionmaker"):
        install(target)


def test_importing_the_package_needs_no_greenlet_and_touches_no_class_of_sqlalchemys() -> None:
    program = (
        "import sys; sys.modules['greenlet'] = None\n"
        "import sa_taskqueue.session as s\n"
        "from sqlalchemy.orm import Session, sessionmaker\n"
        "assert not Session().dispatch.before_flush\n"
        "assert 'sqlalchemy.ext.asyncio' not in sys.modules\n"
        "s.install(sessionmaker())\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
