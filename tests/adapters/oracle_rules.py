"""What Oracle's SQL Language Reference (19c to 26ai) forbids, found in a statement by parsing it.

SELECT, for_update_clause and row_limiting_clause: no FOR UPDATE beside a row limit (ORA-02014), DISTINCT, GROUP BY,
aggregates, analytic functions or set operators (ORA-01786), nor in a subquery; ROWNUM is allowed beside it, but counts
rows before the locked ones are skipped. Expressions: a list has at most 1,000 members (ORA-01795); '' is NULL, so that
nothing is equal to it. UPDATE, DELETE, INSERT: no joined tables and no conflict clause; RETURNING needs INTO.
Identifiers: 128 bytes. CURRENT_TIMESTAMP and its like are in the time zone of the session.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import sqlglot
from sqlglot import exp

LONGEST_NAME = 128
LONGEST_LIST = 1000

_TRANSACTION = re.compile(r"(?:SAVEPOINT \w+|ROLLBACK TO SAVEPOINT \w+)\s*$")
_IS_JSON = re.compile(r"IS JSON \(STRICT\)")  # which sqlglot does not know
_TABLE_AS = re.compile(r"\b(?:FROM|JOIN|UPDATE)\s+\w+\s+AS\b", re.IGNORECASE)
_SESSION_CLOCK = {"CURRENT_TIMESTAMP", "LOCALTIMESTAMP", "CURRENT_DATE", "SYSDATE"}


def broken_rules(sql: str) -> list[str]:
    """The rules that the statement breaks; ParseError for one that is not SQL."""
    if _TRANSACTION.match(sql.strip()):
        return []
    if _TABLE_AS.search(sql):
        return ["no AS before the alias of a table"]
    tree = sqlglot.parse_one(_IS_JSON.sub("IS NOT NULL", sql), read="oracle")
    return [rule for rule, breaks in RULES.items() if breaks(tree)]


def _locking(tree: exp.Expression) -> Iterator[exp.Select]:
    return (select for select in tree.find_all(exp.Select) if select.args.get("locks"))


def _beside_lock(*kinds: type[exp.Expression], arguments: tuple[str, ...] = ()) -> Callable[[exp.Expression], bool]:
    def breaks(tree: exp.Expression) -> bool:
        return any(
            any(select.args.get(name) for name in arguments) or (kinds and select.find(*kinds) is not None)
            for select in _locking(tree)
        )

    return breaks


def _counts_rows(tree: exp.Expression) -> bool:
    names = {column.name.upper() for select in _locking(tree) for column in select.find_all(exp.Column)}
    pseudo = getattr(exp, "Pseudocolumn", None)
    if pseudo is not None:
        names |= {column.name.upper() for select in _locking(tree) for column in select.find_all(pseudo)}
    return "ROWNUM" in names


def _locks_inside(tree: exp.Expression) -> bool:
    return any(select is not tree for select in _locking(tree))


def _is_empty(node: exp.Expression | None) -> bool:
    return isinstance(node, exp.Literal) and node.is_string and node.name == ""


def _compares_empty(tree: exp.Expression) -> bool:
    return any(_is_empty(node.args.get("expression")) for node in tree.find_all(exp.EQ, exp.NEQ))


def _names(tree: exp.Expression) -> Iterator[str]:
    return (identifier.name for identifier in tree.find_all(exp.Identifier))


def _session_clock(tree: exp.Expression) -> bool:
    functions = {type(function).__name__.upper() for function in tree.find_all(exp.Func)}
    words = {name.upper() for name in _names(tree)} | {name.replace("_", "") for name in functions}
    return bool(words & (_SESSION_CLOCK | {name.replace("_", "") for name in _SESSION_CLOCK}))


def _index_of_all_rows(tree: exp.Expression) -> bool:
    """An index of the library's holds live rows only, or is unique."""
    if not isinstance(tree, exp.Create) or tree.args.get("kind") != "INDEX" or tree.args.get("unique"):
        return False
    keys = tree.this.args["params"].args["columns"]
    return any(not isinstance(key.this, exp.Case) or key.this.args.get("default") for key in keys)


RULES: dict[str, Callable[[exp.Expression], bool]] = {
    "no row limit beside FOR UPDATE": _beside_lock(arguments=("limit", "offset")),
    "no ROWNUM beside FOR UPDATE": _counts_rows,
    "no DISTINCT beside FOR UPDATE": _beside_lock(arguments=("distinct",)),
    "no GROUP BY beside FOR UPDATE": _beside_lock(arguments=("group",)),
    "no aggregate beside FOR UPDATE": _beside_lock(exp.AggFunc, exp.Window),
    "no FOR UPDATE in a subquery or a set operation": _locks_inside,
    "no LIMIT": lambda tree: tree.find(exp.Limit) is not None,
    "no list of more than 1000": lambda tree: any(len(one.expressions) > LONGEST_LIST for one in tree.find_all(exp.In)),
    "no comparison with the empty string": _compares_empty,
    "no joined tables in UPDATE": lambda tree: isinstance(tree, exp.Update) and bool(tree.find(exp.From)),
    "no joined tables in DELETE": lambda tree: isinstance(tree, exp.Delete) and bool(tree.args.get("using")),
    "no conflict clause": lambda tree: tree.find(exp.OnConflict) is not None,
    "no RETURNING without INTO": lambda tree: any(not one.args.get("into") for one in tree.find_all(exp.Returning)),
    "no name over 128 bytes": lambda tree: any(len(name.encode()) > LONGEST_NAME for name in _names(tree)),
    "no Boolean": lambda tree: tree.find(exp.Boolean) is not None,
    "no clock of the session's zone": _session_clock,
    "no index of all rows": _index_of_all_rows,
}
