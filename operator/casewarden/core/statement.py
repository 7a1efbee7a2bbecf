"""in-toto statements about a verified run or audit: what a signature is put under. Pure.

A run is attested by the predicate ``test-result``, which knows passed and failed and no third: so an invalid run is not
attested at all. An audit has a predicate of Casewarden's own. The digest of ``run.json`` or ``audit.json`` is a subject
of either; by it a signature authenticates a whole folder, as the digest in a status does.
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from casewarden.api.evalrun import EvalRunSpec
from casewarden.core.bundle_check import strict_json
from casewarden.core.evidence import AUDIT, PLAN, RUN
from casewarden.core.verification import Read, Verification

__all__ = ["AUDIT_PREDICATE", "PAYLOAD_TYPE", "RUN_PREDICATE", "digest_in", "statement_of"]

PAYLOAD_TYPE: Final = "application/vnd.in-toto+json"
RUN_PREDICATE: Final = "https://in-toto.io/attestation/test-result/v0.1"
AUDIT_PREDICATE: Final = "https://casewarden.dev/attestation/grader-audit/v1"
_TYPE: Final = "https://in-toto.io/Statement/v1"


def statement_of(result: Verification, read: Read, candidate: str | None = None) -> dict[str, Any]:
    """Return the statement about what was verified; ``ValueError`` says why nothing can be stated.

    ``candidate`` is the fingerprint of the status, where there is one.
    """
    if not result.consistent:
        raise ValueError("the evidence does not hold, and nothing is stated of it")
    if result.authenticated is not True:
        raise ValueError("nothing vouches for the evidence: give --digest with the digest of the status")
    if not result.score.get("valid"):
        raise ValueError("it is not valid, so that it is neither passed nor failed: nothing is attested")
    is_audit = "mutation_score" in result.score
    file = AUDIT if is_audit else RUN
    subject = [_resource(f"runs/{result.uid}/{file}", result.digest.removeprefix("sha256:"))]
    if candidate is not None and not is_audit:
        subject.append(_resource("candidate", candidate))
    return {
        "_type": _TYPE,
        "subject": subject,
        "predicateType": AUDIT_PREDICATE if is_audit else RUN_PREDICATE,
        "predicate": _audit(result, read) if is_audit else _run(result, read),
    }


def digest_in(statement: Mapping[str, Any], file: str) -> tuple[str, str]:
    """Return UID and root digest of the run or audit that a statement is about; ``ValueError`` where it is of none.

    ``file`` is ``run.json`` or ``audit.json``.
    """
    predicate = AUDIT_PREDICATE if file == AUDIT else RUN_PREDICATE
    if statement.get("_type") != _TYPE or statement.get("predicateType") != predicate:
        raise ValueError(f"it is no statement of predicate {predicate}")
    for subject in statement.get("subject") or ():
        parts = str(subject.get("name")).split("/")
        digest = (subject.get("digest") or {}).get("sha256")
        if len(parts) == 3 and parts[0] == "runs" and parts[2] == file and isinstance(digest, str):
            return parts[1], f"sha256:{digest}"
    raise ValueError(f"no subject of it is a {file}")


def _resource(name: str, sha256: str) -> dict[str, Any]:
    return {"name": name, "digest": {"sha256": sha256}}


def _configuration(plan: Mapping[str, Any]) -> list[dict[str, Any]]:
    task, prints = plan["task"], plan["fingerprints"]
    of = f"{task['id']}@{task['version']}"
    return [_resource(f"{of}/{name}", prints[name]) for name in ("contract", "cases", "grader")]


def _run(result: Verification, read: Read) -> dict[str, Any]:
    run, plan = strict_json(read(RUN) or b"null"), strict_json(read(PLAN) or b"null")
    dimensions = result.score.get("dimensions") or {}
    whole = {name for name, item in dimensions.items() if item.get("score") == "1"}
    return {
        "result": "PASSED" if _passes(EvalRunSpec.model_validate(run["spec"]), result.score) else "FAILED",
        "configuration": _configuration(plan),
        "passedTests": sorted(whole),
        "failedTests": sorted(set(dimensions) - whole),
        "casewarden": {
            "name": result.name,
            "namespace": result.namespace,
            "score": result.score.get("score"),
            "passRate": result.score.get("pass_rate"),
            "resolved": result.score.get("resolved"),
            "seeds": run["seeds"],
            **({} if result.interval is None else {"scoreInterval": dict(result.interval)}),
        },
    }


def _passes(spec: EvalRunSpec, score: Mapping[str, Any]) -> bool:
    """Tell what the condition ``Passed`` tells: the threshold is reached, or without one every case passed."""
    goal = spec.threshold
    if goal is None:
        return score.get("resolved") is True
    bounds = {name: (score["dimensions"][name]["score"], lowest) for name, lowest in goal.dimensions.items()}
    if goal.score is not None:
        bounds[""] = (score["score"], goal.score)
    return all(found is not None and Decimal(found) >= Decimal(lowest) for found, lowest in bounds.values())


def _audit(result: Verification, read: Read) -> dict[str, Any]:
    judgement = result.score
    plan = strict_json(read(PLAN) or b"null")
    return {
        "result": "PASSED" if judgement["passed"] else "FAILED",
        "configuration": _configuration(plan),
        "name": result.name,
        "namespace": result.namespace,
        "killed": f"{judgement['killed']}/{judgement['faults']}",
        "mutationScore": judgement["mutation_score"],
        "weakestMargin": judgement["weakest_margin"],
        "referenceScore": judgement["reference_score"],
        "floors": dict(judgement["floors"]),
        "problems": list(judgement["problems"]),
        "controls": [
            {name: control[name] for name in ("name", "kind", "target", "killed", "margin")}
            for control in judgement["controls"]
        ],
        **({} if result.mutants is None else {"graderMutants": dict(result.mutants)}),
    }
