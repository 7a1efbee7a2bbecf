"""A proxy that takes CONNECT, notes what it is asked for, and leads every name to one address."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

__all__ = ["Proxy", "proxying"]


class Proxy:
    """``url`` is where it is; ``asked`` are the hosts and ports that it was asked to lead to."""

    def __init__(self, listening: socket.socket, onward: tuple[str, int]) -> None:
        host, port = listening.getsockname()[:2]
        self.url = f"http://{host}:{port}"
        self.asked: list[str] = []
        self._listening, self._onward = listening, onward

    def serve(self) -> None:
        """Take connections until the listening socket is closed."""
        while True:
            try:
                inward, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._lead, args=(inward,), daemon=True).start()

    def _lead(self, inward: socket.socket) -> None:
        with suppress(OSError), inward:
            head = b""
            while b"\r\n\r\n" not in head:
                if not (data := inward.recv(65536)):
                    return
                head += data
            self.asked.append(head.split(b" ")[1].decode())
            with socket.create_connection(self._onward, 10) as outward:
                outward.settimeout(None)
                inward.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
                back = threading.Thread(target=self._carry, args=(outward, inward), daemon=True)
                back.start()
                self._carry(inward, outward)
                back.join()

    @staticmethod
    def _carry(here: socket.socket, there: socket.socket) -> None:
        with suppress(OSError):
            while data := here.recv(65536):
                there.sendall(data)
        with suppress(OSError):
            there.shutdown(socket.SHUT_WR)


@contextmanager
def proxying(onward: tuple[str, int], host: str = "127.0.0.1") -> Iterator[Proxy]:
    """Run a proxy for as long as the context is open."""
    with socket.create_server((host, 0)) as listening:
        proxy = Proxy(listening, onward)
        thread = threading.Thread(target=proxy.serve, daemon=True)
        thread.start()
        try:
            yield proxy
        finally:
            with suppress(OSError):
                listening.shutdown(socket.SHUT_RDWR)
            thread.join(5)
