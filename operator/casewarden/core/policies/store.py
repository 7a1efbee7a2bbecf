"""How long a run waits for a store that does not answer."""

from __future__ import annotations

from typing import Final

from casewarden.api.reasons import RunReason
from casewarden.core.model import FinishRun

__all__ = ["STORE_SECONDS", "store_given_up"]

# As long as the recorder of a case pod holds a finished verdict.
STORE_SECONDS: Final = 900.0


def store_given_up(away_since: float | None, waiting: int, now: float) -> FinishRun | None:
    """Return the failure of a run whose attempts cannot be judged because the store is away, or None.

    ``waiting`` is how many attempts are over and cannot be judged without a look at the store.
    """
    if away_since is None or now < away_since + STORE_SECONDS:
        return None
    message = f"{waiting} attempts are over, and the evidence store has not answered for {STORE_SECONDS:.0f} s"
    return FinishRun(False, RunReason.STORE_UNAVAILABLE, message)
