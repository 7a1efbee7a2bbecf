"""agentbench-db in real pods, on what the release brings: a database per case, and controls that are caught."""

from __future__ import annotations

from typing import Any

from support.kubectl import Kubectl, condition, evalrun

# A question with a text as answer, one with a number, a row to add, a row to change.
INDICES = [0, 4, 17, 23]


def run(namespace: str, name: str, control: str) -> dict[str, Any]:
    return evalrun(
        namespace, name, task={"name": "agentbench-db", "params": {"indices": INDICES}}, seeds={"values": [0]},
        candidate={"control": control}, parallelism=4, keepPods="OnFailure",
    )  # fmt: skip


def test_each_case_has_a_database_and_an_agent_that_drops_it_has_failed(kubectl: Kubectl, namespace: str) -> None:
    kubectl.apply(run(namespace, "right", "reference"), run(namespace, "vandal", "drops-the-database"))
    right, vandal = (kubectl.finished(namespace, name) for name in ("right", "vandal"))

    assert (right["score"], right["resolved"], right["cases"]["total"]) == ("1", True, 4), right
    assert vandal["score"] == "0.33333333", vandal
    assert (vandal["cases"]["failed"], vandal["cases"]["agentErrors"]) == (2, 0)
    assert [row["case"] for row in vandal["failures"]] == ["17", "23"]
    assert "the table hashes to" in vandal["failures"][0]["error"]
    (pod, _) = kubectl.pods_of(namespace, "vandal")
    ended = {item["name"]: item["state"]["terminated"]["exitCode"] for item in pod["status"]["containerStatuses"]}
    assert ended == {"candidate": 0, "env-db": 0, "task": 0}


def test_an_audit_catches_every_control_in_its_dimension(kubectl: Kubectl, namespace: str) -> None:
    audit = {
        "apiVersion": "casewarden.dev/v1alpha1",
        "kind": "AuditRun",
        "metadata": {"name": "db", "namespace": namespace},
        "spec": {
            "task": {"name": "agentbench-db", "params": {"indices": INDICES}}, "seeds": {"values": [0]},
            "referenceRepeats": 1, "parallelism": 12, "strict": True,
        },
    }  # fmt: skip
    kubectl.apply(audit)

    def over() -> dict[str, Any] | None:
        status = kubectl.get("auditrun", namespace, "db").get("status") or {}
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
