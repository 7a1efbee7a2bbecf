"""The services of a release: ``python -m casewarden operator``, ``python -m casewarden relay``."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Sequence

__all__ = ["main"]

_USAGE = "usage: python -m casewarden {operator,relay} [--help | flags]"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one of the services; returns its exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    verb, rest = (words[0], words[1:]) if words else ("", [])
    if verb == "operator":
        return _operator(rest)
    if verb == "relay":
        from casewarden.relay.__main__ import main as relay_main

        return relay_main(rest)
    print(_USAGE, file=sys.stderr)
    return 0 if verb in ("-h", "--help") else 2


def _operator(argv: Sequence[str]) -> int:
    from casewarden.adapters.kube.connection import ConfigError
    from casewarden.adapters.kube.lease import LeaseLost
    from casewarden.handlers.operator import main as operator_main
    from casewarden.settings import parse_settings
    from casewarden.wiring import CatalogueError

    settings = parse_settings(argv)
    logging.basicConfig(level=settings.log_level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    try:
        asyncio.run(operator_main(settings))
    except (ConfigError, CatalogueError) as error:
        print(f"casewarden operator: {error}", file=sys.stderr)
        return 2
    except LeaseLost:
        # Started again it stands by.
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
