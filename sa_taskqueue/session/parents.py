"""What a keyed row is related to, while it is out of the unit of work.

A parent's flush warns about a row in its collection that is not in the session, so for that time the row leaves it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import inspect
from sqlalchemy.orm import MANYTOONE, RelationshipProperty, object_mapper
from sqlalchemy.orm.attributes import set_committed_value
from sqlalchemy.orm.collections import collection_adapter


def leave_parents(row: Any) -> dict[str, Any]:
    """Take the row from the objects it belongs to, and return them by relationship."""
    parents = {relationship.key: parent for relationship, parent in _parents(row)}
    for key in parents:
        setattr(row, key, None)
    return parents


def return_to_parents(row: Any, parents: dict[str, Any]) -> None:
    """Give the row its parents, flushed by now, and the foreign keys that refer to them."""
    for key, parent in parents.items():
        set_committed_value(row, key, parent)
    mapper = object_mapper(row)
    for relationship, parent in _parents(row):
        parent_mapper = object_mapper(parent)
        for local, remote in relationship.local_remote_pairs or ():
            value = getattr(parent, parent_mapper.get_property_by_column(remote).key)
            set_committed_value(row, mapper.get_property_by_column(local).key, value)


def show_to_parents(row: Any, parents: dict[str, Any]) -> None:
    """Put the row back where its parents have loaded what belongs to them; it is stored, so no history is written."""
    for relationship in object_mapper(row).relationships:
        parent = parents.get(relationship.key)
        reverse = relationship.back_populates
        if parent is None or reverse is None or reverse not in inspect(parent).dict:
            continue
        if object_mapper(parent).relationships[reverse].uselist:
            collection_adapter(getattr(parent, reverse)).append_without_event(row)
        else:
            set_committed_value(parent, reverse, row)


def _parents(row: Any) -> Iterator[tuple[RelationshipProperty[Any], Any]]:
    """Yield the many-to-one relationships of the row that are set, each with its object."""
    present = inspect(row).dict
    for relationship in object_mapper(row).relationships:
        parent = present.get(relationship.key)
        if relationship.direction is MANYTOONE and parent is not None:
            yield relationship, parent
