from __future__ import annotations

import os

from sqlalchemy import MetaData, Table, make_url

from sa_taskqueue.runtime import wakeups

TASK = Table("task", MetaData())
URL = make_url("postgresql+psycopg://me:secret@db:5432/shop")


def test_a_wake_up_reaches_whoever_listens_to_the_table() -> None:
    heard: list[str] = []
    unsubscribe = wakeups.subscribe(URL, TASK, heard.append)
    wakeups.notify(URL, TASK, "mail")
    unsubscribe()
    wakeups.notify(URL, TASK, "reports")
    assert heard == ["mail"]


def test_driver_and_user_do_not_matter_database_table_and_schema_do() -> None:
    heard: list[str] = []
    unsubscribe = wakeups.subscribe(URL, TASK, heard.append)
    wakeups.notify(make_url("postgresql+asyncpg://web@db:5432/shop"), Table("task", MetaData()), "mail")
    wakeups.notify(URL.set(database="other"), TASK, "database")
    wakeups.notify(URL, Table("task", MetaData(), schema="other"), "schema")
    wakeups.notify(URL, Table("other", MetaData()), "table")
    unsubscribe()
    assert heard == ["mail"]


def test_every_listener_hears_and_ending_one_leaves_the_others() -> None:
    first: list[str] = []
    second: list[str] = []
    end_first = wakeups.subscribe(URL, TASK, first.append)
    end_second = wakeups.subscribe(URL, TASK, second.append)
    wakeups.notify(URL, TASK, "mail")
    end_first()
    end_first()
    wakeups.notify(URL, TASK, "mail")
    end_second()
    assert (first, second) == (["mail"], ["mail", "mail"])


def test_a_forked_child_wakes_nobody_of_the_parent() -> None:
    heard: list[str] = []
    unsubscribe = wakeups.subscribe(URL, TASK, heard.append)
    child = os.fork()
    if child == 0:
        wakeups.notify(URL, TASK, "mail")
        os._exit(len(heard))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    wakeups.notify(URL, TASK, "mail")
    unsubscribe()
    assert heard == ["mail"]
