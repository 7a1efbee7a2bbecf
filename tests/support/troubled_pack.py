"""A pack whose driver has trouble of the environment's kind, as often as a file says."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

from support.packs import EchoPack

from casewarden_sdk.contract import Case
from casewarden_sdk.errors import EnvironmentFailure

__all__ = ["PACK", "TROUBLE", "TroubledPack"]

TROUBLE = "CASEWARDEN_TEST_TROUBLE"


class TroubledPack(EchoPack):
    """Reads the file that ``CASEWARDEN_TEST_TROUBLE`` names: one word for each attempt's trouble, the first first."""

    async def drive(self, case: Case, runtime: Any) -> Any:
        """Have the next trouble of the list, if any is left, before or instead of the case."""
        trouble = _next()
        if trouble == "environment":
            raise EnvironmentFailure("ModelUnavailable", "the endpoint answers 503")
        if trouble == "bug":
            raise KeyError("a bug of the pack's")
        if trouble == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if trouble == "unsaid":
            return {1, 2}
        record = await super().drive(case, runtime)
        if trouble == "hangs":
            time.sleep(60)
        return record


def _next() -> str | None:
    path = Path(os.environ[TROUBLE])
    first, *rest = path.read_text().split() or [""]
    path.write_text(" ".join(rest))
    return first or None


PACK = TroubledPack()
