"""The floor on PostgreSQL, through psycopg."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from benchmarks.plain.base import QUEUE, Filling, PlainQueue


class PostgreSQLQueue(PlainQueue):
    def prepare(self) -> None:
        self._cursor = self.connection.cursor()
        self._claim = f"""
            WITH picked AS MATERIALIZED (
                SELECT id FROM {self.table} WHERE queue = %s AND status = 'NEW'
                ORDER BY priority, ready_at, id LIMIT %s FOR NO KEY UPDATE SKIP LOCKED)
            UPDATE {self.table} AS task
            SET status = 'RUNNING', attempt = attempt + 1, epoch = epoch + 1,
                reserved_until = {self.clock} + interval '60 s', reserved_by = %s
            FROM picked WHERE task.id = picked.id RETURNING task.id, task.name, task.body, task.epoch"""
        self._complete = f"""
            UPDATE {self.table} SET status = 'COMPLETED', finished_at = {self.clock},
                reserved_until = NULL, reserved_by = NULL
            WHERE id = ANY(%s) AND status = 'RUNNING'"""
        self._delete = f"DELETE FROM {self.table} WHERE id = ANY(%s) AND status = 'RUNNING'"

    def key(self, value: uuid.UUID) -> Any:
        return value

    def claim(self, limit: int) -> list[Any]:
        rows = self._cursor.execute(self._claim, (QUEUE, limit, "floor")).fetchall()
        self.connection.commit()
        return [row[0] for row in rows]

    def complete(self, keys: Sequence[Any]) -> None:
        self._cursor.execute(self._complete, (list(keys),))
        self.connection.commit()

    def delete(self, keys: Sequence[Any]) -> None:
        self._cursor.execute(self._delete, (list(keys),))
        self.connection.commit()

    def insert(self, filling: Filling) -> None:
        with self._cursor.copy(f"COPY {self.table} ({self.COLUMNS}) FROM STDIN") as copy:
            for rows in self.rows(filling):
                for row in rows:
                    copy.write_row(row)
        if late := self.late_columns(filling):
            self._cursor.execute(f"UPDATE {self.table} SET {late} WHERE status = '{filling.status}'")
        self.connection.commit()

    def settle_down(self) -> None:
        self.connection.autocommit = True
        self._cursor.execute(f"VACUUM ANALYZE {self.table}")
        self._cursor.execute("CHECKPOINT")
        self.connection.autocommit = False
