"""Prometheus and promtool: the distribution's programs, unpacked beside the cluster's; nothing is installed."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from devkit.errors import DevError
from devkit.settings import cache_root
from devkit.shell import Step, run

PROGRAMS = ("prometheus", "promtool")


def ensure() -> Path:
    """Return the folder that has both programs. Raises DevError where they are neither here nor to be had."""
    there = shutil.which("promtool")
    if there is not None and shutil.which("prometheus", path=str(Path(there).parent)) is not None:
        return Path(there).parent
    folder = cache_root() / "programs" / "prometheus"
    if all((folder / "usr" / "bin" / name).exists() for name in PROGRAMS):
        return folder / "usr" / "bin"
    if shutil.which("apt-get") is None:
        raise DevError("prometheus and promtool are not installed: install them your system's way")
    folder.parent.mkdir(parents=True, exist_ok=True)
    log = folder.parent / "prometheus.log"
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".prometheus-") as scratch, Step("unpacked prometheus"):
        if os.geteuid() == 0:
            run(["apt-get", "update"], what="apt-get update", log=log, seconds=300)
        run(["apt-get", "download", "prometheus"], what="fetching prometheus", log=log, cwd=Path(scratch), seconds=300)
        (package,) = Path(scratch).glob("prometheus_*.deb")
        target = Path(scratch) / "unpacked"
        run(["dpkg-deb", "-x", package, target], what="unpacking prometheus", log=log, seconds=120)
        shutil.rmtree(folder, ignore_errors=True)
        target.rename(folder)
    return folder / "usr" / "bin"
