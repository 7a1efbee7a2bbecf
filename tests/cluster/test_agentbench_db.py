"""agentbench-db in real pods, on what the release brings: a database per case, and controls that are caught."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.kubectl import Kubectl, condition

from casewarden.api.documents import load_documents

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "agentbench"


def example(name: str, namespace: str) -> list[dict[str, Any]]:
    documents = load_documents((EXAMPLES / name).read_text())
    return [{**item, "metadata": {**item["metadata"], "namespace": namespace}} for item in documents]


def test_each_case_has_a_database_and_an_agent_that_drops_it_has_failed(kubectl: Kubectl, namespace: str) -> None:
    kubectl.apply(*example("db.yaml", namespace))
    right, vandal = (kubectl.finished(namespace, name) for name in ("db-reference", "db-drops-it"))

    assert (right["score"], right["resolved"], right["cases"]["total"]) == ("1", True, 4), right
    assert vandal["score"] == "0.33333333", vandal
    assert (vandal["cases"]["failed"], vandal["cases"]["agentErrors"]) == (2, 0)
    assert {row["case"] for row in vandal["failures"]} == {"17", "23"}
    assert "the table hashes to" in vandal["failures"][0]["error"]
    pod = kubectl.pods_of(namespace, "db-drops-it")[0]
    ended = {item["name"]: item["state"]["terminated"]["exitCode"] for item in pod["status"]["containerStatuses"]}
    assert ended == {"candidate": 0, "env-db": 0, "task": 0}


def test_an_audit_catches_every_control_in_its_dimension(kubectl: Kubectl, namespace: str) -> None:
    kubectl.apply(*example("audit-db.yaml", namespace))

    def over() -> dict[str, Any] | None:
        status = kubectl.get("auditrun", namespace, "audit-agentbench-db").get("status") or {}
        return status if condition(status, "Finished") == "True" else None

    status = kubectl.until(over, 280, lambda: kubectl.picture(namespace))
    assert (status["valid"], status["passed"], status["killed"]) == (True, True, "8/8"), status
    assert {row["name"]: row.get("detectedBy") for row in status["controls"] if row["kind"] == "fault"} == {
        "off-by-one": ["4"],
        "wrong-format": ["0"],
        "one-answer-too-many": ["0", "4"],
        "one-row-too-many": ["17"],
        "claims-without-doing": ["23"],
        "changes-every-row": ["23"],
        "drops-the-database": ["17"],
        "kills-the-server": ["23"],
    }
