"""MariaDB: as MySQL. ``UPDATE ... RETURNING`` came with MariaDB 12 only; the two statements serve every version."""

from __future__ import annotations

from typing import ClassVar

from sa_taskqueue.adapters.derived import Derivation
from sa_taskqueue.adapters.mysql import MySQL
from sa_taskqueue.adapters.mysql_changes import key_table
from sa_taskqueue.adapters.mysql_derived import MySQLDerivation
from sa_taskqueue.adapters.shapes import KeyTableShape


class MariaDB(MySQL):
    """MariaDB 10.6 and later."""

    name: ClassVar[str] = "mariadb"

    def derivation(self) -> Derivation | None:
        return MySQLDerivation(random_bytes=self.version is not None and self.version >= (10, 10))

    def key_table(self) -> KeyTableShape | None:
        return key_table(returns_inserted=True)
