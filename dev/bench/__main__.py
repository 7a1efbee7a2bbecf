"""`make bench`: run the benchmarks, print them, keep them in dev/bench/results/."""

from __future__ import annotations

import json
import logging
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.core import operator_at, step_at
from bench.kwok import kwok_at
from bench.local import local_at
from bench.pods import occupancy, phases, wall_ratio
from bench.processes import start_up

RESULTS = Path(__file__).parent / "results"
# By the number of cases: `kwok-40` tries one with 40.
BENCHMARKS: dict[str, Callable[[int], Any]] = {
    "start-up": lambda _: start_up(),
    "step": step_at,
    "operator": lambda cases: operator_at(cases, max(20, cases // 20)),
    "local": local_at,
    "phases": phases,
    "wall": lambda cases: wall_ratio(cases, min(20, cases)),
    "slots": lambda cases: occupancy(cases, max(1, min(20, cases // 4)), 5.0),
    "kwok": kwok_at,
}
# The first without a cluster, the others on one of their own (`CLUSTER_NAME`, default bench), from quick to long.
USUAL = ("start-up", "step-1000", "step-10000", "operator-200", "operator-2000", "local-200", "phases-8", "wall-40",
         "slots-80", "kwok-2000", "kwok-10000")  # fmt: skip


def _parts(name: str) -> tuple[str, int] | None:
    found = re.fullmatch(r"(start-up)|(.+)-(\d+)", name)
    kind, cases = (found[1] or found[2], int(found[3] or 0)) if found else ("", 0)
    return (kind, cases) if kind in BENCHMARKS else None


def measure(name: str) -> None:
    """Run one benchmark in this process, print its figures and keep them."""
    kind, cases = _parts(name) or ("", 0)
    logging.disable(logging.CRITICAL)
    load = os.getloadavg()[0]
    figures = BENCHMARKS[kind](cases)
    machine = {"cores": os.cpu_count(), "load_before": load, "load_after": os.getloadavg()[0]}
    document = {"name": name, "at": time.time(), "python": platform.python_version(), "machine": machine}
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps(document | {"figures": figures}, indent=2)
    (RESULTS / f"{name}.json").write_text(text + "\n")
    print(f"{name} (load {load:.0f} on {os.cpu_count()} cores): {json.dumps(figures)}", flush=True)


def main(wanted: list[str]) -> int:
    """Run those that are named, or the usual ones, each in a process of its own: peak memory is a process's."""
    unknown = [name for name in wanted if _parts(name) is None]
    if unknown:
        print(f"bench: there is no {unknown[0]}: {', '.join(BENCHMARKS)}, each with -CASES", file=sys.stderr)
        return 2
    if len(wanted) == 1:
        measure(wanted[0])
        return 0
    failed = [name for name in wanted or USUAL if subprocess.run([sys.executable, "-m", "bench", name]).returncode]
    if failed:
        print(f"bench: {', '.join(failed)} failed", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
