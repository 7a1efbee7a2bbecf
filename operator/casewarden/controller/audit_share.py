"""One parallelism over all runs of an audit: each takes of it what the others leave.

A run *reserves* before it decides what to start and *settles* when its creates are under way, so that no two of them
count the same free place. Everything happens on one event loop; nothing here waits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

__all__ = ["AuditShare"]


class AuditShare:
    """Places of an audit by the UID of the run that holds them; ``wake`` gets that of a run that may go on."""

    def __init__(self, wake: Callable[[str], None], held: Mapping[str, int] | None = None) -> None:
        self._wake = wake
        self._held: dict[str, int] = dict(held or {})
        self._short: set[str] = set()
        self._width = 0

    def reserve(self, run_uid: str, width: int) -> int:
        """Return how many pods a run may have in all, of ``width`` for the audit, and hold them for it."""
        self._width = width
        allowed = max(0, width - self._of_others(run_uid))
        self._held[run_uid] = max(allowed, 0)
        return allowed

    def settle(self, run_uid: str, used: int) -> None:
        """Hold only what is used; runs that wanted more than they got may look again."""
        offered = self._held.get(run_uid, 0)
        self._held[run_uid] = used
        if used >= offered and offered < self._width:
            self._short.add(run_uid)
        else:
            self._short.discard(run_uid)
        self._offer()

    def release(self, run_uid: str) -> None:
        """Let go of a run that is over."""
        self._held.pop(run_uid, None)
        self._short.discard(run_uid)
        self._offer()

    def _offer(self) -> None:
        if sum(self._held.values()) < self._width:
            for run_uid in sorted(self._short):
                self._wake(run_uid)

    def _of_others(self, run_uid: str) -> int:
        return sum(held for uid, held in self._held.items() if uid != run_uid)
