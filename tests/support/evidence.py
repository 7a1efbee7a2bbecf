"""A finished run's evidence, made from a small task, for tests that read or damage it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from casewarden.adapters.stores.zstd import compress, decompress
from casewarden.api.plan import Plan
from casewarden.core.bundle_check import Bundle
from casewarden.core.evidence import (
    EvidenceKey,
    json_file,
    meta_document,
    results_file,
    root_digest,
    run_document,
)
from casewarden.core.model import AttemptKey, CaseKey, LedgerRow
from casewarden.core.scoring import CaseResult, weighted_dimensions
from casewarden.core.verification import Verification
from casewarden.core.verify import Regrade, verify_run
from casewarden_sdk.bundle import pack_bundle, sealed_document, transcript_row, transcript_sha256
from casewarden_sdk.canonical import sha256_bytes, sha256_json
from casewarden_sdk.contract import Case, Verdict, check_bits

UID = "0f5e2d3c-run"
DIMENSIONS = {"basic": "0.25", "recovery": "0.75"}
SPEC: dict[str, Any] = {
    "task": {"name": "small"},
    "seeds": {"values": [17, 41]},
    "candidate": {"program": {"workspace": {"configMap": "agent"}}},
}


def small_cases(seed: int) -> list[Case]:
    """Return the two cases of a seed."""
    return [
        Case("add", ("basic",), {"id": "add", "numbers": [seed, 1]}),
        Case("restart", ("basic", "recovery"), {"id": "restart", "numbers": [seed, 2]}),
    ]


def small_plan(seeds: tuple[int, ...] = (17, 41)) -> dict[str, Any]:
    """Return a whole plan of them."""
    planned = [(seed, case) for seed in seeds for case in small_cases(seed)]
    digest = sha256_bytes(b"contract")
    return {
        "v": 1, "contract_version": "1",
        "task": {"id": "small", "version": "0.1.0", "description": "Adds numbers."},
        "contract": {"sha256": digest, "bytes": 8},
        "dimensions": DIMENSIONS, "aggregation": "weighted-dimensions/v1",
        "protocol": "jsonl", "candidates": ["program"], "limits": {"case_seconds": 10.0},
        "default_argv": ["{python}", "main.py"],
        "kinds": {"default": {"candidate": {"image": "python"}, "environments": []}},
        "seeds": list(seeds), "families": ["add", "restart"], "params": {},
        "cases": [
            {"seed": seed, "id": case.id, "dimensions": list(case.dimensions), "kind": "default", "sha256": case.sha256}
            for seed, case in planned
        ],
        "excluded": [],
        "controls": [{"name": "wrong", "kind": "fault", "target": "basic", "files": {"main.py": "pass"}}],
        "fingerprints": {
            "grader": sha256_bytes(b"grader"), "contract": digest,
            "cases": sha256_json([{"seed": seed, **case.content} for seed, case in planned]),
        },
        "sdk": "0.1.0",
    }  # fmt: skip


def grade(case: Case, record: Mapping[str, Any]) -> Verdict:
    """Grade a record of the small task: the sum must be right, and right again after a restart."""
    right = sum(case.content["numbers"])
    found = {"basic": record["sum"] == right, "recovery": record["again"] == right}
    return Verdict.assessed(case, {name: found[name] for name in case.dimensions})


def regrade(planned: Any, bundle: Bundle) -> Mapping[str, Any]:
    """Grade a bundle's record again."""
    return grade(Case(planned.id, tuple(planned.dimensions), bundle.content), bundle.record).to_json()


