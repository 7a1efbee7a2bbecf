"""Helm, 3 and 4, as a user of the cluster under test has it; built from source where it is not on the PATH."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass

from devkit import programs

__all__ = ["Helm", "program"]


def program(major: int = 3) -> str:
    """Return the path of helm of a major version."""
    if major == 4:
        return str(programs.ensure(programs.HELM4) / "helm")
    return shutil.which("helm") or str(programs.ensure(programs.CLUSTER) / "helm")


@dataclass(frozen=True)
class Helm:
    """Helm against one cluster; every call has a time limit."""

    kubeconfig: str
    major: int = 3

    def __call__(self, *words: str, seconds: float = 300) -> str:
        """Run helm and return what it printed."""
        done = self.attempt(*words, seconds=seconds)
        assert done.returncode == 0, f"helm {' '.join(words)}: {done.stderr or done.stdout}"
        return done.stdout

    def attempt(self, *words: str, seconds: float = 300) -> subprocess.CompletedProcess[str]:
        """Run helm, which may refuse."""
        return subprocess.run([program(self.major), "--kubeconfig", self.kubeconfig, *words], capture_output=True,
                              text=True, timeout=seconds, check=False)  # fmt: skip
