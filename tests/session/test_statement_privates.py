"""What `enqueue_from` uses of SQLAlchemy that has no public word: here a release that changes it is found out first."""

from __future__ import annotations

from sqlalchemy import delete, insert, select, update
from sqlalchemy.orm import with_loader_criteria

from sa_taskqueue.store.by_statement import as_core, without
from tests.session.statement_models import Order


def test_where_and_returning_can_be_taken_away() -> None:
    change = update(Order).where(Order.id == 1).values(status="x").returning(Order.id)
    assert len(change._where_criteria) == 1
    assert len(change._returning) == 1
    bare = str(without(change, "_where_criteria", "_returning"))
    assert "WHERE" not in bare
    assert "RETURNING" not in bare
    assert "WHERE" in str(change)
    assert delete(Order)._where_criteria == insert(Order)._returning == ()


def test_the_values_of_an_update_are_known_by_column() -> None:
    assert [getattr(key, "key", key) for key in update(Order).values(status="x")._values or ()] == ["status"]
    assert update(Order)._values is None


def test_a_statement_of_the_orm_can_be_made_one_of_the_core() -> None:
    found = select(Order.id)
    assert found._propagate_attrs
    assert not as_core(found)._propagate_attrs


def test_options_are_kept_and_can_be_moved() -> None:
    option = with_loader_criteria(Order, Order.tenant == "a")
    assert update(Order).options(option)._with_options == (option,)
    assert insert(Order).options(option)._with_options == (option,)
    assert not select(Order)._distinct
    assert select(Order).distinct()._distinct
