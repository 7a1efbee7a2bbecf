"""Which audit vouches for the grader of a run."""

from __future__ import annotations

from typing import Any

import pytest

from casewarden.core.gate import Needed, judge_audits
from casewarden.core.status import time_text

PRINTS = {"task": "t@1", "contract": "c", "grader": "g", "params": "p", "conditions": "w"}
NEEDED = Needed(PRINTS, frozenset({"reference", "null-agent", "fault"}), 3600.0)
NOW = 1_800_000_000.0


def an_audit(name: str = "trial", age: float = 60.0, **status: Any) -> dict[str, Any]:
    rows = [("reference", "reference"), ("null-agent", "null"), ("fault", "fault")]
    base = {
        "valid": True, "passed": True, "fingerprints": PRINTS, "completionTime": time_text(NOW - age),
        "conditions": [{"type": "Complete", "status": "True"}], "floors": {"null-agent": "0.35"}, "referenceScore": "1",
        "controls": [{"name": row, "kind": kind} for row, kind in rows],
    }  # fmt: skip
    return {"metadata": {"name": name}, "spec": {}, "status": base | status}


def test_a_passed_audit_of_the_same_grader_vouches_and_lends_its_floors() -> None:
    found = judge_audits([an_audit()], NEEDED, NOW)
    assert (found.status, found.why.reason) == ("True", "Audited")
    assert found.floor == {"audit": "trial", "nullAgent": "0.35", "reference": "1"}


def test_the_newest_of_several_is_named() -> None:
    audits = [an_audit("old", 900), an_audit("new", 30), an_audit("failed", 1, passed=False)]
    assert judge_audits(audits, NEEDED, NOW).floor["audit"] == "new"


def test_without_any_audit_that_is_said() -> None:
    found = judge_audits([], NEEDED, NOW)
    assert (found.status, found.why.message) == ("False", "there is no AuditRun in the namespace")


@pytest.mark.parametrize("name", PRINTS)
def test_an_audit_of_another_fingerprint_does_not_vouch(name: str) -> None:
    found = judge_audits([an_audit(fingerprints=PRINTS | {name: "other"})], NEEDED, NOW)
    assert found.status == "False"
    assert f"it is of another {name}" in found.why.message


@pytest.mark.parametrize(
    ("audit", "said"),
    [
        (an_audit(passed=False), "it did not pass"),
        (an_audit(valid=False, passed=None), "it did not pass"),
        (an_audit(conditions=[]), "it is not complete"),
        (an_audit(age=3700), "older than 1 hours"),
        (an_audit(controls=[{"name": "reference", "kind": "reference"}]), "left out fault, null-agent"),
        ({"metadata": {"name": "new"}, "spec": {}}, "it is not complete"),
    ],
)
def test_what_an_audit_lacks_is_said(audit: dict[str, Any], said: str) -> None:
    found = judge_audits([audit], NEEDED, NOW)
    assert (found.status, found.floor) == ("False", {})
    assert said in found.why.message
