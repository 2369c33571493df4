"""MariaDB: as MySQL. ``UPDATE ... RETURNING`` came with MariaDB 12 only; the two statements serve every version."""

from __future__ import annotations

from typing import ClassVar

from sa_taskqueue.adapters.mysql import MySQL


class MariaDB(MySQL):
    """MariaDB 10.6 and later."""

    name: ClassVar[str] = "mariadb"
