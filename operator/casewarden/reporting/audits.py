"""Audits in the report: whether the grader can be trusted, by how much, and what each control came to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from casewarden.reporting.sections import escaped, table

__all__ = ["ReportedAudit", "audits", "reported_audit"]


@dataclass(frozen=True, slots=True)
class ReportedAudit:
    """A finished audit. ``judgement`` is as its evidence keeps it."""

    name: str
    namespace: str
    uid: str
    task: str
    seeds: Sequence[int]
    judgement: Mapping[str, Any]
    digest: str

    @property
    def title(self) -> str:
        """Namespace and name."""
        return f"{self.namespace}/{self.name}"


def reported_audit(document: Mapping[str, Any], plan: Mapping[str, Any], digest: str) -> ReportedAudit:
    """Put an audit together from ``audit.json`` and ``plan.json``.

    ``KeyError`` or ``TypeError`` where these are not what an audit leaves; `casewarden verify` says more.
    """
    task = plan["task"]
    return ReportedAudit(
        name=str(document["name"]),
        namespace=str(document["namespace"]),
        uid=str(document["uid"]),
        task=f"{task['id']}@{task['version']}",
        seeds=tuple(dict.fromkeys(case["seed"] for case in plan["cases"])),
        judgement=document["judgement"],
        digest=digest,
    )


def audits(found: Sequence[ReportedAudit]) -> str:
    """Return the section, empty where there are none."""
    return "" if not found else f"<section><h2>Audits</h2>{''.join(map(_audit, found))}</section>"


def _audit(audit: ReportedAudit) -> str:
    said = audit.judgement
    passed = {True: '<span class="good">passed</span>', False: '<span class="bad">not passed</span>'}
    outcome = passed[bool(said["passed"])] if said["valid"] else '<span class="odd">not valid</span>'
    facts: dict[str, object] = {
        "task": audit.task,
        "seeds": ", ".join(map(str, audit.seeds)),
        "faults caught": f"{said['killed']} of {said['faults']}",
        "mutation score": said["mutation_score"],
        "weakest margin": _families(said["weakest_margin"]),
        "reference": f"{said['reference_score']}, {said['reference_flakes']} flaky cases",
        "floors": ", ".join(f"{name} {score}" for name, score in (said.get("floors") or {}).items()),
        "evidence": audit.digest,
    }
    if not said["valid"]:
        facts = {name: facts[name] for name in ("task", "seeds", "evidence")}
    terms = "".join(f"<dt>{escaped(key)}</dt><dd>{escaped(value)}</dd>" for key, value in facts.items())
    problems = "".join(f"<li>{escaped(problem)}</li>" for problem in said.get("problems") or ())
    head = ["Control", "Kind", "Target", "Caught", "By", "Broke too", "Score", "Margin"]
    rows = [_control(control) for control in said["controls"]]
    caption = "Every control: a fault must be caught in its dimension; its margin is how many families caught it"
    return (
        f'<article class="card"><h3>{escaped(audit.title)}: {outcome}</h3><dl>{terms}</dl>'
        f"{f'<ul>{problems}</ul>' if problems else ''}</article>{table(caption, head, rows, 2)}"
    )


def _control(control: Mapping[str, Any]) -> list[str]:
    killed = control.get("killed")
    word = "" if killed is None else '<span class="good">yes</span>' if killed else '<span class="bad">NO</span>'
    if not control["valid"]:
        word = '<span class="odd">not valid</span>'
    elif control.get("problem") and killed is None:
        word = f'<span class="bad">{escaped(control["problem"])}</span>'
    by = [str(name) for name in control.get("detected_by") or ()]
    shown = ", ".join(by[:5]) + (f" and {len(by) - 5} more" if len(by) > 5 else "")
    margin = control.get("margin")
    narrow = {0: "bad", 1: "odd"}.get(margin or 0, "")
    return [
        escaped(control["name"]), escaped(control["kind"]), escaped(control.get("target") or ""), word, escaped(shown),
        escaped(", ".join(control.get("collateral") or ())), escaped(control.get("score") or ""),
        "" if margin is None else f'<span class="{narrow}">{margin}</span>',
    ]  # fmt: skip


def _families(margin: object) -> str:
    return "none" if margin is None else f"{margin} {'family' if margin == 1 else 'families'}"
