"""A run of trivial cases without a cluster: `casewarden run`, as a user has it."""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.cluster import FAMILIES, FINISHES
from devkit.settings import REPOSITORY


def local_at(cases: int) -> dict[str, Any]:
    """Seconds of a local run of so many cases, a multiple of 4, whose candidate finishes at once."""
    run = {
        "apiVersion": "casewarden.dev/v1alpha1", "kind": "EvalRun", "metadata": {"name": "local"},
        "spec": {
            "task": {"name": "support-routing"}, "seeds": {"values": list(range(1, cases // FAMILIES + 1))},
            "candidate": {"program": {"workspace": {"configMap": "local"}}},
        },
    }  # fmt: skip
    files = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "local"},
             "data": {"main.py": FINISHES.format(seconds=0)}}  # fmt: skip
    with tempfile.TemporaryDirectory() as scratch:
        manifest = Path(scratch) / "run.yaml"
        manifest.write_text("\n---\n".join(json.dumps(item) for item in (files, run)))
        started = time.monotonic()
        done = subprocess.run(
            [str(REPOSITORY / ".venv" / "bin" / "casewarden"), "run", "-f", str(manifest), "--out", f"{scratch}/out"],
            capture_output=True,
            text=True,
            timeout=1800,
            check=False,
        )
        seconds = time.monotonic() - started
    if done.returncode not in (0, 1):
        raise RuntimeError(f"the run ended with {done.returncode}: {done.stderr[-2000:]}")
    return {"cases": cases, "seconds": seconds, "cases_per_second": cases / seconds}
