"""The audits of both packs with three seeds, whole, and through a restart of the operator. `make soak` runs them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from support.kubectl import FINISHED, Kubectl, condition

ROOT = Path(__file__).resolve().parents[3]
SYSTEM = "casewarden-system"
MARGINS = {
    "support-routing": {
        "claim-without-actions": 4, "wrong-ticket": 4, "wrong-queue": 4, "duplicate-note": 4, "close-unresolved": 2,
        "skip-retry": 1, "new-key-on-retry": 1, "never-finishes": 4,
    },
    "durable-kv": {
        "ack-without-work": 3, "memory-only": 3, "partial-batch": 1, "cas-always-wins": 2, "boolean-equals-one": 1,
        "delete-noop": 2, "accept-nonstring-keys": 1, "commit-on-exit": 3,
    },
}  # fmt: skip
"""The peer's own margins, and that of the fault of protocol."""
FLOORS = {
    "support-routing": {"null-agent": "0.35", "crashing-agent": "0.25"},
    "durable-kv": {"null-agent": "0", "crashing-agent": "0"},
}


@pytest.mark.timeout(5400)
@pytest.mark.parametrize("task", MARGINS)
def test_an_audit_with_three_seeds_goes_on_through_a_restart_of_the_operator(
    kubectl: Kubectl, module_namespace: str, task: str
) -> None:
    manifest = yaml.safe_load((ROOT / f"examples/audit-{task}.yaml").read_text())
    manifest["metadata"] = {"name": f"audit-{task}", "namespace": module_namespace}
    manifest["spec"] |= {"seeds": {"values": [17, 41, 97]}, "graderMutants": True}
    kubectl.apply(manifest)

    def status() -> dict[str, Any]:
        found: dict[str, Any] = kubectl.get("auditrun", module_namespace, f"audit-{task}").get("status") or {}
        return found

    kubectl.until(lambda: int((status().get("progress") or "0/").partition("/")[0]) >= 20, 600, lambda: str(status()))
    before = status()["progress"]
    kubectl("rollout", "restart", "deployment/casewarden-operator", "-n", SYSTEM)
    kubectl("rollout", "status", "deployment/casewarden-operator", "-n", SYSTEM, "--timeout", "120s", seconds=150)
    assert condition(status(), FINISHED) == "False", f"it was over at {before} already: the restart proved nothing"
    done = kubectl.until(
        lambda: found if condition(found := status(), FINISHED) == "True" else None, 4200, lambda: str(status())
    )
    assert (done["valid"], done["passed"], done["killed"], done["weakestMargin"]) == (True, True, "8/8", 1)
    assert {name: done["floors"][name] for name in FLOORS[task]} == FLOORS[task]
    margins = {row["name"]: row["margin"] for row in done["controls"] if row["kind"] == "fault"}
    assert margins == MARGINS[task]
    assert done["graderMutants"]["total"] == 18
    assert not [name for name in done["graderMutants"]["unnoticed"] if name.endswith(":inverted")]
    total = int(done["progress"].partition("/")[2])
    assert done["progress"] == f"{total}/{total}"
