"""MySQL from Debian's unstable suite, unpacked in a folder of the user's cache and run there in a chroot.

Nothing of the machine is replaced: apt works on lists and a cache of its own, and packages are unpacked, not installed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.servers.base import Unavailable

#: Number of the user that Debian gives no one on a fresh system; it exists in the chroot's passwd only.
MYSQL_UID = 999
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
DEVICES = {"null": (1, 3), "random": (1, 8), "urandom": (1, 9)}


def folder() -> Path:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "sa-taskqueue" / "mysql"


def install() -> Path:
    """The chroot with a MySQL server in it, made if need be (about 60 MB to download)."""
    root = folder() / "root"
    if (folder() / "installed").exists():
        return root
    if os.getuid() != 0 or shutil.which("apt-get") is None or not KEYRING.exists():
        raise Unavailable("mysql: needs root on a Debian machine to be started; set SA_TASKQUEUE_TEST_MYSQL_URL")
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    for package in _download(folder() / "apt"):
        _run(["dpkg", "-x", package, root])
    _furnish(root)
    return root


def command(root: Path, port: int) -> Sequence[str | Path]:
    """Command of a server with a fresh data folder; it runs as root, changes into `root` and drops its rights."""
    forget(port)
    data = root / "data" / str(port)
    data.mkdir(parents=True)
    os.chown(data, MYSQL_UID, MYSQL_UID)
    program: list[str | Path] = [
        "chroot",
        root,
        "/usr/sbin/mysqld",
        "--no-defaults",
        "--user=mysql",
        f"--datadir=/data/{port}",
    ]
    _run([*program, "--initialize-insecure"])
    return [
        *program,
        f"--port={port}",
        "--bind-address=127.0.0.1",
        f"--socket=/run/mysqld/{port}.sock",
        f"--pid-file=/run/mysqld/{port}.pid",
        "--secure-file-priv=",
        "--mysqlx=OFF",
        "--max-connections=500",
        "--innodb-buffer-pool-size=256M",
        "--innodb-flush-log-at-trx-commit=0",
        "--skip-log-bin",
    ]


def forget(port: int) -> None:
    """Delete the data of the server that ran on this port."""
    shutil.rmtree(folder() / "root" / "data" / str(port), ignore_errors=True)


def _mirror() -> str:
    pattern = re.compile(r"^(?:URIs:|deb(?: \[[^]]*])?) *(\S*debian/?)(?:\s|$)", re.MULTILINE)
    for source in (*Path("/etc/apt/sources.list.d").glob("*"), Path("/etc/apt/sources.list")):
        if source.exists() and (found := pattern.search(source.read_text())):
            return found[1]
    return "http://deb.debian.org/debian"


def _download(apt: Path) -> list[Path]:
    (apt / "lists").mkdir(parents=True, exist_ok=True)
    (apt / "archives" / "partial").mkdir(parents=True, exist_ok=True)
    (apt / "sources.list").write_text(f"deb [signed-by={KEYRING}] {_mirror()} sid main\n")
    options = {
        "Dir::Etc::sourcelist": apt / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Dir::State::Lists": apt / "lists",
        "Dir::State::status": "/dev/null",
        "Dir::Cache": apt,
        "Dir::Cache::archives": apt / "archives",
        "APT::Install-Recommends": "0",
        "APT::Sandbox::User": "root",
    }
    apt_get = ["apt-get", "-qq", "-y", *(part for key, value in options.items() for part in ("-o", f"{key}={value}"))]
    _run([*apt_get, "update"])
    _run([*apt_get, "--download-only", "install", "mysql-server-core"])
    return sorted((apt / "archives").glob("*.deb"))


def _furnish(root: Path) -> None:
    """What the server needs to find in its root besides its packages."""
    for name in ("bin", "sbin", "lib", "lib64"):
        if not (root / name).exists():
            (root / name).symlink_to(f"usr/{name}")
    for name in ("tmp", "dev", "etc", "data", "run/mysqld"):
        (root / name).mkdir(parents=True, exist_ok=True)
    (root / "tmp").chmod(0o1777)
    for name, (major, minor) in DEVICES.items():
        os.mknod(root / "dev" / name, 0o020666, os.makedev(major, minor))
        (root / "dev" / name).chmod(0o666)
    (root / "etc" / "passwd").write_text(
        f"root:x:0:0::/root:/bin/false\nmysql:x:{MYSQL_UID}:{MYSQL_UID}::/:/bin/false\n"
    )
    (root / "etc" / "group").write_text(f"root:x:0:\nmysql:x:{MYSQL_UID}:\n")
    os.chown(root / "run" / "mysqld", MYSQL_UID, MYSQL_UID)
    (folder() / "installed").touch()


def _run(command: Sequence[str | Path]) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode:
        last = (done.stdout + done.stderr).decode(errors="replace")[-1500:]
        raise Unavailable(f"mysql: {command[0]} ended with {done.returncode}: {last}")
