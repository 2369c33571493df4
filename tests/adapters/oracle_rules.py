"""What Oracle's SQL Language Reference forbids before 23ai, found in a statement.

SELECT, for_update_clause and row_limiting_clause: no FOR UPDATE beside a row limit or over a view that cannot keep rows
apart (ORA-02014), DISTINCT, GROUP BY, aggregates, analytic functions or set operators (ORA-01786), nor in a subquery;
ROWNUM is allowed beside it, but counts rows before the locked ones are skipped. Expressions: a list has at most 1,000
members (ORA-01795); '' is NULL, so that nothing is equal to it. UPDATE, DELETE, INSERT: no joined tables, no conflict
clause, one row of VALUES; RETURNING needs INTO. Identifiers: 128 bytes, or 30; reserved words. A condition is no value
(ORA-00923), a SELECT needs FROM (ORA-00923). CURRENT_TIMESTAMP and its like are in the time zone of the session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from sqlalchemy.dialects.oracle.base import RESERVED_WORDS
from sqlglot import exp

from tests.adapters.rules import Rules, Tree, TreeRule, limited, names, tables_with_as

LONGEST_NAME = 128
LONGEST_BEFORE_12_2 = 30
LONGEST_LIST = 1000

_SESSION_CLOCK = {"CURRENTTIMESTAMP", "LOCALTIMESTAMP", "CURRENTDATE", "SYSDATE"}
_FUNCTIONS = {"SYS_EXTRACT_UTC", "NUMTODSINTERVAL", "TO_CLOB", "COALESCE", "COUNT", "MIN", "MAX", "EXTRACT", "CASE"}


def broken_rules(sql: str, *, longest_name: int = LONGEST_NAME) -> list[str]:
    """The rules that the statement breaks; ParseError for one that is not SQL."""
    if tables_with_as(sql, "oracle"):
        return [NO_TABLE_AS]
    broken = RULES.broken(sql)
    if not broken and longest_name < LONGEST_NAME:
        broken = _rules(longest_name).broken(sql)
    return broken


def _locking(tree: Tree) -> Iterator[Tree]:
    return (select for select in tree.find_all(exp.Select, exp.SetOperation) if select.args.get("locks"))


def _beside_lock(*kinds: type[Tree], arguments: tuple[str, ...] = ()) -> TreeRule:
    def breaks(tree: Tree) -> bool:
        return any(
            any(select.args.get(name) for name in arguments) or (kinds and select.find(*kinds) is not None)
            for select in _locking(tree)
        )

    return breaks


def _counts_rows(tree: Tree) -> bool:
    locking = (select for select in _locking(tree) if not _over_view(select))
    return any(name.upper() == "ROWNUM" for select in locking for name in names(select)) or any(
        pseudo.name.upper() == "ROWNUM" for select in _locking(tree) for pseudo in select.find_all(exp.Pseudocolumn)
    )


def _over_view(select: Tree) -> bool:
    source = select.args.get("from_") or select.args.get("from")
    return source is not None and isinstance(source.this, exp.Subquery)


def _locks_inside(tree: Tree) -> bool:
    return any(select is not tree for select in _locking(tree))


def _is_empty(node: Tree | None) -> bool:
    return isinstance(node, exp.Literal) and node.is_string and node.name == ""


def _compares_empty(tree: Tree) -> bool:
    sides = (side for node in tree.find_all(exp.Binary) for side in (node.left, node.right))
    members = (member for node in tree.find_all(exp.In) for member in node.expressions)
    return any(map(_is_empty, (*sides, *members)))


def _session_clock(tree: Tree) -> bool:
    functions = {type(function).__name__.upper() for function in tree.find_all(exp.Func)}
    return bool(_SESSION_CLOCK & (functions | {name.upper().replace("_", "") for name in names(tree)}))


def _unknown_function(tree: Tree) -> bool:
    called = (each for each in tree.find_all(exp.Anonymous) if each.find_ancestor(exp.Hint) is None)
    return any(each.name.upper() not in _FUNCTIONS for each in called)


def _reserved(tree: Tree) -> bool:
    return any(name.upper() in RESERVED_WORDS for name in names(tree))


def _condition_as_value(tree: Tree) -> bool:
    shown = (one.unalias() for select in tree.find_all(exp.Select) for one in select.expressions)
    set_to = (one.expression for one in tree.expressions) if isinstance(tree, exp.Update) else ()
    return any(isinstance(one.unnest(), exp.Predicate) for one in (*shown, *set_to))


def _index_of_all_rows(tree: Tree) -> bool:
    """An index of the library's holds live rows only, or is unique."""
    if not isinstance(tree, exp.Create) or tree.args.get("kind") != "INDEX" or tree.args.get("unique"):
        return False
    keys = tree.this.args["params"].args["columns"]
    return any(not isinstance(key.this, exp.Case) or key.this.args.get("default") for key in keys)


