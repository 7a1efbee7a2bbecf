"""Recompute what a task's own rule left of a run: its three files out of the bundles, and the score out of them.

What ``calculate_overall`` itself returned can be computed again only by the task; ``reaggregate`` is how, where the
task is at hand.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from casewarden.api.evalrun import EvalRunSpec
from casewarden.api.plan import Plan
from casewarden.core.agentbench import FILES, outcome_row, own_files, places
from casewarden.core.bundle_check import Decompress, strict_json
from casewarden.core.evidence import RUN, EvidenceKey, parse_evidence_key
from casewarden.core.model import LedgerRow, RunPolicy
from casewarden.core.scoring import OwnScore
from casewarden.core.tally import plan_facts, tally
from casewarden.core.verification import Read, Verification
from casewarden_sdk.agentbench.messages import TaskOutput
from casewarden_sdk.agentbench.overall import missing_output, overall_document, score_of
from casewarden_sdk.canonical import canonical_equal, sha256_bytes
from casewarden_sdk.errors import ContractError

__all__ = ["Reaggregate", "check_own", "outcomes"]

Reaggregate = Callable[[Sequence[Mapping[str, Any]]], Mapping[str, Any]]


def check_own(
    read: Read,
    paths: Collection[str],
    decompress: Decompress,
    run: Mapping[str, Any],
    plan: Plan,
    spec: EvalRunSpec,
    rows: Sequence[LedgerRow],
    result: Verification,
    reaggregate: Reaggregate | None,
) -> OwnScore | None:
    """Return what the rule made of the run, its files checked; None for a run without. Problems go to ``result``."""
    kept = run["score"].get("files")
    if kept is None:
        return None
    try:
        overall = strict_json(read(FILES[0]) or b"")
        made = outcomes(read, paths, decompress, plan, spec, rows)
        score = _checked(overall, made, plan, result, reaggregate)
        wanted = own_files(made, overall)
    except (ContractError, KeyError, TypeError, ValueError) as error:
        result.add(FILES[0], f"cannot be computed again: {type(error).__name__}: {error}")
        return None
    if set(kept) != set(FILES):
        result.add(RUN, f"score.files has {sorted(kept)}; a run of this rule has {', '.join(FILES)}")
    for name, data in wanted.items():
        if read(name) != data:
            result.add(name, "is not what the bundles come to")
    return OwnScore(score, {name: sha256_bytes(data) for name, data in sorted(wanted.items())})


def outcomes(
    read: Read,
    paths: Collection[str],
    decompress: Decompress,
    plan: Plan,
    spec: EvalRunSpec,
    rows: Sequence[LedgerRow],
) -> list[dict[str, Any]]:
    """Return what every settled case came to, in the order of the plan; ``ValueError`` for a broken bundle."""
    policy = RunPolicy(1, spec.retries.environment, spec.retries.interruptions, 0.0, suspend=False, deadline=None)
    counted = tally(plan_facts(plan, ""), spec.repeats, rows, policy)
    settled = {key: counted.settled[key] for key, _ in counted.cases if key in counted.settled}
    found = places(_index(read, paths), settled)
    made = []
    for key, row in settled.items():
        place, data = found.get(key), None
        if place is not None:
            kind = "partial" if place.partial else "bundle"
            data = read(EvidenceKey(key, kind, place.attempt.attempt).path())  # type: ignore[arg-type]
        made.append(outcome_row(key, row, plan.params, data, decompress))
    return made


def _index(read: Read, paths: Collection[str]) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    for path in paths:
        key = parse_evidence_key(path)
        if key is None:
            continue
        if key.kind == "sealed":
            lines.append({"kind": "sealed", "sealed": strict_json(read(path) or b"")})
        elif key.kind == "partial":
            case = {"seed": key.case.seed, "case_id": key.case.case_id, "repeat": key.case.repeat}
            lines.append({"kind": "partial", **case, "attempt": key.attempt})
    return lines


def _checked(
    overall: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    plan: Plan,
    result: Verification,
    reaggregate: Reaggregate | None,
) -> str | None:
    assessed = [row for row in rows if row["status"] != "environment_error"]
    outputs = [TaskOutput.parse_obj(row["output"] or missing_output(row["index"])) for row in assessed]
    wanted = overall_document(outputs, overall["custom"])
    for name in wanted:
        if not canonical_equal(wanted[name], overall[name]):
            result.add(FILES[0], f"has {name} {overall[name]!r}; the bundles come to {wanted[name]!r}")
    if reaggregate is not None:
        again = reaggregate(assessed)["overall"]
        if not canonical_equal(again, overall):
            result.add(FILES[0], f"the task's own rule makes {again!r} of the bundles")
    if not assessed:
        return None
    return score_of(overall.get("passes") or [overall["custom"]], plan.score or "")
