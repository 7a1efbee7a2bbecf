"""An audit is recomputed from its bundles, and whatever somebody changed in its evidence is found and named."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from support.audit_evidence import KINDS, AuditFolder
from support.evidence import regrade

from casewarden.core.evidence import json_file
from casewarden.core.verification import compare_audit_status

WRONG = "uid-wrong"
BUNDLE = "17/restart/0/1.tar.zst"


def test_an_untouched_audit_is_consistent_and_with_its_digest_authenticated() -> None:
    audit = AuditFolder()
    result = audit.verify()
    assert (result.findings, result.authenticated) == ([], None)
    assert (result.verdicts, result.bundles) == (12, 12)
    assert result.score["passed"] is True
    again = audit.verify(audit.digest, regrade)
    assert (again.findings, again.authenticated, again.regraded) == ([], True, 12)


def change(field: str, **inner: Any) -> Callable[[AuditFolder], None]:
    return lambda audit: audit.edit(**{field: {**audit.document()[field], **inner}})


def of_control(name: str, **values: Any) -> Callable[[AuditFolder], None]:
    def edit(audit: AuditFolder) -> None:
        judgement = audit.document()["judgement"]
        rows = [row | values if row["name"] == name else row for row in judgement["controls"]]
        audit.edit(judgement=judgement | {"controls": rows})

    return edit


def listed(control: str, **values: Any) -> Callable[[AuditFolder], None]:
    def edit(audit: AuditFolder) -> None:
        runs = [run | values if run["control"] == control else run for run in audit.document()["runs"]]
        audit.edit(runs=runs)

    return edit


def swap_runs(audit: AuditFolder) -> None:
    """Give the fault the null agent's evidence, with every digest of the audit made right again."""
    null = audit.runs["uid-null-agent"]
    runs = [
        run | {"uid": null.uid, "digest": null.digest, "name": null.name} if run["control"] == "wrong" else run
        for run in audit.document()["runs"]
    ]
    audit.edit(runs=runs)


def rewrite_run(audit: AuditFolder, path: str, **changes: Any) -> None:
    """Change a file of the fault's run, and list the run's digest anew."""
    audit.runs[WRONG].edit(path, **changes)
    listed("wrong", digest=audit.runs[WRONG].digest)(audit)


def drop_run(audit: AuditFolder) -> None:
    audit.edit(runs=[run for run in audit.document()["runs"] if run["control"] != "wrong"])


def drop_row(audit: AuditFolder) -> None:
    run = audit.runs[WRONG]
    run.files["results.jsonl"] = b"".join(run.files["results.jsonl"].splitlines(keepends=True)[:-1])


def flip_row(audit: AuditFolder) -> None:
    run = audit.runs[WRONG]
    run.files["results.jsonl"] = run.files["results.jsonl"].replace(b'"checks": "10"', b'"checks": "11"')


def break_bundle(audit: AuditFolder) -> None:
    audit.runs[WRONG].files[BUNDLE] += b"x"


def another_plan(audit: AuditFolder) -> None:
    audit.plan = audit.plan | {"controls": [row | {"collateral": ["basic"]} for row in audit.plan["controls"]]}
    audit.files["plan.json"] = json_file(audit.plan)


def another_plan_thoroughly(audit: AuditFolder) -> None:
    another_plan(audit)
    audit.finish()


