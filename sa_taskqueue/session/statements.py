"""The statements that rows can be made from: what is asked of them before they are sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sqlalchemy import Delete, Insert, Select, Table, Update, select
from sqlalchemy.sql.elements import ColumnElement

from sa_taskqueue.adapters.registry import adapter_for
from sa_taskqueue.columns import columns_not_null
from sa_taskqueue.exceptions import InvalidSetting, UnsupportedStatement

if TYPE_CHECKING:
    from sqlalchemy import Dialect
    from sqlalchemy.orm import Session

    from sa_taskqueue.adapters.base import Adapter
    from sa_taskqueue.adapters.derived import Derivation

AnyStatement = Select[*tuple[Any, ...]] | Update | Delete | Insert if TYPE_CHECKING else Any

_ALLOWED = "an update(), delete(), insert() or select() of SQLAlchemy, such as update(Order).where(...).values(...)"


def check_statement(statement: object) -> None:
    """Refuse what is no statement of these kinds, and a RETURNING of whole entities."""
    if not isinstance(statement, (Update, Delete, Insert, Select)):
        raise InvalidSetting(setting="statement", value=statement, allowed=_ALLOWED)
    if isinstance(statement, Select):
        return
    if not isinstance(statement.table, Table):
        raise InvalidSetting(setting="statement", value=str(statement.table), allowed="about a mapped class or a Table")
    returned = statement._returning  # noqa: SLF001 - there is no public word for it
    if not all(isinstance(each, ColumnElement) for each in returned):
        allowed = "columns, as rows are returned and no objects: .returning(Order.id, Order.status)"
        raise InvalidSetting(setting="returning(...)", value=[str(each) for each in returned], allowed=allowed)


def not_null_by(statement: Any) -> frozenset[Any]:
    """The columns that the statement's WHERE keeps from being NULL in the rows that new rows are made of.

    Those of an UPDATE are read when it has changed them.
    """
    found = columns_not_null(tuple(getattr(statement, "_where_criteria", ())))
    if not isinstance(statement, Update):
        return found
    changed = {getattr(column, "key", column) for column in statement._values or ()}  # noqa: SLF001
    return frozenset(each for each in found if each[1] not in changed)


class Support:
    """What the database of a session can do with the statement; raises before anything is sent."""

    def __init__(self, feature: str, dialect: Dialect) -> None:
        self._feature = feature
        self.dialect = dialect
        self.adapter: Adapter = adapter_for(dialect)

    def derivation(self) -> Derivation:
        """How values are made by SQL there."""
        found = self.adapter.derivation()
        if found is None:
            raise self._unsupported("it makes no ids and no JSON by SQL here; read the rows and use enqueue_many")
        return found

    def check(self, session: Session, statement: Any) -> None:
        """Raise UnsupportedStatement where the change cannot be made and handed on."""
        if isinstance(statement, Select) or self.adapter.changes_in_ctes:
            return
        shape = self.adapter.key_table()
        if shape is None:
            raise self._unsupported("it hands the changed rows to no other statement; enqueue from a select()")
        if session.twophase and not shape.in_two_phase:
            raise self._unsupported(
                "a transaction in two phases may use no temporary table; read the rows and use enqueue_many, or leave "
                "twophase out"
            )
        if not statement.table.primary_key.columns:
            raise self._unsupported(f"the table {statement.table} has no primary key to find the rows by")
        if isinstance(statement, Insert) and not shape.returns_inserted:
            raise self._unsupported("its INSERT does not return the keys of the new rows; enqueue from a select()")
        self._check_one_table(statement)

    def _check_one_table(self, statement: Any) -> None:
        if statement.dialect_kwargs:
            raise self._unsupported("it would be changed by key, so that options of the dialect (LIMIT) would be lost")
        criteria = getattr(statement, "_where_criteria", ())
        one = select(*statement.table.primary_key.columns).where(*criteria)
        if len(one.get_final_froms()) > 1:
            raise self._unsupported("it names several tables; use a sub-query for all but the one that is changed")

    def _unsupported(self, reason: str) -> UnsupportedStatement:
        return UnsupportedStatement(feature=self._feature, database=self.adapter.name, reason=reason)
