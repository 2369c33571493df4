"""Statements that make or drop triggers."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import Connection


def run_statements(connection: Connection, statements: Sequence[str]) -> None:
    """Execute each as it stands: without parameters, so that a percent sign is only that."""
    for statement in statements:
        connection.exec_driver_sql(statement, execution_options={"no_parameters": True})