TAMPERED: dict[str, tuple[Callable[[AuditFolder], None], str]] = {
    "a passed that is not": (change("judgement", passed=False), "judgement.passed"),
    "a killed count": (change("judgement", killed=0), "judgement.killed"),
    "a mutation score": (change("judgement", mutation_score="0.5"), "judgement.mutation_score"),
    "a weakest margin": (change("judgement", weakest_margin=7), "judgement.weakest_margin"),
    "a floor": (change("judgement", floors={"null-agent": "1"}), "judgement.floors"),
    "the flakes": (change("judgement", reference_flakes=3), "judgement.reference_flakes"),
    "a control's margin": (of_control("wrong", margin=9), "judgement.controls"),
    "a control's target": (of_control("wrong", target="basic"), "judgement.controls"),
    "the spec's seeds": (change("spec", seeds={"values": [41]}), "has the seeds"),
    "the reference's repeats": (change("spec", referenceRepeats=3), "not 3"),
    "a run's digest": (listed("wrong", digest="sha256:" + "0" * 64), "has the digest"),
    "a run's name": (listed("wrong", name="another"), "names the run of wrong"),
    "a run of another uid": (listed("wrong", uid="uid-nobody"), "is missing"),
    "a run left out": (drop_run, "lists the runs of"),
    "the runs of two controls": (swap_runs, "was of the control 'null-agent'"),
    "a run said to be invalid": (listed("wrong", digest=None), "judgement.valid"),
    "a run's score": (lambda a: rewrite_run(a, "run.json", score={"score": "1"}), "score."),
    "a row dropped": (drop_row, "results.jsonl"),
    "a row flipped": (flip_row, "results.jsonl"),
    "a bundle": (break_bundle, BUNDLE),
    "a bundle gone": (lambda a: a.runs[WRONG].files.pop(BUNDLE), "is missing"),
    "a seal": (lambda a: a.runs[WRONG].edit("17/restart/0/sealed.json", checks="11"), "sealed.json"),
    "a whole run gone": (lambda a: a.runs.pop(WRONG), "is missing"),
    "the plan": (another_plan, "plan.json"),
    "the plan and every digest of the audit": (another_plan_thoroughly, "is not the plan of the audit"),
    "a file more": (lambda a: a.files.update({"notes.txt": b"hello"}), "is no file of an audit"),
    "whose it is": (lambda a: a.edit(namespace="elsewhere"), "meta.json"),
    "a field more": (lambda a: a.edit(note="hello"), "exactly the fields"),
    "a key twice": (
        lambda a: a.files.update({"audit.json": a.files["audit.json"].replace(b'{"', b'{"v":1,"', 1)}),
        "key is there twice",
    ),
}


@pytest.mark.parametrize("name", TAMPERED)
@pytest.mark.parametrize("anchored", [False, True])
def test_a_change_is_found_and_named(name: str, anchored: bool) -> None:
    damage, said = TAMPERED[name]
    audit = AuditFolder()
    digest = audit.digest
    damage(audit)
    result = audit.verify(digest if anchored else None)
    told = [f"{finding.path}: {finding.problem}" for finding in result.findings]
    assert any(said in line for line in told), told


def test_evidence_that_was_rewritten_throughout_is_consistent_and_never_authentic() -> None:
    audit = AuditFolder()
    digest = audit.digest
    run = audit.runs[WRONG]
    spec = json.loads(run.files["run.json"])["spec"] | {"priority": 5}
    run.edit("run.json", spec=spec | {"retries": {"environment": 9}})
    audit.finish()
    assert audit.verify().findings == []
    result = audit.verify(digest)
    assert result.authenticated is False
    assert "has the digest" in result.findings[0].problem


def test_an_audit_that_is_not_over_says_so() -> None:
    audit = AuditFolder()
    del audit.files["audit.json"]
    assert "not over" in audit.verify().findings[0].problem


def test_a_status_that_says_something_else_is_found() -> None:
    audit = AuditFolder()
    result = audit.verify()
    judged = audit.document()["judgement"]
    good = {
        "conditions": [{"type": "Complete", "status": "True"}], "valid": True, "passed": True, "killed": "1/1",
        "mutationScore": "1", "weakestMargin": 1, "referenceScore": "1", "referenceFlakes": 0,
        "floors": judged["floors"],
        "controls": [{"name": "wrong", "killed": True, "margin": 1}, *({"name": name} for name in KINDS)],
    }  # fmt: skip
    compare_audit_status(result, {**good, "controls": good["controls"][1:-1] + good["controls"][:1]})  # type: ignore[index]
    assert result.findings == []
    compare_audit_status(result, {**good, "killed": "0/1", "controls": []})
    assert [finding.problem.split(" is ")[0] for finding in result.findings] == [
        "killed", "controls.wrong.killed", "controls.wrong.margin",
    ]  # fmt: skip
