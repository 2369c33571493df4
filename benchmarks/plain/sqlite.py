"""The floor on SQLite, through the standard library's driver."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.plain.base import QUEUE, Filling, PlainQueue


class SQLiteQueue(PlainQueue):
    def prepare(self) -> None:
        self._cursor = self.connection.cursor()
        self._claim = f"""
            UPDATE {self.table} SET status = 'RUNNING', attempt = attempt + 1, epoch = epoch + 1,
                reserved_until = {self.after(60)}, reserved_by = ?
            WHERE id IN (SELECT id FROM {self.table} WHERE queue = ? AND status = 'NEW'
                         ORDER BY priority, ready_at, id LIMIT ?)
            RETURNING id, name, body, epoch"""
        self._complete = f"""
            UPDATE {self.table} SET status = 'COMPLETED', finished_at = {self.clock},
                reserved_until = NULL, reserved_by = NULL WHERE status = 'RUNNING' AND id IN """
        self._delete = f"DELETE FROM {self.table} WHERE status = 'RUNNING' AND id IN "
        marks = ", ".join(["?"] * 10)
        self._insert = f"INSERT INTO {self.table} ({self.COLUMNS}) VALUES ({marks})"

    def claim(self, limit: int) -> list[Any]:
        self._cursor.execute("BEGIN IMMEDIATE")
        rows = self._cursor.execute(self._claim, ("floor", QUEUE, limit)).fetchall()
        self._cursor.execute("COMMIT")
        return [row[0] for row in rows]

    def complete(self, keys: Sequence[Any]) -> None:
        self._write(self._complete, keys)

    def delete(self, keys: Sequence[Any]) -> None:
        self._write(self._delete, keys)

    def insert(self, filling: Filling) -> None:
        for rows in self.rows(filling):
            self._cursor.execute("BEGIN IMMEDIATE")
            self._cursor.executemany(self._insert, rows)
            self._cursor.execute("COMMIT")
        if late := self.late_columns(filling):
            self._cursor.execute(f"UPDATE {self.table} SET {late} WHERE status = '{filling.status}'")

    def settle_down(self) -> None:
        self._cursor.execute("ANALYZE")
        self._cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _write(self, statement: str, keys: Sequence[Any]) -> None:
        marks = ", ".join(["?"] * len(keys))
        self._cursor.execute("BEGIN IMMEDIATE")
        self._cursor.execute(f"{statement} ({marks})", tuple(keys))
        self._cursor.execute("COMMIT")
