"""A run that graded another's records again is held against that one, and its verdicts against the grader."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Collection, Mapping
from typing import Any

import pytest
from support.evidence import SPEC, RunFolder, finished_run, grade, regrade, small_plan

from casewarden.adapters.stores.zstd import decompress
from casewarden.core.bundle_check import Bundle
from casewarden.core.evidence import json_file
from casewarden.core.verification import Regrade, Verification, compare_status
from casewarden.core.verify import verify_run
from casewarden_sdk.canonical import sha256_bytes
from casewarden_sdk.contract import Case


def lenient(planned: Any, bundle: Bundle) -> Mapping[str, Any]:
    """Another version: it does not look at what comes after the restart."""
    case = Case(planned.id, tuple(planned.dimensions), bundle.content)
    return grade(case, {**bundle.record, "again": sum(bundle.content["numbers"])}).to_json()


class Regraded:
    """A finished run, and one that graded its records by ``lenient``, of another version."""

    def __init__(self) -> None:
        self.original = finished_run()
        self.run = RunFolder(uid="uid-again", name="again")
        self.plan = small_plan()
        self.plan |= {"task": self.plan["task"] | {"version": "0.2.0"}}
        self.plan["fingerprints"] = self.plan["fingerprints"] | {"grader": sha256_bytes(b"lenient")}
        self.run.rows = [
            dataclasses.replace(row, status="passed", checks="11") if row.status == "failed" else row
            for row in self.original.rows
        ]
        self.finish()

    def finish(self) -> None:
        self.run.finish({**SPEC, "regradeOf": {"evalRun": "small-run"}}, self.plan)
        of = {"name": "small-run", "uid": self.original.uid, "digest": self.original.digest}
        self.run.edit("run.json", regrade=of)

    def verify(self, digest: str | None = None, again: Regrade | None = None) -> Verification:
        def folder(uid: str) -> tuple[Any, Collection[str]]:
            found = {self.original.uid: self.original.files}.get(uid, {})
            return found.get, list(found)

        return verify_run(
            self.run.files.get, list(self.run.files), decompress, status_digest=digest, regrade=again,
            run_folder=folder,
        )  # fmt: skip


def test_an_untouched_one_is_consistent_and_its_verdicts_are_graded_again() -> None:
    regraded = Regraded()
    result = regraded.verify(regraded.run.digest)
    assert (result.findings, result.authenticated) == ([], True)
    assert (result.bundles, result.not_regraded, result.score["score"]) == (4, 4, "1")
    again = regraded.verify(regraded.run.digest, lenient)
    assert (again.findings, again.regraded, again.not_regraded) == ([], 4, 0)


def test_what_changed_is_recomputed_and_held_against_the_status() -> None:
    regraded = Regraded()
    result = regraded.verify()
    assert result.original is not None
    assert (result.original["changed"], result.original["score"]) == (1, "0.625")
    assert result.original["changes"][0]["dimensions"] == ["recovery"]
    status = {
        **{key: result.score[key] for key in ("valid", "resolved", "score")}, "passRate": result.score["pass_rate"],
        "dimensions": result.score["dimensions"], "regrade": result.original,
    }  # fmt: skip
    compare_status(result, status)
    assert result.findings == []
    compare_status(result, {**status, "regrade": {**result.original, "changed": 0}})
    assert result.findings[0].problem.startswith("regrade is")


def test_a_grader_that_judges_otherwise_is_found() -> None:
    told = [finding.problem for finding in Regraded().verify(again=regrade).findings]
    assert any("17/restart/0/2 graded again is ('failed', '10'" in line for line in told)


def of_original(**changes: Any) -> Callable[[Regraded], None]:
    return lambda r: r.run.edit("run.json", regrade={**json.loads(r.run.files["run.json"])["regrade"], **changes})


def rows(change: Callable[[Any], Any]) -> Callable[[Regraded], None]:
    def edit(regraded: Regraded) -> None:
        regraded.run.rows = [row for old in regraded.run.rows if (row := change(old)) is not None]
        regraded.finish()

    return edit


def other_case(regraded: Regraded) -> None:
    cases = [row | {"sha256": "ab" * 32} if row["seed"] == 17 else row for row in regraded.plan["cases"]]
    regraded.plan |= {"cases": cases}
    regraded.finish()


WAYS: dict[str, tuple[Callable[[Regraded], Any], str]] = {
    "another original": (of_original(uid="uid-nobody"), "uid-nobody/run.json: is missing"),
    "another digest of it": (of_original(digest="sha256:" + "0" * 64), "run.json: has the digest"),
    "another name of it": (of_original(name="another"), "its spec says 'small-run'"),
    "a row left out": (rows(lambda row: row if row.kind == "verdict" else None), "of one of the two runs only"),
    "an attempt's time": (rows(lambda row: dataclasses.replace(row, seconds=9.0)), "is not the attempt that was"),
    "a retry's reason": (
        rows(lambda row: dataclasses.replace(row, reason="NodeLost") if row.kind == "environment" else row),
        "is not the attempt that was",
    ),
    "another case": (other_case, "is another than the one that was played"),
    "the original's score": (lambda r: r.original.edit("run.json", score={"score": "1"}), "run.json"),
    "a bundle of the original": (lambda r: r.original.files.pop("17/restart/0/2.tar.zst"), "is missing"),
    "a bundle of its own": (lambda r: r.run.files.update({"17/add/0/1.tar.zst": b"x"}), "records are another's"),
    "no original at all": (
        lambda r: r.run.files.update(
            {"run.json": json_file({k: v for k, v in json.loads(r.run.files["run.json"]).items() if k != "regrade"})}
        ),
        "sealed.json: is missing",
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_change_is_found_and_named(way: str) -> None:
    damage, said = WAYS[way]
    regraded = Regraded()
    damage(regraded)
    told = [f"{finding.path}: {finding.problem}" for finding in regraded.verify().findings]
    assert any(said in line for line in told), told
