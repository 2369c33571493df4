"""Message brokers: found or started like the databases, and spoken to over a plain socket, without any client."""

from __future__ import annotations

import os
import socket
from typing import Protocol
from urllib.parse import SplitResult, urlsplit

from tests.servers.base import Unavailable
from tests.servers.process import ServerProcess

#: Seconds for a connection, and for each piece of an answer.
ANSWER_TIMEOUT = 5.0


class UnexpectedAnswer(Exception):
    """What listens at the URL does not speak the broker's protocol."""


class Reader(Protocol):
    """What a ping reads from: `socket.makefile("rb")`."""

    def read(self, size: int, /) -> bytes: ...
    def readline(self, size: int, /) -> bytes: ...


class Broker:
    """One kind of broker: how to find it, to start it, and to ask whether it is there."""

    name: str
    scheme: str
    #: Where a broker of this kind usually listens.
    port: int

    def __init__(self) -> None:
        self._own: list[ServerProcess] = []

    def find(self) -> str:
        """URL of the broker named in the environment, of one that runs here, or of one of our own, started now."""
        named = os.environ.get(f"SA_TASKQUEUE_TEST_{self.name.upper()}_URL")
        if named:
            reason = self.refusal(named)
            if reason:
                raise Unavailable(f"{self.name}: {named} does not serve: {reason}")
            return named
        running = self.url(self.port)
        return running if self.refusal(running) is None else self.start()

    def start(self) -> str:
        """Start a broker of our own; Unavailable if what it needs is not installed."""
        raise NotImplementedError

    def stop(self) -> None:
        """Stop what `start` started, the last first."""
        while self._own:
            self._own.pop().stop()

    def kill(self) -> None:
        """SIGKILL to what was started last."""
        self._own[-1].kill()

    def ping(self, connection: socket.socket, answer: Reader, url: SplitResult) -> None:
        """Ask, and read the answer; UnexpectedAnswer if it is of another protocol or an error."""
        raise NotImplementedError

    def refusal(self, url: str) -> str | None:
        """Why the broker at `url` cannot be used; None if it answers."""
        parts = urlsplit(url)
        address = (parts.hostname or "127.0.0.1", parts.port or self.port)
        try:
            with socket.create_connection(address, ANSWER_TIMEOUT) as connection, connection.makefile("rb") as answer:
                self.ping(connection, answer, parts)
        except (OSError, UnexpectedAnswer) as error:
            return str(error)
        return None

    def url(self, port: int) -> str:
        return f"{self.scheme}://127.0.0.1:{port}"

    def _process(self) -> ServerProcess:
        """A process of our own, not started yet; `stop` ends it."""
        self._own.append(ServerProcess(self.name))
        return self._own[-1]


def as_ourselves() -> dict[str, int]:
    """Run as the user of the tests: brokers do not mind root, and `nobody` may not enter the folder of a wheel."""
    return {"user": os.getuid()}
