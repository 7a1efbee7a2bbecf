"""A finished audit's evidence, made from the small task, for tests that read or damage it."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

from support.evidence import Regrade, RunFolder, regrade, small_cases, small_plan

from casewarden.adapters.stores.zstd import decompress
from casewarden.api.auditrun import AuditRunSpec
from casewarden.api.plan import Plan
from casewarden.core.audit import ControlRun, judge_audit, observations
from casewarden.core.audit_children import child_manifest
from casewarden.core.audit_evidence import audit_document
from casewarden.core.evidence import json_file, meta_document, root_digest
from casewarden.core.grades import MutantGrades
from casewarden.core.model import AttemptKey, CaseKey
from casewarden.core.mutants import judge_mutants, mutants_file, wanted_mutants
from casewarden.core.verification import Verification
from casewarden.core.verify_audit import verify_audit
from casewarden.core.verify_regrade import bundles_of
from casewarden_sdk.checks import mutated
from casewarden_sdk.contract import Verdict, check_bits

AUDIT_UID = "a0d1-audit"
SPEC: dict[str, Any] = {"task": {"name": "small"}, "seeds": {"values": [17]}, "referenceRepeats": 2}
KINDS = {
    "reference": "reference",
    "null-agent": "null",
    "crashing-agent": "crash",
    "forger": "forger",
    "wrong": "fault",
}


def audit_plan() -> dict[str, Any]:
    """The plan of the small task with all that an audit needs."""
    controls = [{"name": name, "kind": kind, "files": {"main.py": "pass"}} for name, kind in KINDS.items()]
    controls[-1] |= {"target": "recovery", "collateral": []}
    return {**small_plan((17,)), "controls": controls}


class AuditFolder:
    """Files of an audit and, by UID, of its runs; ``wrong`` recovers badly, which the grader sees."""

    def __init__(self, checks: Sequence[str] = (), grader: Regrade = regrade) -> None:
        self.plan = audit_plan() | ({"checks": list(checks)} if checks else {})
        self.grader = grader
        self.spec = SPEC | ({"graderMutants": True} if checks else {})
        self.runs: dict[str, RunFolder] = {}
        self.files: dict[str, bytes] = {}
        for name in KINDS:
            self.runs[f"uid-{name}"] = self._run(name)
        self.finish()

    @property
    def digest(self) -> str:
        """The audit's root digest, as a status would have it."""
        return root_digest(self.files["audit.json"])

    def _run(self, control: str) -> RunFolder:
        spec = AuditRunSpec.model_validate(self.spec)
        repeats = 2 if control == "reference" else 1
        manifest = child_manifest("evals", "trial", AUDIT_UID, spec, control, repeats)
        run = RunFolder(uid=f"uid-{control}", name=manifest["metadata"]["name"])
        for repeat in range(repeats):
            for case in small_cases(17):
                right = sum(case.content["numbers"])
                record = {"sum": right, "again": -1 if control == "wrong" else right}
                if control not in ("reference", "wrong"):
                    record = {"sum": -1, "again": -1}
                run.seal(AttemptKey(CaseKey(17, case.id, repeat), 1), case, record, f"pod-{case.id}-{repeat}")
        run.finish(manifest["spec"], self.plan)
        return run

    def finish(self) -> None:
        """Write the audit's own files over the runs as they are: a thorough forger does no less."""
        plan = Plan.model_validate(self.plan)
        controls = []
        for control in plan.controls:
            run = self.runs[f"uid-{control.name}"]
            score = json.loads(run.files["run.json"])["score"]
            rows = [json.loads(line) for line in run.files["results.jsonl"].splitlines()]
            controls.append(
                ControlRun.of(
                    control, valid=score["valid"], resolved=score["resolved"], score=score.get("score"),
                    cases=observations(plan, rows),
                )
            )  # fmt: skip
        listed = [
            {"control": name, "name": self.runs[f"uid-{name}"].name, "uid": f"uid-{name}",
             "digest": self.runs[f"uid-{name}"].digest}
            for name in KINDS
        ]  # fmt: skip
        self.files["meta.json"] = json_file(meta_document(namespace="evals", name="trial", run_uid=AUDIT_UID))
        self.files["plan.json"] = json_file(self.plan)
        document = audit_document(
            name="trial", namespace="evals", uid=AUDIT_UID, spec=self.spec, plan=self.files["plan.json"], runs=listed,
            judgement=judge_audit(controls).to_json(), mutants=self._mutants(plan, controls),
        )  # fmt: skip
        self.files["audit.json"] = json_file(document)

    def _mutants(self, plan: Plan, controls: list[ControlRun]) -> bytes | None:
        """Grade every record by every mutant, as a grading pod does."""
        if not plan.checks:
            return None
        planned = {(case.seed, case.id): case for case in plan.cases}
        mutants = []
        for check, how, grader in wanted_mutants(plan):
            changes = {}
            for uid, run in self.runs.items():
                for row, bundle in bundles_of(run.files.get, run.rows, decompress):
                    with mutated(check, how):
                        again = Verdict.from_json(self.grader(planned[row.key.case.seed, row.key.case.case_id], bundle))
                    if (found := (again.status, check_bits(again.checks))) != (row.status, row.checks):
                        changes[uid, row.key.case] = found
            mutants.append(MutantGrades(check, how, grader, changes))
        runs = {f"uid-{control.name}": run for control, run in zip(plan.controls, controls, strict=True)}
        self.files["mutants.jsonl"] = mutants_file(judge_mutants(plan, runs, mutants))
        return self.files["mutants.jsonl"]

    def document(self) -> dict[str, Any]:
        """``audit.json``, parsed."""
        return json.loads(self.files["audit.json"])  # type: ignore[no-any-return]

    def edit(self, **changes: Any) -> None:
        """Change fields of ``audit.json``."""
        self.files["audit.json"] = json_file({**self.document(), **changes})

    def verify(self, status_digest: str | None = None, again: Regrade | None = None) -> Verification:
        """Verify the files as they are now."""

        def run_folder(uid: str) -> tuple[Any, Collection[str]]:
            run = self.runs.get(uid)
            return ((lambda path: None), ()) if run is None else (run.files.get, list(run.files))

        own = (self.files.get, list(self.files))
        return verify_audit(own, run_folder, decompress, status_digest=status_digest, regrade=again)
