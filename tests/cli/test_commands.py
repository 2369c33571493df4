"""The commands against a database, on every server."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import URL, Engine, MetaData
from sqlalchemy.orm import sessionmaker

from sa_taskqueue import TaskSession
from sa_taskqueue.cli.loading import load
from tests.cli.conftest import Shell

TARGET = "cli_app:queue"


@pytest.fixture
def database(app: Path, tables: MetaData, url: URL, monkeypatch: pytest.MonkeyPatch) -> str:
    text = url.render_as_string(hide_password=False)
    monkeypatch.setenv("SA_TASKQUEUE_URL", text)
    return text


@pytest.fixture
def enqueue(database: str, engine: Engine) -> Any:
    queue = load(TARGET, database).queue
    session = sessionmaker(engine, class_=TaskSession)

    def enqueue(name: str, **arguments: Any) -> str:
        with session.begin() as opened:
            return str(opened.enqueue(queue.handlers[name], **arguments).id)

    return enqueue


def data(shell: Shell, *arguments: str) -> Any:
    return json.loads(shell.ok(*arguments, "--json"))


def counts(shell: Shell) -> dict[str, dict[str, int]]:
    return {each["queue"]: each["counts"] for each in data(shell, "status", TARGET)["queues"]}


def test_a_worker_drains_the_queues_it_is_given(shell: Shell, enqueue: Any) -> None:
    enqueue("send", to="ann")
    enqueue("tidy")
    shell.ok("worker", TARGET, "--queue", "mail=2", "--drain")
    assert counts(shell) == {"mail": {"COMPLETED": 1}, "default": {"NEW": 1}}


def test_without_queue_the_worker_serves_the_default_queue(shell: Shell, enqueue: Any) -> None:
    enqueue("tidy")
    shell.ok("worker", TARGET, "--drain")
    assert counts(shell) == {"default": {"COMPLETED": 1}}


def test_a_queue_that_no_handler_uses_is_warned_of(shell: Shell, database: str, caplog: Any) -> None:
    shell.ok("worker", TARGET, "--queue", "mial=2", "--drain")
    assert "no handler uses the queue mial; those in use are: default, mail" in caplog.text


def test_max_tasks_ends_the_worker(shell: Shell, enqueue: Any) -> None:
    for _ in range(3):
        enqueue("tidy")
    shell.ok("worker", TARGET, "--max-tasks", "2")
    assert counts(shell) == {"default": {"COMPLETED": 2, "NEW": 1}}


def test_a_failed_task_is_listed_with_its_error_and_runs_again_on_retry(shell: Shell, enqueue: Any) -> None:
    failed = enqueue("send", to="nobody")
    shell.ok("worker", TARGET, "--queue", "mail", "--drain")
    [task] = data(shell, "list", TARGET, "--status", "FAILED")["tasks"]
    assert (task["id"], task["name"], "no such address" in task["error"]) == (failed, task["name"], True)
    line = shell.ok("list", TARGET, "--status", "FAILED").splitlines()[1]
    assert line.endswith("no such address")
    assert data(shell, "retry", TARGET, failed)["retried"] == 1
    assert counts(shell) == {"mail": {"NEW": 1}}
    assert data(shell, "retry", TARGET, failed)["retried"] == 0
    assert "left: 1 of no task, or of one that is not FAILED or CANCELLED" in shell.ok("retry", TARGET, failed)


def test_cancel_takes_waiting_tasks_by_queue(shell: Shell, enqueue: Any) -> None:
    enqueue("send", to="ann")
    enqueue("tidy")
    assert data(shell, "cancel", TARGET, "--all", "--queue", "mail")["cancelled"] == 1
    assert counts(shell) == {"mail": {"CANCELLED": 1}, "default": {"NEW": 1}}


def test_retry_by_name_leaves_other_names(shell: Shell, enqueue: Any) -> None:
    enqueue("send", to="ann")
    enqueue("tidy")
    assert data(shell, "cancel", TARGET, "--all")["cancelled"] == 2
    assert data(shell, "retry", TARGET, "--all", "--name", "no_such_task")["retried"] == 0


def test_prune_deletes_ended_tasks_older_than_asked(shell: Shell, enqueue: Any) -> None:
    enqueue("tidy")
    shell.ok("worker", TARGET, "--drain")
    assert data(shell, "prune", TARGET)["deleted"] == 0
    assert data(shell, "prune", TARGET, "--older-than", "0s", "--status", "FAILED")["deleted"] == 0
    assert data(shell, "prune", TARGET, "--older-than", "0s")["deleted"] == 1
    assert counts(shell) == {}


def test_check_names_table_and_database(shell: Shell, database: str) -> None:
    assert "task" in shell.ok("check", TARGET)
    assert data(shell, "check", TARGET)["ok"] is True


def test_for_people_there_are_tables(shell: Shell, enqueue: Any) -> None:
    enqueue("send", to="ann")
    header, row = shell.ok("status", TARGET).splitlines()
    assert header.split()[:3] == ["queue", "scheduled", "new"]
    assert row.split()[:3] == ["mail", "0", "1"]
    assert "send" in shell.ok("list", TARGET, "--queue", "mail", "--limit", "1")


@pytest.mark.parametrize(
    "arguments",
    [
        ("retry", TARGET),
        ("retry", TARGET, "not-a-uuid"),
        ("cancel", TARGET, "018f4e9b-0000-7000-8000-000000000000", "--all"),
        ("cancel", TARGET, "018f4e9b-0000-7000-8000-000000000000", "--queue", "mail"),
        ("prune", TARGET, "--older-than", "soon"),
        ("worker", TARGET, "--queue", "mail=many"),
        ("worker", TARGET, "--queue", "=2"),
        ("list", TARGET, "--status", "LOST"),
    ],
)
@pytest.mark.servers("sqlite")
def test_a_wrong_command_line_is_a_usage_error(shell: Shell, database: str, arguments: tuple[str, ...]) -> None:
    assert shell.run(*arguments).exit_code == 2


@pytest.mark.servers("sqlite")
def test_a_setting_out_of_range_is_one_sentence(shell: Shell, database: str) -> None:
    result = shell.run("worker", TARGET, "--queue", "mail=0")
    assert result.exit_code == 1
    assert "queues['mail'] is 0" in result.stderr


def test_version_says_what_is_installed(shell: Shell) -> None:
    pytest.importorskip("hatchling")
    lines = shell.ok("version").splitlines()
    assert [line.split()[0] for line in lines] == ["sa-taskqueue", "sqlalchemy", "python"]
