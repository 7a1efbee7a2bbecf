"""Where the API server is and how to prove who we are: in the cluster, or by a kubeconfig.

Tokens are files that the kubelet rewrites, or come from a plugin: ``authorization`` is asked before every request and
reads them again after a minute, or at once when a request was answered 401.
"""

from __future__ import annotations

import asyncio
import os
import ssl
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from kubernetes.aio import config as kube_config
from kubernetes.aio.client import Configuration

__all__ = ["ConfigError", "Connection", "FileToken", "Token", "connect"]

_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_REREAD_SECONDS = 60.0


class ConfigError(Exception):
    """There is no usable way to the API server; the message says what was tried and what to set."""


class Token(Protocol):
    """What goes into the ``Authorization`` header."""

    async def header(self, *, fresh: bool = False) -> str | None:
        """Return the header's value, or None where the connection proves itself otherwise (a client certificate)."""


@dataclass
class FileToken:
    """A bearer token in a file that is rewritten before it expires."""

    path: Path
    _value: str = ""
    _read_at: float = float("-inf")

    async def header(self, *, fresh: bool = False) -> str | None:
        """Return ``Bearer …``, read again after a minute or when ``fresh`` is asked for."""
        if fresh or time.monotonic() - self._read_at > _REREAD_SECONDS:
            self._value = (await asyncio.to_thread(self.path.read_text)).strip()
            self._read_at = time.monotonic()
        return f"Bearer {self._value}"


@dataclass
class _ConfiguredToken:
    """Whatever the kubeconfig's user says: a token, a token file, a plugin."""

    configuration: Configuration

    async def header(self, *, fresh: bool = False) -> str | None:
        value = await self.configuration.get_api_key_with_prefix("BearerToken", alias="authorization")
        return str(value) if value else None


@dataclass(frozen=True, slots=True)
class Connection:
    """All that a client needs; the paths are kept because kopf wants them as paths."""

    server: str
    token: Token | None = None
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    insecure: bool = False
    namespace: str = field(default="default")

    def ssl(self) -> ssl.SSLContext | bool:
        """Return what aiohttp wants for TLS; ``True`` where it is plain HTTP."""
        if not self.server.startswith("https"):
            return True
        context = ssl.create_default_context(cafile=self.ca_file)
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.certificate_file:
            context.load_cert_chain(self.certificate_file, self.key_file)
        return context


async def connect(kubeconfig: str | None = None, context: str | None = None) -> Connection:
    """Find the API server: the given kubeconfig, else the pod's own account, else ``KUBECONFIG`` or ``~/.kube/config``.

    Raises ``ConfigError`` where none of them is there or usable.
    """
    if kubeconfig is None and "KUBERNETES_SERVICE_HOST" in os.environ and (_ACCOUNT / "token").exists():
        return _in_cluster()
    configuration = Configuration()
    try:
        load: Callable[..., Awaitable[None]] = kube_config.load_kube_config
        await load(kubeconfig, context=context, client_configuration=configuration)
    except (kube_config.ConfigException, OSError) as error:
        where = kubeconfig or os.environ.get("KUBECONFIG") or "~/.kube/config"
        raise ConfigError(f"no way to a cluster: not in a pod, and {where}: {error}; give --kubeconfig") from None
    return Connection(
        server=configuration.host.rstrip("/"),
        token=_ConfiguredToken(configuration) if configuration.api_key else None,
        ca_file=configuration.ssl_ca_cert,
        certificate_file=configuration.cert_file,
        key_file=configuration.key_file,
        insecure=not configuration.verify_ssl,
    )


def _in_cluster() -> Connection:
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    if ":" in host:
        host = f"[{host}]"
    return Connection(
        server=f"https://{host}:{port}",
        token=FileToken(_ACCOUNT / "token"),
        ca_file=str(_ACCOUNT / "ca.crt"),
        namespace=(_ACCOUNT / "namespace").read_text().strip(),
    )
