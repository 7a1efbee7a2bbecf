"""A real S3 server on this machine: versitygw over a folder, built from source once and kept."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from devkit import programs

__all__ = ["ACCESS", "SECRET", "S3Server", "s3_server"]

ACCESS, SECRET = "casewarden-test", "casewarden-test-secret"
_SECONDS = 30.0


@dataclass(frozen=True)
class S3Server:
    """The server's address; every folder below ``root`` is a bucket."""

    endpoint: str
    root: Path

    def bucket(self, name: str) -> str:
        """Make an empty bucket and return its name."""
        (self.root / name).mkdir()
        return name


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def s3_server(
    folder: Path, host: str = "127.0.0.1", certificate: tuple[Path, Path] | None = None
) -> Iterator[S3Server]:
    """Run a server for as long as the context is open; with files of a certificate and its key it speaks TLS."""
    root, port = folder / "buckets", _free_port()
    root.mkdir()
    meta = folder / "meta"
    meta.mkdir()
    program = programs.ensure(programs.S3) / "versitygw"
    # Not every file system has the extended attributes that it would use instead.
    secured = ["--cert", str(certificate[0]), "--key", str(certificate[1])] if certificate else []
    listen = ["--port", f"{host}:{port}", *secured, "--quiet"]
    command = [str(program), *listen, "posix", "--sidecar", str(meta), str(root)]
    credentials = {"ROOT_ACCESS_KEY": ACCESS, "ROOT_SECRET_KEY": SECRET}
    log = folder / "s3.log"
    with log.open("wb") as output:
        server = subprocess.Popen(command, env={**os.environ, **credentials}, stdout=output, stderr=output)
    try:
        _await(server, host, port, log)
        yield S3Server(f"{'https' if certificate else 'http'}://{host}:{port}", root)
    finally:
        server.kill()
        server.wait(10)


def _await(server: subprocess.Popen[bytes], host: str, port: int, log: Path) -> None:
    limit = time.monotonic() + _SECONDS
    while time.monotonic() < limit and server.poll() is None:
        try:
            socket.create_connection((host, port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"the S3 server does not answer: {log.read_text(errors='replace')[-2000:]}")
