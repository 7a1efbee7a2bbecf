"""What a refused create means; Kubernetes answers 403 Forbidden to all of it, and only the words differ."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from casewarden.api.reasons import RunReason
from casewarden.core.model import FinishRun, SetWait

__all__ = ["judge_refusals"]

QUOTA_RETRY_SECONDS: Final = 5.0


def _is_terminating(reason: str, message: str) -> bool:
    return reason == "NamespaceTerminating" or "because it is being terminated" in message


def judge_refusals(refusals: Iterable[tuple[str, str]], now: float) -> SetWait | FinishRun | None:
    """Return what refused creates mean for the run; the gravest counts. None where nothing was refused."""
    found = list(refusals)
    for reason, message in found:
        if _is_terminating(reason, message) or reason == "NotFound":
            return FinishRun(False, RunReason.NAMESPACE_TERMINATING, message)
    for _, message in found:
        if "exceeded quota" not in message:
            return FinishRun(False, RunReason.REFUSED, f"the API server refuses the run's pods: {message}")
    if found:
        return SetWait(RunReason.QUOTA_EXCEEDED, found[0][1], now + QUOTA_RETRY_SECONDS)
    return None
