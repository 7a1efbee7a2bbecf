"""Ways of tampering with a run's folder, each with and without its digests made right again.

Against the digest of the status every one of them is found and named. Where only digests were left as they were, the
file that was touched is named; where all were made right again, it is the one file that they all lead to.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any

import pytest
from support.evidence import RunFolder, finished_run, small_plan

from casewarden.adapters.stores.zstd import compress, decompress
from casewarden.core.evidence import json_file
from casewarden.core.model import AttemptKey, CaseKey, LedgerRow
from casewarden_sdk.bundle import pack_bundle, unpack_bundle
from casewarden_sdk.canonical import sha256_bytes

BUNDLE, SEALED = "17/restart/0/2.tar.zst", "17/restart/0/sealed.json"
FLAWED = AttemptKey(CaseKey(17, "restart", 0), 2)


class Tampered:
    """A finished run in somebody's hands; ``plan`` and ``spec`` are what they would have it say."""

    def __init__(self) -> None:
        self.run = finished_run()
        self.plan: dict[str, Any] = small_plan()
        self.spec: dict[str, Any] = json.loads(self.run.files["run.json"])["spec"]

    def in_bundle(self, name: str, **changes: Any) -> None:
        """Change a file of the flawed attempt's bundle."""
        files = unpack_bundle(self.run.files[BUNDLE], decompress)
        files[name] = json_file({**json.loads(files[name]), **changes})
        self.run.files[BUNDLE] = pack_bundle(files, compress)

    def row(self, **changes: Any) -> None:
        """Change the row of the flawed attempt, and the line that it is."""
        self.rows(lambda row: dataclasses.replace(row, **changes) if row.key == FLAWED else row)

    def rows(self, change: Callable[[LedgerRow], LedgerRow | None]) -> None:
        self.run.rows = [row for old in self.run.rows if (row := change(old)) is not None]
        kept = {**self.run.files}
        self.run.finish(self.spec, self.plan)
        self.run.files = {**kept, "results.jsonl": self.run.files["results.jsonl"]}

    def replan(self, **changes: Any) -> None:
        self.plan = {**self.plan, **changes}
        self.run.files["plan.json"] = json_file(self.plan)

    def leave_out(self, family: str) -> None:
        self.replan(cases=[case for case in self.plan["cases"] if case["id"] != family])

    def respec(self, **changes: Any) -> None:
        self.spec = {**self.spec, **changes}
        self.run.edit("run.json", spec=self.spec)

    def rescore(self, **changes: Any) -> None:
        self.run.edit("run.json", score={**json.loads(self.run.files["run.json"])["score"], **changes})

    def recompute(self) -> None:
        """Make every digest right again, and the score, as far as the files can be read at all."""
        run, score = self.run, json.loads(self.run.files["run.json"])["score"]
        digest = sha256_bytes(run.files[BUNDLE]) if BUNDLE in run.files else None
        if SEALED in run.files and digest is not None:
            run.edit(SEALED, digest=digest)
        run.rows = [
            dataclasses.replace(row, digest=digest) if row.key == FLAWED and digest else row for row in run.rows
        ]
        name = run.files["meta.json"]
        run.finish(self.spec, self.plan)
        run.files["meta.json"] = name
        if score != json.loads(finished_run().files["run.json"])["score"]:
            run.edit("run.json", score=score)


WAYS: dict[str, tuple[Callable[[Tampered], Any], str]] = {
    "a better score": (lambda t: t.rescore(score="1"), "run.json"),
    "a better pass rate": (lambda t: t.rescore(pass_rate="1"), "run.json"),
    "resolved, which it is not": (lambda t: t.rescore(resolved=True), "run.json"),
    "fewer cases": (lambda t: t.rescore(total=3, assessed=3), "run.json"),
    "a lower threshold": (lambda t: t.respec(threshold={"score": "0.1"}), "run.json"),
    "another candidate": (lambda t: t.respec(candidate={"control": "reference"}), "run.json"),
    "other limits": (lambda t: t.respec(limits={"caseSeconds": 9}), "run.json"),
    "other weights": (lambda t: t.replan(dimensions={"basic": "0.75", "recovery": "0.25"}), "plan.json"),
    "another grader": (
        lambda t: t.replan(fingerprints={**t.plan["fingerprints"], "grader": "ab" * 32}), "plan.json",
    ),
    "another version of the task": (lambda t: t.replan(task={**t.plan["task"], "version": "0.0.9"}), "plan.json"),
    "a case left out of the plan": (lambda t: t.leave_out("add"), "plan.json"),
    "a verdict turned to passed": (lambda t: t.row(status="passed", checks="11"), "results.jsonl"),
    "a bad attempt left out": (lambda t: t.rows(lambda row: row if row.key != FLAWED else None), "results.jsonl"),
    "a retry left out": (lambda t: t.rows(lambda row: row if row.kind == "verdict" else None), "results.jsonl"),
    "a verdict made an environment error": (
        lambda t: t.row(kind="environment", status="environment_error", checks="--", digest=None), "results.jsonl",
    ),
    "the time of a case": (lambda t: t.row(seconds=0.1), "results.jsonl"),
    "a record in its bundle": (lambda t: t.in_bundle("record.json", again=19), BUNDLE),
    "a verdict in its bundle": (lambda t: t.in_bundle("verdict.json", status="passed", passed=True), BUNDLE),
    "a case in its bundle": (lambda t: t.in_bundle("case.json", numbers=[1, 1]), BUNDLE),
    "whose attempt a bundle is": (lambda t: t.in_bundle("attempt.json", pod_uid="another"), BUNDLE),
    "a seal": (lambda t: t.run.edit(SEALED, status="passed", checks="11"), SEALED),
    "whose pod sealed": (lambda t: t.run.edit(SEALED, pod_uid="another"), SEALED),
    "a bundle that is gone": (lambda t: t.run.files.pop(BUNDLE), BUNDLE),
    "a seal that is gone": (lambda t: t.run.files.pop(SEALED), SEALED),
    "the bundle of another case": (
        lambda t: t.run.files.update({BUNDLE: t.run.files["41/restart/0/1.tar.zst"]}), BUNDLE,
    ),
    "whose run it is": (lambda t: t.run.edit("meta.json", name="another"), "meta.json"),
}  # fmt: skip


def test_there_are_many() -> None:
    assert len(WAYS) >= 15


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("recomputed", [False, True], ids=["digests-as-they-were", "digests-made-right"])
def test_it_is_found_and_named_against_the_digest_of_the_status(way: str, recomputed: bool) -> None:
    tamper, file = WAYS[way]
    tampered = Tampered()
    digest = tampered.run.digest
    tamper(tampered)
    if recomputed:
        tampered.recompute()
    result = tampered.run.verify(status_digest=digest)
    told = [finding.path for finding in result.findings]
    changed = result.authenticated is False
    assert not result.consistent
    assert file in told or (changed and "run.json" in told), result.findings
    if not recomputed:
        assert file in told or file == "run.json", result.findings


def test_a_folder_left_alone_verifies() -> None:
    untouched: RunFolder = finished_run()
    assert untouched.verify(status_digest=untouched.digest).consistent
