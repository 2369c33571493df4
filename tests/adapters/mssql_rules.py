"""What Microsoft's Transact-SQL reference forbids, and what is a trap for a queue there, found in a statement.

Table hints: WITH and commas; READPAST only beside READCOMMITTEDLOCK (RCSI), never beside HOLDLOCK or SERIALIZABLE
(error 650), no dirty reads; an INDEX hint of a filtered index needs the filter among the conditions (error 8622).
Common table expressions and subqueries: ORDER BY only beside TOP or OFFSET (error 1033). ORDER BY: FETCH only behind
OFFSET. Filtered indexes: comparisons with constants, joined by AND, and IN. A unique index takes one NULL. 2,100
parameters. MERGE without HOLDLOCK inserts twice. GETDATE, SYSDATETIME and CURRENT_TIMESTAMP are local time.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from sqlglot import exp

from tests.adapters.rules import Rules, Tree, limited

MOST_PARAMETERS = 2100
LONGEST_NAME = 128
_LOCAL = {"GETDATE", "SYSDATETIME", "CURRENTTIMESTAMP", "SYSDATETIMEOFFSET", "CURRENTDATETIME"}
_PARAMETER = re.compile(r"%\((\w+)\)s")
_NAMED_INDEX = re.compile(r"INDEX\((\w+)\)")

_WORDS = {
    "no LIMIT": r"\bLIMIT\b",
    "no FOR UPDATE": r"\bFOR\s+UPDATE\b",
    "no SKIP LOCKED": r"\bSKIP\s+LOCKED\b",
    "no RETURNING": r"\bRETURNING\b",
    "no ON CONFLICT": r"\bON\s+CONFLICT\b",
    "no ON DUPLICATE KEY": r"\bON\s+DUPLICATE\b",
    "no INTERVAL": r"\bINTERVAL\b",
    "no MERGE": r"\bMERGE\b",
    "no :: for CAST": r"::",
    "no || for +": r"\|\|",
    "no TRUE or FALSE": r"\b(?:TRUE|FALSE)\b",
    "no RELEASE SAVEPOINT": r"\bRELEASE\b",
    "no SAVEPOINT": r"\bSAVEPOINT\b",
    "no dirty read": r"\b(?:NOLOCK|READUNCOMMITTED)\b",
    "no hints without WITH": r"\b(?:FROM|UPDATE|JOIN)\s+\w+\s*\(\s*(?:UPDLOCK|ROWLOCK|READPAST|HOLDLOCK)\b",
    "no hints without commas": r"\b(?:UPDLOCK|ROWLOCK|READPAST|READCOMMITTEDLOCK|HOLDLOCK)\s+\w",
    "no FETCH without OFFSET": r"^(?!.*\bOFFSET\b)(?=.*\bFETCH\s+(?:FIRST|NEXT)\b)",
    "no READPAST without READCOMMITTEDLOCK": r"^(?!.*\bREADCOMMITTEDLOCK\b)(?=.*\bREADPAST\b)",
    "no READPAST without UPDLOCK": r"^(?!.*\bUPDLOCK\b)(?=.*\bREADPAST\b)",
    "no READPAST beside SERIALIZABLE": r"^(?=.*\b(?:HOLDLOCK|SERIALIZABLE)\b)(?=.*\bREADPAST\b)",
}
_WORDS = {name: f"(?s){pattern}" for name, pattern in _WORDS.items()}


def broken_rules(sql: str) -> list[str]:
    """The rules that the statement breaks; ParseError for one that is not SQL."""
    broken = RULES.broken(sql)
    return broken or [name for name, breaks in _OF_TEXT.items() if breaks(sql)]


def _inner(tree: Tree) -> Iterator[Tree]:
    return (
        select for select in tree.find_all(exp.Select) if isinstance(select.parent, exp.CTE | exp.Subquery | exp.In)
    )


def _local_clock(tree: Tree) -> bool:
    called = {function.name.upper() or type(function).__name__.upper() for function in tree.find_all(exp.Func)}
    return bool(_LOCAL & {name.replace("_", "") for name in called})


def _filter(tree: Tree) -> Tree | None:
    if not isinstance(tree, exp.Create) or tree.args.get("kind") != "INDEX":
        return None
    where = tree.this.args["params"].args.get("where")
    return where.this if where is not None else None


def _strange_filter(tree: Tree) -> bool:
    found = _filter(tree)
    return found is not None and found.find(exp.Or, exp.Like, exp.Between, exp.Func, exp.Parameter) is not None


def _one_null_only(tree: Tree) -> bool:
    return isinstance(tree, exp.Create) and bool(tree.args.get("unique")) and _filter(tree) is None


def _without_filters_condition(sql: str) -> bool:
    """The library's indexes are named for what they are over; the status has to be there as a literal."""
    status = {"claim": "NEW", "promote": "SCHEDULED", "take_over": "RUNNING"}
    named = (name.rpartition("task_")[2] for name in _NAMED_INDEX.findall(sql))
    return any(f"status = '{status.get(role, '')}'" not in sql for role in named)


def _triggered(tree: Tree) -> bool:
    return isinstance(tree, exp.Delete) and bool(tree.args.get("using"))


_OF_TEXT: dict[str, Callable[[str], bool]] = {
    "no INDEX hint without the filter's condition": _without_filters_condition,
    "no more than 2100 parameters": lambda sql: len(_PARAMETER.findall(sql)) > MOST_PARAMETERS,
}

RULES = Rules(
    dialect="tsql",
    words=_WORDS,
    trees={
        "no ORDER BY inside without TOP": lambda tree: any(
            select.args.get("order") and not limited(select) for select in _inner(tree)
        ),
        "no TOP without ORDER BY": lambda tree: any(
            limited(select) and not select.args.get("order") for select in tree.find_all(exp.Select)
        ),
        "no USING in DELETE": _triggered,
        "no local time": _local_clock,
        "no filter but comparisons and IN": _strange_filter,
        "no unique index without a filter": _one_null_only,
        "no name over 128 characters": lambda tree: any(
            len(each.name) > LONGEST_NAME for each in tree.find_all(exp.Identifier)
        ),
    },
    transaction=r"(?:IF @@TRANCOUNT = 0 BEGIN TRANSACTION|(?:SAVE|ROLLBACK) TRANSACTION \w+)",
    prepared=lambda sql: _PARAMETER.sub(r"@\1", sql),
)

NAMES = {*RULES.names(), *_OF_TEXT}
