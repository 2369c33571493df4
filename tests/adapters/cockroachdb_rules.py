"""What CockroachDB has not, or has in name only, though PostgreSQL has it; and what its adapter promises not to do.

Advisory locks are there and always say yes, NOTIFY is not, COPY is not in binary, UNLOGGED is ignored. SKIP LOCKED is
not used by default. A change that picks rows by a limit says again what they must be, so that it is right under READ
COMMITTED, too. `now()` and its like are the start of the transaction.
"""

from __future__ import annotations

import re

from sqlglot import exp

from tests.adapters.rules import Rules, Tree, limited

_PARAMETER = re.compile(r"%\((\w+)\)s")
_START = {"NOW", "CURRENTTIMESTAMP", "TRANSACTION_TIMESTAMP", "LOCALTIMESTAMP", "LOCALTIME"}


def broken_rules(sql: str) -> list[str]:
    """The rules that the statement breaks; ParseError for one that is not SQL."""
    return RULES.broken(sql)


def _picks(tree: Tree) -> list[Tree]:
    return [select for select in tree.find_all(exp.Select) if select is not tree and limited(select)]


def _blind(tree: Tree) -> bool:
    if not isinstance(tree, exp.Update | exp.Delete) or not _picks(tree):
        return False
    own = (column for column in tree.args["where"].find_all(exp.Column) if column.find_ancestor(exp.Select) is None)
    return "status" not in {column.name for column in own}


def _start_of_transaction(tree: Tree) -> bool:
    called = {function.name.upper() or type(function).__name__.upper() for function in tree.find_all(exp.Func)}
    kinds = {type(function).__name__.upper() for function in tree.find_all(exp.Func)}
    return bool(_START & (called | kinds))


RULES = Rules(
    dialect="postgres",
    words={
        "no SKIP LOCKED": r"\bSKIP\s+LOCKED\b",
        "no advisory locks": r"\bpg_\w*advisory\w*",
        "no NOTIFY": r"\b(?:pg_)?notify\b|\bLISTEN\b",
        "no COPY": r"^\s*COPY\b",
        "no UNLOGGED": r"\bUNLOGGED\b",
        "no ctid": r"\bctid\b",
        "no MERGE": r"\bMERGE\b",
        "no deferred constraint": r"\bDEFERRABLE\b",
    },
    trees={
        "no pick whose condition is not said again": _blind,
        "no pick without an order": lambda tree: any(not select.args.get("order") for select in _picks(tree)),
        "no pick without RETURNING": lambda tree: bool(_picks(tree)) and tree.args.get("returning") is None,
        "no clock of the transaction's start": _start_of_transaction,
        "no lock in a subquery": lambda tree: any(
            select is not tree and select.args.get("locks") for select in tree.find_all(exp.Select)
        ),
    },
    transaction=r"(?:RELEASE |ROLLBACK TO )?SAVEPOINT \w+",
    prepared=lambda sql: _PARAMETER.sub(r":\1", sql),
)
