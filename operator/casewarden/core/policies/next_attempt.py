"""Which number the next attempt of a case gets."""

from __future__ import annotations

from collections.abc import Iterable

from casewarden.core.model import AttemptKey, CaseKey

__all__ = ["next_attempt"]


def next_attempt(case: CaseKey, seen: Iterable[AttemptKey]) -> AttemptKey:
    """Return the attempt after the highest of ``seen``: those of this case that rows, pods and memory have.

    A create that was sent and never seen does not count: the same name is tried again, so that a create that lands late
    meets its own twin and not a new number.
    """
    return AttemptKey(case, 1 + max((key.attempt for key in seen), default=0))
