"""What the phases of a run may ask of its task."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar

from casewarden.core.model import RunPolicy

__all__ = ["Hands"]

T = TypeVar("T")


class Hands(Protocol):
    """The task of a run, as its phases see it. All but ``policy``, ``written`` and ``wake`` may raise ``RunGone``."""

    @property
    def written(self) -> dict[str, Any]:
        """The status that the API server has."""

    def policy(self) -> RunPolicy:
        """Return what of the spec decides now; parts of it may change while the run is going on."""

    def wake(self) -> None:
        """Let the next ``rest`` end at once."""

    async def rest(self, until: float | None) -> None:
        """Report, then wait for news, at most until a time (seconds since the epoch)."""

    async def report(self) -> None:
        """Write the status now."""

    async def evidence(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Ask the relay, again for as long as a store is waited for; ``Ended`` when that is over."""
