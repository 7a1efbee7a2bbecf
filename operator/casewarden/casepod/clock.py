"""Case time: from the candidate's first start, measured here and nowhere else."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator

from casewarden_sdk.errors import CandidateError

__all__ = ["CaseClock"]


class CaseClock:
    """Starts once. ``now`` is seconds since then (0 before); ``seconds`` is when the candidate was last busy.

    What passes while it is ``held`` is in ``now`` and counts neither into ``seconds`` nor against the case.
    """

    def __init__(self, case_seconds: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.seconds = 0.0
        self._allowed = case_seconds
        self._monotonic = monotonic
        self._started: float | None = None
        self._held = 0.0

    @property
    def started(self) -> bool:
        """Tell whether the candidate has ever been started."""
        return self._started is not None

    def start(self) -> None:
        """Start the clock; later calls change nothing."""
        if self._started is None:
            self._started = self._monotonic()

    def now(self) -> float:
        """Return the seconds since the first start."""
        return 0.0 if self._started is None else self._monotonic() - self._started

    def busy(self) -> None:
        """Mark now as the last moment at which the candidate was waited for."""
        self.seconds = round(self.now() - self._held, 6)

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Let no time of the case pass: somebody else is waited for."""
        began = self.now()
        try:
            yield
        finally:
            self._held += self.now() - began

    def left(self, seconds: float | None = None) -> float:
        """Return ``seconds`` cut to what is left of the case; ``CandidateError`` (``TimeLimit``) when nothing is."""
        rest = self._allowed - (self.now() - self._held)
        if rest <= 0:
            raise CandidateError("TimeLimit", f"the case took more than its {self._allowed:g} s")
        return rest if seconds is None else min(seconds, rest)
