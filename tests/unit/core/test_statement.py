"""What is stated of a verified run or audit, and what is never stated."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.audit_evidence import AuditFolder
from support.evidence import SPEC, finished_run

from casewarden.core.evidence import AUDIT, RUN
from casewarden.core.statement import AUDIT_PREDICATE, RUN_PREDICATE, digest_in, statement_of


def stated(**spec: Any) -> dict[str, Any]:
    run = finished_run()
    run.finish({**SPEC, **spec})
    return statement_of(run.verify(run.digest), run.files.get, "ab" * 32)


def test_a_run_is_a_test_result_over_its_root_digest_and_its_candidate() -> None:
    run, statement = finished_run(), stated()
    assert statement["predicateType"] == RUN_PREDICATE
    digest = run.digest.removeprefix("sha256:")
    assert statement["subject"] == [
        {"name": f"runs/{run.uid}/run.json", "digest": {"sha256": digest}},
        {"name": "candidate", "digest": {"sha256": "ab" * 32}},
    ]
    predicate = statement["predicate"]
    names = [item["name"] for item in predicate["configuration"]]
    assert names == ["small@0.1.0/contract", "small@0.1.0/cases", "small@0.1.0/grader"]
    assert (predicate["result"], predicate["passedTests"], predicate["failedTests"]) == (
        "FAILED",
        ["basic"],
        ["recovery"],
    )
    assert predicate["casewarden"]["score"] == "0.625"
    assert digest_in(statement, RUN) == (run.uid, run.digest)


@pytest.mark.parametrize(
    ("threshold", "result"),
    [
        ({"score": "0.6"}, "PASSED"),
        ({"score": "0.7"}, "FAILED"),
        ({"dimensions": {"basic": "1"}}, "PASSED"),
        ({"score": "0.6", "dimensions": {"recovery": "0.6"}}, "FAILED"),
    ],
)
def test_it_passes_by_the_threshold_of_the_run(threshold: dict[str, Any], result: str) -> None:
    assert stated(threshold=threshold)["predicate"]["result"] == result


def test_an_invalid_run_is_attested_neither_as_passed_nor_as_failed() -> None:
    run = finished_run()
    run.rows = [row for row in run.rows if row.kind != "verdict" or row.key.case.seed == 17]
    run.files = {path: data for path, data in run.files.items() if not path.startswith("41/")}
    run.finish()
    result = run.verify(run.digest)
    assert result.consistent
    with pytest.raises(ValueError, match="not valid, so that it is neither passed nor failed"):
        statement_of(result, run.files.get)


def test_nothing_is_stated_of_what_does_not_hold_or_is_not_vouched_for() -> None:
    run = finished_run()
    with pytest.raises(ValueError, match="nothing vouches for the evidence"):
        statement_of(run.verify(), run.files.get)
    with pytest.raises(ValueError, match="does not hold"):
        statement_of(run.verify("sha256:" + "0" * 64), run.files.get)


def test_an_audit_is_stated_with_its_controls_and_margins() -> None:
    audit = AuditFolder()
    statement = statement_of(audit.verify(audit.digest), audit.files.get, "ab" * 32)
    assert statement["predicateType"] == AUDIT_PREDICATE
    assert [item["name"] for item in statement["subject"]] == ["runs/a0d1-audit/audit.json"]
    predicate = statement["predicate"]
    assert (predicate["result"], predicate["killed"], predicate["weakestMargin"]) == ("PASSED", "1/1", 1)
    wrong = {"name": "wrong", "kind": "fault", "target": "recovery", "killed": True, "margin": 1}
    assert wrong in predicate["controls"]
    assert json.loads(json.dumps(statement)) == statement


@pytest.mark.parametrize("statement", [{}, {"_type": "x"}, {"_type": "https://in-toto.io/Statement/v1"}])
def test_a_statement_of_something_else_is_refused(statement: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="no statement of predicate"):
        digest_in(statement, RUN)
    with pytest.raises(ValueError, match=r"no subject of it is a run\.json"):
        digest_in({"_type": "https://in-toto.io/Statement/v1", "predicateType": RUN_PREDICATE, "subject": []}, RUN)
    with pytest.raises(ValueError, match="no statement of predicate"):
        digest_in(stated(), AUDIT)
