"""The conformance suite is star-importable, and no test of it is hidden by another of the same name."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys

from tests.checks.source import ROOT


def test_a_star_import_gives_each_test_of_each_module() -> None:
    suite = importlib.import_module("sa_taskqueue.testing.suite")
    modules = [
        importlib.import_module(f"{suite.__name__}.{found.name}") for found in pkgutil.iter_modules(suite.__path__)
    ]
    names = [name for module in modules for name in vars(module) if name.startswith("test_")]
    assert len(names) > 60
    assert sorted(names) == sorted(name for name in vars(suite) if name.startswith("test_"))


def test_pytest_is_needed_only_by_the_suite_itself() -> None:
    code = "import sys, sa_taskqueue.testing; sys.exit('pytest' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)