@dataclass
class RunFolder:
    """The files of a run, by path; ``rows`` are what they were made of."""

    files: dict[str, bytes] = field(default_factory=dict)
    rows: list[LedgerRow] = field(default_factory=list)
    uid: str = UID
    name: str = "small-run"

    @property
    def digest(self) -> str:
        """The root digest, as a status would have it."""
        return root_digest(self.files["run.json"])

    def seal(self, key: AttemptKey, case: Case, record: Mapping[str, Any], pod_uid: str = "pod") -> None:
        """Play the part of an attempt's sidecar, and of the operator that counts it."""
        verdict = grade(case, record)
        transcript = [transcript_row(0.1, 1, "in", b"[1, 2]"), transcript_row(0.2, 1, "out", b"3 \xff")]
        who = {"seed": key.case.seed, "repeat": key.case.repeat, "attempt": key.attempt}
        attempt = {"v": 1, "run_uid": self.uid, "case_id": case.id, "pod_uid": pod_uid, "partial": False, **who}
        documents = {
            "attempt.json": attempt,
            "case.json": dict(case.content),
            "record.json": dict(record),
            "verdict.json": {
                **verdict.to_json(), **who, "duration_seconds": 1.5, "transcript_sha256": transcript_sha256(transcript),
            },
        }  # fmt: skip
        files = {name: json_file(document) for name, document in documents.items()}
        files["transcript.jsonl"] = b"".join(json_file(row) for row in transcript)
        files["states.jsonl"] = json_file({"name": "end", "state": {"sum": record["sum"]}}) + json_file(
            {"name": "table", "value": "a |##|\nb |# |"}
        )
        bundle = pack_bundle(files, compress)
        digest, bits = sha256_bytes(bundle), check_bits(verdict.checks)
        sealed = sealed_document(
            self.uid, key.case.seed, case.id, key.case.repeat, key.attempt, pod_uid, digest, verdict.status, bits,
            verdict.reason, verdict.error, 1.5,
        )  # fmt: skip
        self.files[EvidenceKey(key.case, "bundle", key.attempt).path()] = bundle
        self.files[EvidenceKey(key.case, "sealed").path()] = json_file(sealed)
        self.rows.append(
            LedgerRow(key, "verdict", verdict.status, bits, digest=digest, seconds=1.5, pod_uid=pod_uid, ended_at=1.8e9)
        )

    def finish(self, spec: Mapping[str, Any] | None = None, plan: Mapping[str, Any] | None = None) -> None:
        """Write the run's own files, as the operator does at the end."""
        plan = plan or small_plan()
        verdicts = {row.key.case: row for row in self.rows if row.kind == "verdict"}
        repeats = (spec or SPEC).get("repeats", 1)
        results = []
        for case in plan["cases"]:
            for repeat in range(repeats):
                row = verdicts.get(CaseKey(case["seed"], case["id"], repeat))
                dimensions = tuple(case["dimensions"])
                results.append(CaseResult(dimensions, row.status, row.checks) if row else CaseResult(dimensions))
        score = weighted_dimensions(Plan.model_validate(plan).weights, results)
        self.files["meta.json"] = json_file(meta_document(namespace="evals", name=self.name, run_uid=self.uid))
        self.files["plan.json"] = json_file(plan)
        self.files["results.jsonl"] = results_file(self.rows)
        run = run_document(
            name=self.name, namespace="evals", run_uid=self.uid, spec=spec or SPEC, seeds=plan["seeds"],
            plan=self.files["plan.json"], results=self.files["results.jsonl"], score=score.to_json(),
        )  # fmt: skip
        self.files["run.json"] = json_file(run)

    def edit(self, path: str, **changes: Any) -> None:
        """Change fields of a JSON file, and leave every digest of it as it was."""
        self.files[path] = json_file({**json.loads(self.files[path]), **changes})

    def verify(self, status_digest: str | None = None, again: Regrade | None = None) -> Verification:
        """Verify the files as they are now."""
        return verify_run(self.files.get, list(self.files), decompress, status_digest=status_digest, regrade=again)


def finished_run() -> RunFolder:
    """Return a run of four cases: three pass, ``17/restart`` fails to recover after an environment retry."""
    run = RunFolder()
    for seed in (17, 41):
        for case in small_cases(seed):
            right = sum(case.content["numbers"])
            flawed = (seed, case.id) == (17, "restart")
            key = AttemptKey(CaseKey(seed, case.id, 0), 2 if flawed else 1)
            run.seal(key, case, {"sum": right, "again": -1 if flawed else right}, f"pod-{seed}-{case.id}")
    lost = AttemptKey(CaseKey(17, "restart", 0), 1)
    run.rows.append(LedgerRow(lost, "environment", "environment_error", "--", reason="Evicted", ended_at=1.7e9))
    run.finish()
    return run
