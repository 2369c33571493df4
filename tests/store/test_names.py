"""Table names that need quoting, in every statement of the store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from sqlalchemy import Engine, Table
from sqlalchemy.orm import DeclarativeBase

from sa_taskqueue.models import QueueMixin
from sa_taskqueue.states import Status
from sa_taskqueue.store import Settlement
from tests.store.bench import Bench, pairs


class Base(DeclarativeBase):
    pass


class Odd(QueueMixin, Base):
    __tablename__ = 'per%cent %s `and "quotes'


@pytest.fixture
def odd_bench(engine: Engine, tasks: Table) -> Iterator[Bench]:
    """A bench over a table with an odd name, in the database of `tasks`."""
    Base.metadata.create_all(engine)
    yield Bench(engine, Base.metadata.tables[Odd.__tablename__])
    Base.metadata.drop_all(engine)


def test_a_table_name_with_quotes_and_percent_signs_serves_every_statement(odd_bench: Bench) -> None:
    bench, store = odd_bench, odd_bench.store
    bench.add(6)
    done, renewed, released, unknown, lost = bench.claim(5)
    bench.add(status=Status.SCHEDULED)
    with bench.transaction() as connection:
        store.check_schema(connection)
        assert store.settle(connection, [Settlement(done.id, done.epoch, Status.COMPLETED)]) == {done.id}
        assert store.renew(connection, pairs([renewed]), lease=60).extended == {renewed.id}
        assert store.release(connection, pairs([released])) == {released.id}
        assert store.give_back_unknown(connection, pairs([unknown]), delay=60, fail_after=60) == {unknown.id}
        store.renew(connection, pairs([lost]), lease=-1)
        assert store.take_over(connection, 10, max_crashes=3).freed == [lost.id]
        assert store.promote(connection, 10) == 1
