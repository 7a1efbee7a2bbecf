"""Hand a pack of the tests to a task image that does not have it, by a task of the catalogue that writes it."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

import yaml
from support.kubectl import Kubectl

SYSTEM = "casewarden-system"
# What it is graded by is still its own file.
_BOOT = """\
import base64, pathlib, sys, zlib
pathlib.Path("/tmp/{module}.py").write_bytes(zlib.decompress(base64.b64decode({source!r})))
sys.path.insert(0, "/tmp")
from casewarden_sdk.__main__ import main
sys.exit(main(["{module}:PACK", *sys.argv[1:]]))
"""


def booted(image: str, module: str, source: str) -> dict[str, Any]:
    """Return the task of a catalogue that is the pack of a module's source."""
    packed = base64.b64encode(zlib.compress(source.encode())).decode()
    return {"image": image, "command": ["python3", "-B", "-c", _BOOT.format(module=module, source=packed)]}


def catalogue_of(kubectl: Kubectl) -> str:
    """Return the release's catalogue."""
    return str(kubectl.get("configmap", SYSTEM, "casewarden-catalogue")["data"]["catalogue.yaml"])


def with_tasks(catalogue: str, **tasks: dict[str, Any]) -> str:
    """Return a catalogue with more tasks."""
    document = yaml.safe_load(catalogue)
    document["tasks"] |= tasks
    return yaml.safe_dump(document)


def offer(kubectl: Kubectl, catalogue: str) -> None:
    """Give the operator another catalogue, which it reads at its start; installing the release takes far longer."""
    patch = json.dumps({"data": {"catalogue.yaml": catalogue}})
    kubectl("patch", "configmap", "casewarden-catalogue", "-n", SYSTEM, "--type", "merge", "-p", patch)
    kubectl("rollout", "restart", "deployment/casewarden-operator", "-n", SYSTEM)
    kubectl("rollout", "status", "deployment/casewarden-operator", "-n", SYSTEM, "--timeout", "120s", seconds=150)
