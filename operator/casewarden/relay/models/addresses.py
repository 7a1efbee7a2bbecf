"""Which addresses the relay may call: those that the administrator named, and public ones.

Addresses are judged where they are connected to, so that a name which changes its mind between two look-ups gains
nothing.
"""

from __future__ import annotations

import ipaddress
import socket
from urllib.parse import urlsplit

from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver

from casewarden.api.endpoint import Endpoint

__all__ = ["GuardedResolver", "names_the_cluster", "refused_address"]


def names_the_cluster(host: str) -> bool:
    """Tell whether a host name can only mean something inside the cluster or this machine."""
    labels = host.rstrip(".").lower().split(".")
    return len(labels) == 1 or "svc" in labels[2:3] or labels[-1] in ("local", "internal", "localhost")


def refused_address(address: str, *, private_allowed: bool) -> str | None:
    """Say why an address may not be called, or None where it may."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return "is no address"
    mapped = getattr(found, "ipv4_mapped", None)
    if mapped is not None:
        found = mapped
    if found.is_link_local:
        return "is link-local"
    if found.is_multicast or found.is_unspecified:
        return "is no address of one machine"
    if not private_allowed and not found.is_global:
        return "is not public: name it in the endpoint's url, or set privateAddresses"
    return None


class GuardedResolver(AbstractResolver):
    """Resolves the host of one endpoint and leaves out what may not be called.

    With a proxy it is the proxy's host that is resolved, which the administrator named; the proxy resolves the other.
    """

    def __init__(self, endpoint: Endpoint, proxy: str | None = None) -> None:
        host = urlsplit(endpoint.url).hostname or ""
        self._private = proxy is not None or endpoint.private_addresses or names_the_cluster(host)
        self._resolver = ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Return the addresses that may be called; ``OSError`` where none may."""
        found = await self._resolver.resolve(host, port, family)
        good = [item for item in found if refused_address(item["host"], private_allowed=self._private) is None]
        if not good:
            why = "; ".join(
                f"{item['host']} {refused_address(item['host'], private_allowed=self._private)}" for item in found
            )
            raise OSError(f"{host} may not be called: {why or 'it has no address'}")
        return good

    async def close(self) -> None:
        """Let go of the resolver."""
        await self._resolver.close()
