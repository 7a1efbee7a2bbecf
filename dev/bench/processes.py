"""What the two programs of a case pod cost before they do anything: their imports, in a process of their own."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
from typing import Any

_PROBE = """
import json, resource, time
{code}
usage = resource.getrusage(resource.RUSAGE_SELF)
lines = open("/proc/self/status").read().splitlines()
# Not ru_maxrss, which a process takes over from the one that started it.
peak = next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))
print(json.dumps([usage.ru_utime + usage.ru_stime, peak / 1024]))
"""
_PROGRAMS = {
    "interpreter": "pass",
    "sidecar": "import casewarden.casepod.__main__, casewarden.casepod.recorder",
    "driver": "import casewarden_sdk.__main__, casewarden_sdk.driver, casewarden_tasks.durable_kv",
}


def start_up(repeats: int = 5) -> dict[str, Any]:
    """Seconds of CPU and MiB of memory of each program after its imports; the bare interpreter is in both figures."""
    found = {}
    for name, code in _PROGRAMS.items():
        runs = []
        for _ in range(repeats):
            done = subprocess.run(
                [sys.executable, "-c", _PROBE.format(code=code)],
                capture_output=True,
                text=True,
                timeout=120,
                check=True,
            )
            runs.append(json.loads(done.stdout))
        found[name] = {
            "cpu_s": statistics.median(r[0] for r in runs),
            "peak_mib": statistics.median(r[1] for r in runs),
        }
    return found
