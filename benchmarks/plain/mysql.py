"""The floor on MySQL and MariaDB, through mysqlclient or PyMySQL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.plain.base import QUEUE, Filling, PlainQueue


class MySQLQueue(PlainQueue):
    def prepare(self) -> None:
        self._cursor = self.connection.cursor()
        self._cursor.execute("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED")
        self.connection.commit()
        self._claim = f"""
            SELECT id, name, body, epoch FROM {self.table} WHERE queue = %s AND status = 'NEW'
            ORDER BY priority, ready_at, id LIMIT %s FOR UPDATE SKIP LOCKED"""
        self._reserve = f"""
            UPDATE {self.table} SET status = 'RUNNING', attempt = attempt + 1, epoch = epoch + 1,
                reserved_until = {self.clock} + INTERVAL 60 SECOND, reserved_by = %s WHERE id IN """
        self._complete = f"""
            UPDATE {self.table} SET status = 'COMPLETED', finished_at = {self.clock},
                reserved_until = NULL, reserved_by = NULL WHERE status = 'RUNNING' AND id IN """
        self._delete = f"DELETE FROM {self.table} WHERE status = 'RUNNING' AND id IN "
        marks = ", ".join(["%s"] * 10)
        self._insert = f"INSERT INTO {self.table} ({self.COLUMNS}) VALUES ({marks})"

    def claim(self, limit: int) -> list[Any]:
        self._cursor.execute(self._claim, (QUEUE, limit))
        keys = [row[0] for row in self._cursor.fetchall()]
        if keys:
            self._cursor.execute(self._reserve + self._list(keys), ("floor", *keys))
        self.connection.commit()
        return keys

    def complete(self, keys: Sequence[Any]) -> None:
        self._cursor.execute(self._complete + self._list(keys), tuple(keys))
        self.connection.commit()

    def delete(self, keys: Sequence[Any]) -> None:
        self._cursor.execute(self._delete + self._list(keys), tuple(keys))
        self.connection.commit()

    def insert(self, filling: Filling) -> None:
        for rows in self.rows(filling):
            self._cursor.executemany(self._insert, rows)
            self.connection.commit()
        if late := self.late_columns(filling):
            self._cursor.execute(f"UPDATE {self.table} SET {late} WHERE status = '{filling.status}'")
        self.connection.commit()

    def settle_down(self) -> None:
        self._cursor.execute(f"ANALYZE TABLE {self.table}")
        self._cursor.fetchall()
        self.connection.commit()

    @staticmethod
    def _list(keys: Sequence[Any]) -> str:
        return "(" + ", ".join(["%s"] * len(keys)) + ")"
