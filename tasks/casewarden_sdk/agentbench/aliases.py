"""AgentBench's own module names: ``src.server.task``, ``src.typings`` and what is below them."""

from __future__ import annotations

import sys
from pathlib import Path

__all__ = ["FOLDER", "install_aliases"]

FOLDER = str(Path(__file__).parent / "v02")
"""What a task file that imports from ``src`` needs on its path."""


def install_aliases() -> None:
    """Let ``import src.server.task`` and its like find this package's classes. A ``src`` of one's own goes first."""
    if FOLDER not in sys.path:
        sys.path.append(FOLDER)
