"""Another catalogue for the installed release, for as long as a test needs it."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import yaml
from support.kubectl import Kubectl

__all__ = ["SYSTEM", "image_of", "offering"]

SYSTEM = "casewarden-system"


@contextlib.contextmanager
def offering(kubectl: Kubectl, change: Callable[[dict[str, Any]], None]) -> Iterator[dict[str, Any]]:
    """Let ``change`` alter the catalogue in place, which is put back at the end; the catalogue as it is then."""
    before = _offered(kubectl)
    catalogue = yaml.safe_load(before)
    change(catalogue)
    _offer(kubectl, yaml.safe_dump(catalogue))
    try:
        yield catalogue
    finally:
        _offer(kubectl, before)


def image_of(kubectl: Kubectl, alias: str) -> str:
    """What the catalogue has for an alias."""
    return str(yaml.safe_load(_offered(kubectl))["images"][alias])


def _offered(kubectl: Kubectl) -> str:
    return str(kubectl.get("configmap", SYSTEM, "casewarden-catalogue")["data"]["catalogue.yaml"])


def _offer(kubectl: Kubectl, catalogue: str) -> None:
    """Give the operator the catalogue, which it reads at its start; installing the release takes far longer."""
    patch = json.dumps({"data": {"catalogue.yaml": catalogue}})
    kubectl("patch", "configmap", "casewarden-catalogue", "-n", SYSTEM, "--type", "merge", "-p", patch)
    kubectl("rollout", "restart", "deployment/casewarden-operator", "-n", SYSTEM)
    kubectl("rollout", "status", "deployment/casewarden-operator", "-n", SYSTEM, "--timeout", "120s", seconds=150)
