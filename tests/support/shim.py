"""The real shim, built once per change of its source and kept."""

from __future__ import annotations

import functools
from pathlib import Path

from casewarden.local.shim import find_shim

__all__ = ["shim"]


@functools.cache
def shim() -> Path:
    """Return the shim's binary, for this machine."""
    return find_shim()
