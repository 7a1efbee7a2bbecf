"""Which proxy of the environment (``HTTPS_PROXY``, ``NO_PROXY`` and the like) stands before an address."""

from __future__ import annotations

import urllib.request
from urllib.parse import urlsplit

__all__ = ["proxy_for"]


def proxy_for(url: str) -> str | None:
    """Return the proxy to call ``url`` by, None for none. This machine itself is never reached by one, as with Go."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    if host in ("localhost", "::1") or host.startswith("127.") or urllib.request.proxy_bypass(host):
        return None
    found = urllib.request.getproxies().get(parts.scheme)
    # A proxy is often given as host:port.
    return found if not found or "://" in found else f"http://{found}"
