"""Bodies, keys, headers, results and errors come back as they were stored, whatever is in them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sa_taskqueue.retry import fixed, never
from sa_taskqueue.states import Status
from sa_taskqueue.testing.trial import Trial

WORDS = "Ærøskøbing, Ω, 北京, עברית, é and e\u0301, \U0001f680\U0001f469\u200d\U0001f4bb \U00020bb7"

VALUES: dict[str, Any] = {
    "unicode": WORDS,
    "quotes": 'it\'s "quoted" `so` \\ and \\\\ and \\u0041',
    "placeholders": "%s %(n)s %% :name ? $1 {0} @p0 [x]",
    "controls": "tab\t, newline\n, return\r, delete\x7f, bell\x07",
    "spaces": "  in front and behind  ",
    "empty": "",
    "numbers": [0, -1, 2**53, -(2**63), 0.1, -1.5, 1e-300],
    "nested": {"a": [None, True, False, {"": [], "key with spaces": {}}]},
    "big": "\U0001f680" * 50_000,
}


@pytest.mark.parametrize("name", VALUES)
def test_a_body_comes_back_as_it_was_stored(db: Trial, name: str) -> None:
    @db.queue.task
    def work(value: Any) -> None: ...

    stored, bulk = work.new(VALUES[name]), work.new(value=VALUES[name])
    db.session(lambda session: [session.enqueue(work.using(id=stored.id), VALUES[name]).id])
    db.session(lambda session: session.enqueue_many(work, [bulk] * 1))
    claimed = {task.id: json.loads(task.body) for task in db.holder().claim()}
    assert claimed == {stored.id: {"value": VALUES[name]}, bulk.id: {"value": VALUES[name]}}


def test_results_come_back_as_they_were_returned(trial: Trial) -> None:
    @trial.queue.task(store_result=True)
    def work(name: str) -> Any:
        return VALUES[name]

    ids = {name: trial.put(work, name) for name in VALUES}
    trial.drain()
    assert {name: json.loads(trial.row(task).result) for name, task in ids.items()} == VALUES


def test_errors_and_their_history_come_back_as_they_were_raised(trial: Trial) -> None:
    @trial.queue.task(retry=fixed(0, max_attempts=3))
    def work() -> None:
        raise ValueError(WORDS + ": it's 100 %s")

    task = trial.put(work)
    trial.drain()
    row, error = trial.row(task), trial.error(task)
    assert (row.status, row.attempt) == (Status.FAILED, 3)
    assert (error["type"], error["message"], error["attempt"]) == ("ValueError", WORDS + ": it's 100 %s", 3)
    assert "raise ValueError" in error["traceback"]
    assert [entry["attempt"] for entry in json.loads(row.errors)] == [1, 2, 3]


def test_an_error_with_what_no_database_stores_is_still_recorded(trial: Trial) -> None:
    @trial.queue.task(retry=never)
    def work() -> None:
        raise ValueError("NUL \x00 and half a pair \ud800")

    task = trial.put(work)
    trial.drain()
    assert trial.row(task).status == Status.FAILED
    assert trial.error(task)["message"].startswith("NUL ")


def test_headers_and_long_names_come_back(db: Trial) -> None:
    headers = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tenant": WORDS}

    @db.queue.task(name="n" * 120, queue="q" * 64)
    def work() -> None: ...

    db.put(work.using(headers=headers))
    [claimed] = db.holder().claim(queue="q" * 64)
    assert (claimed.name, claimed.queue) == ("n" * 120, "q" * 64)
    assert json.loads(claimed.headers or "") == headers


def test_names_of_queues_differ_by_case(db: Trial) -> None:
    @db.queue.task
    def work() -> None: ...

    lower, upper = db.put(work.using(queue="mail")), db.put(work.using(queue="MAIL"))
    holder = db.holder()
    assert [task.id for task in holder.claim(queue="mail")] == [lower]
    assert [task.id for task in holder.claim(queue="MAIL")] == [upper]
