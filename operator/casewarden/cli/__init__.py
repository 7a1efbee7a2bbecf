"""The ``casewarden`` command, also as ``kubectl casewarden``.

Exit codes: 0 good, 1 assessed but not good, 2 invalid or not set up, 130 interrupted.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; whatever goes wrong is one line on stderr."""
    # Everything heavy is imported by the command that needs it: --help must answer at once.
    from casewarden.cli.app import run

    called = os.path.basename(sys.argv[0])
    name = "kubectl casewarden" if called.startswith("kubectl-") else "casewarden"
    return run(name, list(sys.argv[1:] if argv is None else argv))
