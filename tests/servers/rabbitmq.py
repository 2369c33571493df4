from __future__ import annotations

import shutil
import socket
from pathlib import Path
from urllib.parse import SplitResult

from tests.servers.base import Unavailable
from tests.servers.broker import Broker, Reader, UnexpectedAnswer
from tests.servers.process import ServerProcess, free_port, unprivileged

#: Debian's; the program of the same name on the path wants to be root or `rabbitmq`.
PROGRAM = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
PROTOCOL_HEADER = b"AMQP\x00\x00\x09\x01"
#: A method frame of channel 0, its size left out.
METHOD_FRAME = b"\x01\x00\x00"
CONNECTION_START = b"\x00\x0a\x00\x0a"


class RabbitMQBroker(Broker):
    """RabbitMQ: running, or started from Debian's package in a folder of its own."""

    name = "rabbitmq"
    scheme = "amqp"
    port = 5672

    def start(self) -> str:
        names = shutil.which("epmd")
        if not PROGRAM.exists() or names is None:
            raise Unavailable(f"rabbitmq: no {PROGRAM}; install Debian's package rabbitmq-server")
        # Erlang's name server, which a node would otherwise start for itself and leave behind.
        epmd = self._process()
        epmd.start([names, "-port", str(epmd.port), "-address", "127.0.0.1"], lambda: _listens(epmd.port))
        own = self._process()
        url = self.url(own.port)
        settings = [f"{name}={value}" for name, value in _environment(own, epmd.port).items()]
        own.start(["env", *settings, PROGRAM], lambda: self.refusal(url) is None, **unprivileged())
        return url

    def ping(self, connection: socket.socket, answer: Reader, url: SplitResult) -> None:
        """The header of AMQP 0-9-1; a broker answers with the method connection.start."""
        connection.sendall(PROTOCOL_HEADER)
        head = answer.read(11)
        if head[:3] != METHOD_FRAME or head[7:] != CONNECTION_START:
            raise UnexpectedAnswer(f"it answers the AMQP header with {head!r}")


def _environment(own: ServerProcess, epmd_port: int) -> dict[str, object]:
    nothing = own.folder / "none"
    return {
        "HOME": own.folder,
        "ERL_EPMD_PORT": epmd_port,
        "RABBITMQ_NODENAME": f"test{own.port}@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": own.port,
        "RABBITMQ_DIST_PORT": free_port(),
        "RABBITMQ_MNESIA_BASE": own.folder / "mnesia",
        "RABBITMQ_LOG_BASE": own.folder / "log",
        "RABBITMQ_PID_FILE": own.folder / "pid",
        "RABBITMQ_CONF_ENV_FILE": nothing,
        "RABBITMQ_CONFIG_FILE": nothing,
        "RABBITMQ_ENABLED_PLUGINS_FILE": nothing,
    }


def _listens(port: int) -> bool:
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0