def _too_long(limit: int) -> TreeRule:
    return lambda tree: any(len(each.name.encode()) > limit for each in tree.find_all(exp.Identifier))


def _joins(tree: Tree) -> bool:
    return isinstance(tree, exp.Update) and bool(tree.args.get("from_") or tree.args.get("from"))


NO_TABLE_AS = "no AS before the alias of a table"
IS_JSON = " IS JSON (STRICT)"  # which sqlglot does not know

_WORDS = {
    "no LIMIT": r"\bLIMIT\b",
    "no RELEASE SAVEPOINT": r"\bRELEASE\s+SAVEPOINT\b",
    "no :: for CAST": r"::",
    "no semicolon at the end": r";\s*$",
    "no ON DUPLICATE KEY": r"\bON\s+DUPLICATE\b",
    "no MATERIALIZED": r"\bMATERIALIZED\b",
}


def _trees(longest_name: int) -> dict[str, Callable[[Tree], bool]]:
    return {
        "no row limit beside FOR UPDATE": _beside_lock(arguments=("limit", "offset")),
        "no ROWNUM beside FOR UPDATE": _counts_rows,
        "no DISTINCT beside FOR UPDATE": _beside_lock(arguments=("distinct",)),
        "no GROUP BY beside FOR UPDATE": _beside_lock(arguments=("group",)),
        "no aggregate beside FOR UPDATE": _beside_lock(exp.AggFunc, exp.Window),
        "no subquery for a table beside FOR UPDATE": lambda tree: any(map(_over_view, _locking(tree))),
        "no FOR UPDATE in a subquery or a set operation": _locks_inside,
        "no list of more than 1000": lambda tree: any(
            len(one.expressions) > LONGEST_LIST for one in tree.find_all(exp.In)
        ),
        "no comparison with the empty string": _compares_empty,
        "no joined tables in UPDATE": _joins,
        "no joined tables in DELETE": lambda tree: isinstance(tree, exp.Delete) and bool(tree.args.get("using")),
        "no conflict clause": lambda tree: tree.find(exp.OnConflict) is not None,
        "no second row of VALUES": lambda tree: any(len(one.expressions) > 1 for one in tree.find_all(exp.Values)),
        "no RETURNING without INTO": lambda tree: any(not one.args.get("into") for one in tree.find_all(exp.Returning)),
        "no name too long": _too_long(longest_name),
        "no reserved word for a name": _reserved,
        "no Boolean": lambda tree: tree.find(exp.Boolean) is not None,
        "no condition as a value": _condition_as_value,
        "no SELECT without FROM": lambda tree: any(
            not (one.args.get("from_") or one.args.get("from")) for one in tree.find_all(exp.Select)
        ),
        "no clock of the session's zone": _session_clock,
        "no function that Oracle does not know": _unknown_function,
        "no limit in the subquery of a change": lambda tree: (
            isinstance(tree, exp.Update | exp.Delete) and any(map(limited, tree.find_all(exp.Select)))
        ),
        "no index of all rows": _index_of_all_rows,
    }


def _rules(longest_name: int) -> Rules:
    return Rules(
        dialect="oracle",
        words=_WORDS,
        trees=_trees(longest_name),
        transaction=r"(?:SAVEPOINT \w+|ROLLBACK TO SAVEPOINT \w+)\s*",
        prepared=lambda sql: sql.replace(IS_JSON, " IS NOT NULL"),
    )


RULES = _rules(LONGEST_NAME)
