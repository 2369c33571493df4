from __future__ import annotations

import os
import threading
import time
import uuid
from datetime import UTC, datetime, timedelta

import pytest

from sa_taskqueue.ids import new_id, timestamp_of


def test_an_id_is_a_uuid_of_version_7() -> None:
    made = new_id()
    assert made.version == 7
    assert made.variant == uuid.RFC_4122


def test_ids_rise_within_a_thread() -> None:
    ids = [new_id() for _ in range(50_000)]
    assert ids == sorted(ids)
    assert len(set(ids)) == len(ids)


def test_ids_of_many_threads_are_unique_and_rise_in_each() -> None:
    made: list[list[uuid.UUID]] = []

    def make() -> None:
        made.append([new_id() for _ in range(5_000)])

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(ids == sorted(ids) for ids in made)
    assert len({each for ids in made for each in ids}) == 40_000


def test_ids_rise_when_the_clock_goes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    before = new_id()
    monkeypatch.setattr(time, "time_ns", lambda: 1_000_000_000)
    assert before < new_id() < new_id()


def test_ids_rise_when_one_millisecond_is_used_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "urandom", lambda size: b"\xff" * size)
    now = time.time_ns()
    monkeypatch.setattr(time, "time_ns", lambda: now)
    ids = [new_id() for _ in range(3)]
    assert ids == sorted(set(ids))


def test_seeding_the_random_module_does_not_repeat_ids() -> None:
    import random

    random.seed(1)
    first = new_id()
    random.seed(1)
    assert first.int & (1 << 62) - 1 != new_id().int & (1 << 62) - 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_makes_other_ids_even_if_the_lock_was_held() -> None:
    from sa_taskqueue import ids

    read, write = os.pipe()
    with ids._generator._lock:  # as another thread would hold it at the moment of the fork
        child = os.fork()
        if child == 0:
            os.write(write, new_id().bytes)
            os._exit(0)
    os.waitpid(child, 0)
    assert uuid.UUID(bytes=os.read(read, 16)) != new_id()
    os.close(read)
    os.close(write)


def test_an_id_tells_when_it_was_made() -> None:
    before = datetime.now(UTC)
    made = timestamp_of(new_id())
    assert before - timedelta(seconds=1) < made < datetime.now(UTC) + timedelta(minutes=1)
    assert made.tzinfo is UTC
