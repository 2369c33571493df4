"""A row that cannot be decoded harms only itself; one whose name a worker does not know goes back unburned."""

from __future__ import annotations

from sa_taskqueue.states import Status
from sa_taskqueue.store.control import Choice
from sa_taskqueue.testing.trial import Trial


def test_a_body_that_does_not_fit_fails_alone(trial: Trial) -> None:
    @trial.queue.task
    def work(n: int) -> None: ...

    ids = trial.put_many(work, 5)
    trial.write(ids[2], body='{"n": "two"}')
    trial.write(ids[3], body='{"m": 3}')
    trial.drain()
    assert [row.status for row in trial.rows(ids)] == [
        Status.COMPLETED,
        Status.COMPLETED,
        Status.FAILED,
        Status.FAILED,
        Status.COMPLETED,
    ]
    assert {trial.error(task)["code"] for task in ids[2:4]} == {"undecodable"}


def test_a_mended_body_runs_when_an_operator_revives_it(trial: Trial) -> None:
    ran: list[int] = []

    @trial.queue.task
    def work(n: int) -> None:
        ran.append(n)

    task = trial.put(work, 1)
    trial.write(task, body='{"n": "one"}')
    trial.drain()
    trial.write(task, body='{"n": 7}')
    trial.operate(lambda control: control.retry(Choice(ids=[task])))
    trial.drain()
    assert ran == [7]
    assert trial.row(task).status == Status.COMPLETED


def test_an_unknown_name_goes_back_unburned_for_who_knows_it(trial: Trial) -> None:
    task = trial.put(trial.queue.named("elsewhere"))
    worker = trial.drain(unknown_delay=3600.0)
    row = trial.row(task)
    assert (row.status, row.attempt, row.crashes) == (Status.SCHEDULED, 0, 0)
    assert worker.counts.unknown == 1

    @trial.queue.task(name="elsewhere")
    def elsewhere() -> None: ...

    trial.write(task, scheduled_at=trial.now())
    with trial.running():
        trial.eventually(task, Status.COMPLETED)
    assert trial.row(task).attempt == 1


def test_an_unknown_name_fails_after_the_set_time(trial: Trial) -> None:
    task = trial.put(trial.queue.named("elsewhere"))
    trial.drain(unknown_after=0)
    assert (trial.row(task).status, trial.error(task)["code"]) == (Status.FAILED, "unknown_task")


def test_a_holder_gives_back_unknown_names_as_scheduled(trial: Trial) -> None:
    task = trial.put(trial.queue.named("elsewhere"))
    holder = trial.holder()
    assert holder.give_back_unknown(holder.claim(), delay=3600.0, fail_after=3600.0) == {task}
    assert (trial.row(task).status, trial.row(task).attempt) == (Status.SCHEDULED, 0)
    assert holder.claim() == []
