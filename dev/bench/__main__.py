"""`make bench`: run the benchmarks, print them, keep them in dev/bench/results/."""

from __future__ import annotations

import json
import logging
import os
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.core import operator_at, step_at
from bench.processes import start_up

RESULTS = Path(__file__).parent / "results"
# Each in this order: memory is the peak of the process, so the largest run of the operator comes last.
BENCHMARKS: dict[str, Callable[[], Any]] = {
    "start-up": start_up,
    "step-1000": lambda: step_at(1_000),
    "step-10000": lambda: step_at(10_000),
    "operator-200": lambda: operator_at(200, 20),
    "operator-2000": lambda: operator_at(2_000, 100),
}


def main(wanted: list[str]) -> int:
    """Run those that are named, or all."""
    unknown = [name for name in wanted if name not in BENCHMARKS]
    if unknown:
        print(f"bench: there is no {unknown[0]}: {', '.join(BENCHMARKS)}", file=sys.stderr)
        return 2
    logging.disable(logging.CRITICAL)
    RESULTS.mkdir(exist_ok=True)
    for name in wanted or BENCHMARKS:
        load = os.getloadavg()[0]
        figures = BENCHMARKS[name]()
        machine = {"cores": os.cpu_count(), "load_before": load, "load_after": os.getloadavg()[0]}
        document = {"name": name, "at": time.time(), "python": platform.python_version(), "machine": machine}
        text = json.dumps(document | {"figures": figures}, indent=2)
        (RESULTS / f"{name}.json").write_text(text + "\n")
        print(f"{name} (load {load:.0f} on {os.cpu_count()} cores): {json.dumps(figures)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
