"""Whether the store can be used at all, asked at the start: a wrong bucket or key is said before a run needs it."""

from __future__ import annotations

import asyncio
import logging

from casewarden.ports.store import Store, StoreError

__all__ = ["Readiness"]

_LOG = logging.getLogger("casewarden.relay")
_KEY = "relay.json"
_CONTENT = b'{"v":1}\n'
_CURES = (
    ("s3://", "check relay.storage.s3: bucket, endpoint, region, pathStyle, and the keys in its Secret"),
    ("file://", "check the volume of the claim casewarden-evidence: is it full, or read-only?"),
)


class Readiness:
    """``why`` says what is wrong until the store has answered well once; it is never asked again after that: an outage
    later is told call by call, and callers wait.
    """

    def __init__(self, store: Store, address: str) -> None:
        self._store, self._address = store, address
        self.why: str | None = "the store has not answered yet"

    async def ask(self, *, every_seconds: float = 5.0, loud_every: int = 12) -> None:
        """Ask until it answers well."""
        asked = 0
        while True:
            said, self.why = self.why, await self._look()
            if self.why is None:
                _LOG.info("the store answers")
                return
            if self.why != said or asked % loud_every == 0:
                _LOG.error("%s", self.why)
            asked += 1
            await asyncio.sleep(every_seconds)

    async def _look(self) -> str | None:
        try:
            await self._store.put_if_absent(_KEY, _CONTENT, limit=len(_CONTENT))
            again = await self._store.put_if_absent(_KEY, _CONTENT, limit=len(_CONTENT))
        except StoreError as error:
            cure = next((text for start, text in _CURES if self._address.startswith(start)), "")
            return f"{error}; {cure}" if cure else str(error)
        if again.created:
            return (
                "the store replaces what is there although it is asked not to (If-None-Match: *), so nobody could tell "
                "which verdict was first: take a server with conditional writes"
            )
        return None
