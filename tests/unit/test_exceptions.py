from __future__ import annotations

import ast
import copy
import inspect
import pickle
import string
import typing
import uuid

import pytest

from sa_taskqueue import exceptions
from sa_taskqueue.exceptions import InvalidArguments, InvalidName, LeaseLost, TaskQueueError
from tests.checks.source import in_package


def _kinds() -> list[type[TaskQueueError]]:
    return [getattr(exceptions, name) for name in exceptions.__all__]


def _placeholders(kind: type[TaskQueueError]) -> set[str]:
    return {field for _, field, _, _ in string.Formatter().parse(inspect.getdoc(kind) or "") if field}


@pytest.mark.parametrize("kind", _kinds(), ids=lambda kind: kind.__name__)
def test_every_field_of_a_message_is_declared_as_an_attribute(kind: type[TaskQueueError]) -> None:
    assert kind.__doc__ is not None
    assert _placeholders(kind) <= set(typing.get_type_hints(kind))


def test_codes_are_unique() -> None:
    codes = [kind.code for kind in _kinds()]
    assert len(codes) == len(set(codes))


def test_every_raise_gives_all_fields_of_the_message() -> None:
    wrong = []
    for source in in_package():
        for node in source.nodes:
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            kind = getattr(exceptions, node.func.id, None)
            given = {keyword.arg for keyword in node.keywords}
            if kind is not None and None not in given and (given != _placeholders(kind) or node.args):
                wrong.append(f"{source.name}:{node.lineno} {node.func.id}: {sorted(map(str, given))}")
    assert not wrong


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    drawn = [line.partition("+-- ")[2].split()[0] for line in (exceptions.__doc__ or "").splitlines() if "+-- " in line]
    assert sorted([*drawn, "TaskQueueError"]) == sorted(exceptions.__all__)


def test_the_fields_are_attributes_and_part_of_the_message() -> None:
    error = InvalidName(field="queue", value="a b", limit=64)
    assert (error.field, error.value, error.limit) == ("queue", "a b", 64)
    assert str(error) == 'The queue name "a b" is refused: use 1 to 64 of the characters A-Z a-z 0-9 _ . : -'


def test_a_huge_or_unprintable_value_is_shortened_and_made_printable() -> None:
    message = str(InvalidName(field="queue", value="\0\ud800" + "x" * 1_000_000, limit=64))
    assert len(message) < 500
    assert "\\x00\\ud800xxx" in message


def test_wrong_arguments_are_type_errors_as_well_as_value_errors() -> None:
    assert issubclass(InvalidArguments, TypeError)
    assert issubclass(InvalidArguments, ValueError)


def test_errors_can_be_pickled_and_copied() -> None:
    error = LeaseLost(id=uuid.UUID(int=7), epoch=3)
    for twin in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (type(twin), twin.id, twin.epoch, str(twin)) == (LeaseLost, error.id, 3, str(error))


def test_an_error_without_docstrings_still_says_its_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LeaseLost, "__doc__", None)  # as under python -OO
    assert str(LeaseLost(id=uuid.UUID(int=7), epoch=3)) == "lease_lost: epoch, id"
