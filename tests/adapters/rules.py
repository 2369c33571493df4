"""A vendor's rules, each a look at the words of a statement or at its tree (sqlglot); what breaks them is named."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

import sqlglot
from sqlglot import exp
from sqlglot.tokens import Token, TokenType

Tree = exp.Expression
TreeRule = Callable[[Tree], bool]

_LITERAL = re.compile(r"'(?:[^']|'')*'")


@dataclass(frozen=True)
class Rules:
    """Of one database. `words` are patterns that may not be found outside of literals; they are looked for first.

    A statement that says no more than `transaction` is left at that. `prepared` makes parameters what sqlglot knows.
    """

    dialect: str
    words: Mapping[str, str]
    trees: Mapping[str, TreeRule]
    transaction: str
    prepared: Callable[[str], str] = field(default=lambda sql: sql)

    def names(self) -> set[str]:
        return {*self.words, *self.trees}

    def broken(self, sql: str) -> list[str]:
        """The rules that the statement breaks; ParseError for one that is not SQL."""
        if re.fullmatch(self.transaction, sql.strip()):
            return []
        plain = _LITERAL.sub("''", sql)
        said = [name for name, pattern in self.words.items() if re.search(pattern, plain, re.IGNORECASE)]
        if said:
            return said
        tree = sqlglot.parse_one(self.prepared(sql), read=self.dialect)
        return [name for name, breaks in self.trees.items() if breaks(tree)]


def names(tree: Tree) -> Iterator[str]:
    """Every name that is not quoted, as it is written."""
    return (each.name for each in tree.find_all(exp.Identifier) if not each.args.get("quoted"))


def limited(select: Tree) -> bool:
    """Whether a SELECT takes no more than so many rows."""
    return bool(select.args.get("limit") or select.args.get("offset"))


def tables_with_as(sql: str, dialect: str) -> bool:
    """Whether a table, or a subquery in its place, has AS before its alias: nothing of it is left in the tree."""
    tokens = sqlglot.tokenize(sql, read=dialect)
    starts = {TokenType.FROM, TokenType.JOIN, TokenType.UPDATE, TokenType.INTO}
    return any(
        token.token_type in starts and _kind(tokens, _behind_source(tokens, place + 1)) is TokenType.ALIAS
        for place, token in enumerate(tokens)
    )


def _behind_source(tokens: list[Token], place: int) -> int:
    """Where a name, or a pair of parentheses and what is in them, ends."""
    depth = 0
    while place < len(tokens):
        kind = tokens[place].token_type
        depth += (kind is TokenType.L_PAREN) - (kind is TokenType.R_PAREN)
        place += 1
        if depth == 0 and _kind(tokens, place) is not TokenType.DOT and kind is not TokenType.DOT:
            return place
    return place


def _kind(tokens: list[Token], place: int) -> TokenType | None:
    return tokens[place].token_type if place < len(tokens) else None
