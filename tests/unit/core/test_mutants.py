"""Mutants of a grader, judged over an audit's records; and their evidence, recomputed and graded again."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from support.audit_evidence import AuditFolder
from support.evidence import grade, regrade

from casewarden.core.bundle_check import Bundle
from casewarden.core.evidence import json_file
from casewarden.core.verification import compare_audit_status
from casewarden_sdk.canonical import sha256_bytes
from casewarden_sdk.checks import holds
from casewarden_sdk.contract import Case


def asking(planned: Any, bundle: Bundle) -> Mapping[str, Any]:
    """The small grader, asking its checks by name; nothing ever fails ``polite``."""
    right = sum(bundle.content["numbers"])
    record = dict(bundle.record)
    if holds("again", record["again"] == right):
        record["again"] = right
    elif record["again"] == right:
        record["again"] = -2
    holds("polite", True)
    return grade(Case(planned.id, tuple(planned.dimensions), bundle.content), record).to_json()


def audited() -> AuditFolder:
    audit = AuditFolder(checks=("again", "polite"), grader=asking)
    assert audit.document()["judgement"]["passed"] is True
    return audit


def test_a_mutant_is_noticed_where_the_audit_would_not_pass_with_it() -> None:
    audit = audited()
    lines = [json.loads(line) for line in audit.files["mutants.jsonl"].splitlines()]
    assert {f"{line['check']}:{line['mutation']}": line["noticed"] for line in lines} == {
        "again:dropped": True, "again:inverted": True, "polite:dropped": False, "polite:inverted": False,
    }  # fmt: skip
    dropped, inverted = lines[0], lines[1]
    assert "wrong: is not caught in recovery" in dropped["problems"][0]
    assert any("the reference does not resolve restart" in problem for problem in inverted["problems"])


def test_they_are_recomputed_without_the_pack_and_graded_again_with_it() -> None:
    audit = audited()
    result = audit.verify(audit.digest)
    assert result.findings == []
    assert result.mutants == {"total": 4, "noticed": 2, "unnoticed": ["polite:dropped", "polite:inverted"]}
    assert audit.verify(audit.digest, asking).findings == []


def test_a_status_that_says_something_else_of_them_is_found() -> None:
    result = audited().verify()
    compare_audit_status(
        result, {"conditions": [{"type": "Complete", "status": "True"}], "graderMutants": {"total": 4}}
    )
    assert any(finding.problem.startswith("graderMutants is") for finding in result.findings)


def test_what_a_mutant_changes_is_found_by_grading_again_if_all_else_was_made_right() -> None:
    told = [finding.problem for finding in audited().verify(again=regrade).findings]
    assert any(line.startswith("again:dropped: uid-wrong/17/restart/0 graded again") for line in told), told


def lines(audit: AuditFolder, change: Callable[[list[dict[str, Any]]], Any]) -> None:
    found = [json.loads(line) for line in audit.files["mutants.jsonl"].splitlines()]
    change(found)
    audit.files["mutants.jsonl"] = b"".join(json_file(line) for line in found)
    audit.edit(mutants_sha256=sha256_bytes(audit.files["mutants.jsonl"]))


WAYS: dict[str, tuple[Callable[[AuditFolder], Any], str]] = {
    "an unnoticed one said to be noticed": (
        lambda a: lines(a, lambda f: f[2].update(noticed=True)), "polite:dropped: noticed is True"),
    "its problems": (lambda a: lines(a, lambda f: f[0].update(problems=[])), "again:dropped: problems"),
    "what it changes": (lambda a: lines(a, lambda f: f[0].update(changes=[])), "again:dropped: noticed is True"),
    "a mutant left out": (lambda a: lines(a, lambda f: f.pop()), "not those of the pack's checks"),
    "a fingerprint": (lambda a: lines(a, lambda f: f[0].update(grader="ab" * 32)), "not those of the pack's checks"),
    "a change of no case": (
        lambda a: lines(a, lambda f: f[0]["changes"][0].update(seed=5)), "changes 5/restart/0, which run uid-"),
    "the file gone": (lambda a: a.files.pop("mutants.jsonl"), "is missing"),
    "its digest": (lambda a: a.edit(mutants_sha256="0" * 64), "audit.json has '000"),
    "no line at all": (lambda a: a.files.update({"mutants.jsonl": b"{}\n"}), "cannot be read: KeyError"),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
def test_a_change_is_found_and_named(way: str) -> None:
    damage, said = WAYS[way]
    audit = audited()
    damage(audit)
    told = [f"{finding.path}: {finding.problem}" for finding in audit.verify().findings]
    assert any(said in line for line in told), told


def test_mutants_that_nobody_asked_for_are_found() -> None:
    audit = AuditFolder()
    audit.files["mutants.jsonl"] = b""
    assert "the audit has no mutants" in audit.verify().findings[0].problem
