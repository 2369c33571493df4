"""A TCP proxy between a driver and its server that can fail in the ways of a network."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from collections import Counter
from types import TracebackType
from typing import Self

MODES = ("ok", "blackhole", "drop_replies", "cut")


class TcpProxy:
    """Listens on a free port of 127.0.0.1 and passes on to `host:port`, in the mode set last.

    ok: everything passes. blackhole: every byte is accepted and none passes. drop_replies: what the client sends
    arrives, no answer comes back. cut: all connections are closed, and new ones at once.
    """

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._mode = "ok"
        self._only: int | None = None
        self._ports: dict[socket.socket, int] = {}
        self.swallowed: Counter[int] = Counter()
        """Bytes of each client, by its port, that did not pass."""
        self._peers: dict[socket.socket, socket.socket] = {}
        self._clients: set[socket.socket] = set()
        self._selector = selectors.DefaultSelector()
        self._server = socket.create_server(("127.0.0.1", 0))
        self._wake_in, self._wake_out = socket.socketpair()
        self._commands = threading.Condition()
        self._wanted: tuple[str, int | None] | None = None
        self.port: int = self._server.getsockname()[1]
        self._thread = threading.Thread(target=self._loop, name="tcp-proxy", daemon=True)
        self._thread.start()

    def set_mode(self, mode: str, only: int | None = None) -> None:
        """Change the mode; it holds for all connections, or only that of a client's port, when this returns."""
        assert mode in (*MODES, "stop")
        with self._commands:
            self._wanted = mode, only
            self._wake_out.send(b"!")
            assert self._commands.wait_for(lambda: self._wanted is None, 30)

    def retarget(self, port: int) -> None:
        """Pass new connections on to another port."""
        self._target = (self._target[0], port)

    @property
    def clients(self) -> int:
        """How many clients are connected."""
        return len(self._clients)

    def close(self) -> None:
        """Close every socket."""
        self.set_mode("stop")
        self._thread.join(30)
        self._wake_out.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _loop(self) -> None:
        for own in (self._server, self._wake_in):
            self._selector.register(own, selectors.EVENT_READ)
        while self._mode != "stop":
            for key, _ in self._selector.select():
                ready = key.fileobj
                assert isinstance(ready, socket.socket)
                if ready is self._wake_in:
                    self._obey()
                elif ready is self._server:
                    self._accept()
                elif ready in self._peers:
                    self._pass_on(ready)
        for own in (self._server, self._wake_in):
            own.close()
        self._selector.close()

    def _obey(self) -> None:
        self._wake_in.recv(1)
        with self._commands:
            assert self._wanted is not None
            (self._mode, self._only), self._wanted = self._wanted, None
            if self._mode in ("cut", "stop"):
                for client in [client for client in self._clients if self._only in (None, self._ports[client])]:
                    self._drop(client)
            self._commands.notify_all()

    def _accept(self) -> None:
        client, address = self._server.accept()
        if self._mode == "cut" and self._only is None:
            client.close()
            return
        try:
            server = socket.create_connection(self._target, timeout=30)
        except OSError:
            client.close()
            return
        self._clients.add(client)
        self._ports[client] = self._ports[server] = address[1]
        self._peers.update({client: server, server: client})
        for each in (client, server):
            self._selector.register(each, selectors.EVENT_READ)

    def _pass_on(self, source: socket.socket) -> None:
        target = self._peers[source]
        try:
            data = source.recv(65536)
            if data and self._swallows(source):
                self.swallowed[self._ports[source]] += len(data)
            elif data:
                target.sendall(data)
        except OSError:
            data = b""
        if not data:
            self._drop(source)

    def _swallows(self, source: socket.socket) -> bool:
        if self._only not in (None, self._ports[source]):
            return False
        return self._mode == "blackhole" or (self._mode == "drop_replies" and source not in self._clients)

    def _drop(self, one: socket.socket) -> None:
        for each in (one, self._peers[one]):
            self._clients.discard(each)
            self._ports.pop(each)
            self._peers.pop(each)
            self._selector.unregister(each)
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
