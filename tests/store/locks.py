"""How many rows a transaction has locked, as each server tells."""

from __future__ import annotations

import re

from sqlalchemy import Connection, Engine

PGROWLOCKS = "SELECT count(*) FROM pgrowlocks('task')"
# Whoever else would lock the rows gets all but these: for a PostgreSQL that does not bring the extension along.
NOT_TO_BE_HAD = """
    SELECT (SELECT count(*) FROM task) - count(*) FROM (SELECT 1 FROM task FOR UPDATE SKIP LOCKED) AS free
"""
DATA_LOCKS = """
    SELECT count(*) FROM performance_schema.data_locks
    WHERE lock_type = 'RECORD' AND thread_id = (
        SELECT thread_id FROM performance_schema.threads WHERE processlist_id = {connection_id})
"""


def locked_rows(engine: Engine, holder: Connection) -> int:
    """Row locks (PostgreSQL), or index records locked (MySQL, MariaDB: one for each index a row was reached by)."""
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            counting = PGROWLOCKS if _has_pgrowlocks(connection) else NOT_TO_BE_HAD
            return int(connection.exec_driver_sql(counting).scalar_one())
        connection_id = int(holder.exec_driver_sql("SELECT CONNECTION_ID()").scalar_one())
        if getattr(engine.dialect, "is_mariadb", False):
            return _of_status(connection, connection_id)
        return int(connection.exec_driver_sql(DATA_LOCKS.format(connection_id=connection_id)).scalar_one())


def _has_pgrowlocks(connection: Connection) -> bool:
    offered = "SELECT count(*) FROM pg_available_extensions WHERE name = 'pgrowlocks'"
    if not connection.exec_driver_sql(offered).scalar_one():
        return False
    connection.exec_driver_sql("CREATE EXTENSION IF NOT EXISTS pgrowlocks")
    return True


def _of_status(connection: Connection, connection_id: int) -> int:
    """The trx_rows_locked of MariaDB, but from the status: information_schema.innodb_trx shows it up to 0.1 s late."""
    status: str = connection.exec_driver_sql("SHOW ENGINE INNODB STATUS").one()[2]
    for transaction in status.split("---TRANSACTION ")[1:]:
        if re.search(rf"thread id {connection_id},", transaction):
            found = re.search(r"(\d+) row lock\(s\)", transaction)
            return int(found[1]) if found else 0
    return 0
