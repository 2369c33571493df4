from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sa_taskqueue.exceptions import InvalidSetting, MissingExtra, UnknownPublisher
from sa_taskqueue.publishers import CallablePublisher, publisher_for, registry
from tests.checks.source import ROOT


def test_an_unknown_scheme_lists_those_that_are_known() -> None:
    for url in ("carrier-pigeon://loft", "localhost:9092", ""):
        with pytest.raises(UnknownPublisher) as caught:
            publisher_for(url)
        assert all(f"{scheme}://" in str(caught.value) for scheme in registry.OWN)


def test_a_client_that_is_not_installed_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.OWN, "absent", ("no_such_module", "Publisher", "absent"))
    with pytest.raises(MissingExtra, match=r'pip install "sa-taskqueue\[absent\]"'):
        publisher_for("absent://host")


def test_a_publisher_is_passed_on_and_a_function_wrapped() -> None:
    own = CallablePublisher(print)
    assert publisher_for(own) is own
    assert isinstance(publisher_for(print, batch=True), CallablePublisher)
    with pytest.raises(InvalidSetting, match="given to the publisher itself"):
        publisher_for(own, batch=True)
    with pytest.raises(InvalidSetting, match="a URL, a publisher or a function"):
        publisher_for(5)  # type: ignore[arg-type]


PIGEON = """
class PigeonPublisher:
    def __init__(self, url, *, loft="north"):
        self.url, self.loft = url, loft

    async def open(self): ...

    async def publish(self, messages):
        from sa_taskqueue.publishers import Sent
        return [Sent() for _ in messages]

    async def close(self): ...
"""


def test_another_distribution_brings_its_own_by_entry_point(tmp_path: Path) -> None:
    """In a process of its own: entry points are read once."""
    (tmp_path / "pigeon.py").write_text(PIGEON)
    about = tmp_path / "pigeon-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: pigeon\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[sa_taskqueue.publishers]\npigeon = pigeon:PigeonPublisher\n")
    code = """if True:
        import asyncio
        from sa_taskqueue.exceptions import UnknownPublisher
        from sa_taskqueue.publishers import Publisher, publisher_for
        from tests.publishers.messages import message

        found = publisher_for("pigeon+post://loft", loft="south")
        assert isinstance(found, Publisher), found
        print(type(found).__name__, found.url, found.loft, asyncio.run(found.publish([message()])))
        try:
            publisher_for("other://")
        except UnknownPublisher as error:
            print(error)
    """
    path = {"PYTHONPATH": f"{ROOT}:{tmp_path}"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=path, check=False)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == "PigeonPublisher pigeon+post://loft south [Sent()]"
    assert "pigeon://" in second
