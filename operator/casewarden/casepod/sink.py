"""Where evidence goes: the seam between the recorder and the relay (or, in a local run, a store)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

__all__ = ["EvidenceSink"]


class EvidenceSink(Protocol):
    """One attempt's way to the store. Every method may raise ``EnvironmentFailure`` once it has tried long enough."""

    async def claim(self) -> bool:
        """Claim the attempt for this pod; False where another pod has it or the case is sealed."""

    async def fetch_workspace(self, digest: str) -> bytes:
        """Return the archive of an uploaded candidate folder."""

    async def put_bundle(self, data: bytes, *, partial: bool) -> None:
        """Keep the bundle; the same bytes again are no error, other bytes are."""

    async def put_sealed(self, document: Mapping[str, Any]) -> bool:
        """Commit the verdict; True when it is the one that counts, False where another attempt was first."""
