"""Who had the processor: seconds of CPU of each of a cluster's programs, so that a rate's limit has a name."""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path

from devkit import namespaces
from devkit.settings import Cluster

_TICK = os.sysconf("SC_CLK_TCK")


def seconds_of(cluster: Cluster) -> Counter[str]:
    """CPU seconds so far by program of the cluster's process namespace, and of the machine's cores as ``idle``."""
    first = namespaces.init_pid(cluster)
    if first is None:
        raise RuntimeError(f"cluster {cluster.name} is not up")
    inside = os.readlink(f"/proc/{first}/ns/pid")
    found: Counter[str] = Counter()
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if os.readlink(entry / "ns/pid") == inside:
                head, _, tail = (entry / "stat").read_text().rpartition(")")
                user, system = tail.split()[11:13]
                found[head.partition("(")[2]] += (int(user) + int(system)) / _TICK  # type: ignore[assignment]
        except OSError:
            continue
    return found


class Shares:
    """Shares of the machine's cores that a cluster's programs had since this was made."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._before, self._idle, self._start = seconds_of(cluster), _idle_seconds(), time.monotonic()

    def now(self, least: float = 0.01) -> dict[str, float]:
        """Share of all cores by program, the largest first, with ``idle``; those below ``least`` are left out."""
        whole = (time.monotonic() - self._start) * (os.cpu_count() or 1)
        used = seconds_of(self._cluster)
        used.subtract(self._before)
        shares = {name: spent / whole for name, spent in used.most_common()}
        shares["idle"] = (_idle_seconds() - self._idle) / whole
        return {name: round(share, 3) for name, share in shares.items() if share >= least or name == "idle"}


def _idle_seconds() -> float:
    words = Path("/proc/stat").read_text().splitlines()[0].split()
    return (int(words[4]) + int(words[5])) / _TICK
