"""Finds the shim's binary for local runs, and builds it once where there is only its source."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from casewarden_sdk.canonical import digest_files

__all__ = ["ShimMissing", "find_shim"]

_NAME = "casewarden-shim"
_SOURCE = Path(__file__).resolve().parents[3] / "images" / "shim"
_BUILD_SECONDS = 600


class ShimMissing(Exception):
    """There is no shim and none can be built; the message says what to do."""


def find_shim(variables: Mapping[str, str] | None = None, source: Path = _SOURCE) -> Path:
    """Return the shim: ``CASEWARDEN_SHIM``, else ``casewarden-shim`` on the path, else a build of its source, kept."""
    variables = os.environ if variables is None else variables
    named = variables.get("CASEWARDEN_SHIM")
    if named:
        if not os.access(named, os.X_OK):
            raise ShimMissing(f"CASEWARDEN_SHIM is {named!r}, which is no program; name the shim's binary")
        return Path(named)
    found = shutil.which(_NAME, path=variables.get("PATH"))
    return Path(found) if found else _built(variables, source)


def _built(variables: Mapping[str, str], source: Path) -> Path:
    go = shutil.which("go", path=variables.get("PATH"))
    files = [path for path in sorted(source.rglob("*")) if path.suffix == ".go" or path.name in ("go.mod", "go.sum")]
    files = [path for path in files if not path.name.endswith("_test.go")]
    digest = digest_files((path.relative_to(source).as_posix(), path.read_bytes()) for path in files)
    cache = Path(variables.get("XDG_CACHE_HOME") or Path(variables.get("HOME", "/")) / ".cache") / "casewarden"
    target = cache / f"shim-{digest[:16]}"
    if files and target.exists():
        return target
    if not files or not go:
        raise ShimMissing(
            f"no shim: set CASEWARDEN_SHIM to its binary, put {_NAME} on the PATH, or install Go in a source checkout"
        )
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as scratch:
        made = Path(scratch, "shim")
        command = [go, "build", "-trimpath", "-ldflags=-s -w", "-o", str(made), "."]
        environment = {**variables, "CGO_ENABLED": "0"}
        build = subprocess.run(
            command, cwd=source, env=environment, capture_output=True, timeout=_BUILD_SECONDS, check=False
        )
        if build.returncode != 0:
            raise ShimMissing(f"go build of the shim failed: {build.stderr.decode('utf-8', 'replace').strip()[-800:]}")
        os.replace(made, target)
    return target
