"""A cluster as the tests see it: kubectl, as a user has it, and a few waits with limits."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import yaml

FINISHED = "Finished"
T = TypeVar("T")


class KubectlError(AssertionError):
    """kubectl answered with an error; the message is its own."""


@dataclass(frozen=True)
class Kubectl:
    """kubectl against one cluster; every call has a time limit."""

    kubeconfig: str

    def __call__(self, *args: str, stdin: str | None = None, check: bool = True, seconds: float = 60) -> str:
        """Run kubectl and return what it printed."""
        done = subprocess.run(
            ["kubectl", "--kubeconfig", self.kubeconfig, *args],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        if check and done.returncode:
            raise KubectlError(f"kubectl {' '.join(args)}: {done.stderr.strip() or done.stdout.strip()}")
        return done.stdout or ("" if done.returncode == 0 else done.stderr)

    def apply(self, *documents: Mapping[str, Any]) -> None:
        """Apply objects."""
        self("apply", "-f", "-", stdin=yaml.safe_dump_all([dict(item) for item in documents], sort_keys=False))

    def get(self, kind: str, namespace: str, name: str) -> dict[str, Any]:
        """Return one object."""
        return json.loads(self("get", kind, name, "-n", namespace, "-o", "json"))  # type: ignore[no-any-return]

    def find(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        """Return one object, or None where there is none."""
        text = self("get", kind, name, "-n", namespace, "-o", "json", "--ignore-not-found")
        return json.loads(text) if text.strip() else None

    def list(self, kind: str, namespace: str, selector: str = "") -> list[dict[str, Any]]:
        """Return the objects of a namespace that a label selector takes."""
        args = ["get", kind, "-n", namespace, "-o", "json"] + (["-l", selector] if selector else [])
        return json.loads(self(*args))["items"]  # type: ignore[no-any-return]

    def pods_of(self, namespace: str, run: str) -> list[dict[str, Any]]:
        """Return the case pods of a run."""
        uid = self.get("evalrun", namespace, run)["metadata"]["uid"]
        return self.list("pods", namespace, f"casewarden.dev/run-uid={uid},casewarden.dev/role=case")

    def status(self, namespace: str, run: str) -> dict[str, Any]:
        """Return a run's status; empty before the operator has seen it."""
        return self.get("evalrun", namespace, run).get("status") or {}

    def finished(self, namespace: str, run: str, seconds: float = 240) -> dict[str, Any]:
        """Wait until a run is over and return its status."""
        return self.until(
            lambda: status if condition(status := self.status(namespace, run), FINISHED) == "True" else None,
            seconds,
            lambda: (
                f"run {run} is not finished: {json.dumps(self.status(namespace, run))[:3000]}\n"
                f"{self.picture(namespace)}"
            ),
        )

    def until(
        self, probe: Callable[[], T | None], seconds: float, complaint: Callable[[], str], pause: float = 0.5
    ) -> T:
        """Call ``probe`` until it answers something true, for so many seconds; else fail with ``complaint``."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if answer := probe():
                return answer
            time.sleep(pause)
        raise AssertionError(f"after {seconds:g} s: {complaint()}")

    def picture(self, namespace: str) -> str:
        """Describe a namespace for a failed test."""
        return (
            self("get", "evalruns,pods", "-n", namespace, "-o", "wide", check=False)
            + self("get", "events", "-n", namespace, "--sort-by=.lastTimestamp", check=False)[-4000:]
        )


def condition(status: Mapping[str, Any], kind: str) -> str | None:
    """Return the status word of a condition, None where it is not set."""
    return next((item["status"] for item in status.get("conditions", ()) if item["type"] == kind), None)


def reason(status: Mapping[str, Any], kind: str) -> str | None:
    """Return the reason of a condition, None where it is not set."""
    return next((item["reason"] for item in status.get("conditions", ()) if item["type"] == kind), None)


def message(status: Mapping[str, Any], kind: str) -> str:
    """Return the message of a condition, empty where it is not set."""
    return next((item.get("message", "") for item in status.get("conditions", ()) if item["type"] == kind), "")


def evalrun(namespace: str, name: str, **spec: Any) -> dict[str, Any]:
    """Build an EvalRun."""
    return {
        "apiVersion": "casewarden.dev/v1alpha1",
        "kind": "EvalRun",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def workspace(namespace: str, name: str, files: Mapping[str, str] | Path) -> dict[str, Any]:
    """Build the ConfigMap of a flat candidate folder."""
    if isinstance(files, Path):
        files = {item.name: item.read_text() for item in sorted(files.iterdir()) if item.is_file()}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": namespace},
        "data": dict(files),
    }
