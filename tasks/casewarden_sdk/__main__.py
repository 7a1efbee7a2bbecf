"""``casewarden-task MODULE:PACK VERB``: the entry point of a task image."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from typing import Any, List, Optional

from .errors import ContractError

__all__ = ["load_pack", "main"]

USAGE = "usage: casewarden-task MODULE:PACK {plan,drive,grade,aggregate}"
_EXIT_TERMINATED = 143


def load_pack(name: str) -> Any:
    """Return the object that ``MODULE:PACK`` names; ``LookupError`` where there is none."""
    module, _, attribute = name.partition(":")
    if not module or not attribute:
        raise LookupError(f"{name!r}: name the pack as MODULE:PACK")
    try:
        return getattr(importlib.import_module(module), attribute)
    except AttributeError:
        raise LookupError(f"{name!r}: module {module} has no {attribute}") from None
    except ModuleNotFoundError as error:
        raise LookupError(f"{name!r}: {error}; is its folder on PYTHONPATH?") from None


def main(arguments: Optional[List[str]] = None) -> int:
    """Run a verb and return the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if len(arguments) != 2 or arguments[1] not in ("plan", "drive", "grade", "aggregate"):
        sys.stderr.write(USAGE + "\n")
        return 2
    name, verb = arguments
    if verb == "drive":
        # Nothing is sealed once the pod is being taken away; a process that is PID 1 would not even notice otherwise.
        signal.signal(signal.SIGTERM, lambda *_: os._exit(_EXIT_TERMINATED))
    try:
        pack = load_pack(name)
    except LookupError as error:
        sys.stderr.write(f"casewarden-task: {error.args[0]}\n")
        return 2
    except ContractError as error:
        from .verbs import refuse

        # A pack that refuses to be one (a task of AgentBench v0.1) says so where the run's user reads it.
        return refuse(error, os.environ)
    if verb == "drive":
        from .driver import main as drive

        return drive(pack)
    from . import verbs

    if verb == "plan":
        return verbs.plan(pack, sys.stdout, os.environ)
    run = verbs.grade if verb == "grade" else verbs.aggregate
    return run(pack, sys.stdin, sys.stdout, os.environ)


if __name__ == "__main__":
    sys.exit(main())
