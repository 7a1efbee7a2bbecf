from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.evidence import SPEC, UID, RunFolder, finished_run, regrade, small_cases, small_plan

from casewarden.adapters.stores.zstd import compress, decompress
from casewarden.core.evidence import json_file, results_file, root_digest, run_document
from casewarden.core.model import AttemptKey, CaseKey, LedgerRow
from casewarden.core.verification import compare_status
from casewarden_sdk.bundle import pack_bundle, unpack_bundle
from casewarden_sdk.canonical import sha256_bytes

BUNDLE = "17/add/0/1.tar.zst"
SEALED = "17/add/0/sealed.json"


def rewritten(run: RunFolder, **changes: Any) -> RunFolder:
    """Write ``run.json`` anew with right digests of whatever the other files are now: a thorough forger."""
    old = json.loads(run.files["run.json"])
    document = run_document(
        name=old["name"], namespace=old["namespace"], run_uid=old["uid"], spec=old["spec"], seeds=old["seeds"],
        plan=run.files["plan.json"], results=run.files["results.jsonl"], score=old["score"],
    )  # fmt: skip
    run.files["run.json"] = json_file({**document, **changes})
    return run


def with_rows(run: RunFolder, change: Callable[[list[LedgerRow]], None]) -> RunFolder:
    change(run.rows)
    run.files["results.jsonl"] = results_file(run.rows)
    return rewritten(run)


def rebundled(run: RunFolder, path: str, change: Callable[[dict[str, bytes]], None]) -> RunFolder:
    """Change what is in a bundle, and every digest that is over it."""
    files = unpack_bundle(run.files[path], decompress)
    change(files)
    run.files[path] = pack_bundle(files, compress)
    digest = sha256_bytes(run.files[path])
    run.edit(path.rpartition("/")[0] + "/sealed.json", digest=digest)
    run.rows = [
        replaced(row, digest=digest) if str(row.key) in path.replace(".tar.zst", "") else row for row in run.rows
    ]
    run.files["results.jsonl"] = results_file(run.rows)
    return rewritten(run)


def replaced(row: LedgerRow, **changes: Any) -> LedgerRow:
    return LedgerRow(**{**{name: getattr(row, name) for name in row.__slots__}, **changes})


def found(run: RunFolder, **rest: Any) -> str:
    result = run.verify(**rest)
    assert not result.consistent
    return "\n".join(f"{finding.path} {finding.problem}" for finding in result.findings)


def test_an_untouched_run_is_consistent_and_its_figures_are_recomputed() -> None:
    result = finished_run().verify()

    assert result.findings == []
    assert (result.name, result.namespace, result.uid) == ("small-run", "evals", UID)
    assert (result.rows, result.verdicts, result.bundles, result.unsealed) == (5, 4, 4, [])
    assert result.score["score"] == "0.625"
    assert result.authenticated is None


def test_it_is_authenticated_by_the_digest_of_the_status_only() -> None:
    run = finished_run()

    assert run.verify(status_digest=run.digest).authenticated is True
    other = run.verify(status_digest="sha256:" + "0" * 64)
    assert other.authenticated is False
    assert "the status of the run" in other.findings[0].problem


def test_a_thorough_forger_who_rewrites_every_digest_meets_the_one_in_the_status() -> None:
    run = finished_run()
    anchor = run.digest

    def to_right(files: dict[str, bytes]) -> None:
        record = {**json.loads(files["record.json"]), "again": 19}
        verdict = {**json.loads(files["verdict.json"]), "checks": {"basic": True, "recovery": True}}
        files["record.json"] = json_file(record)
        files["verdict.json"] = json_file({**verdict, "status": "passed", "passed": True})

    rebundled(run, "17/restart/0/2.tar.zst", to_right)
    run.edit("17/restart/0/sealed.json", status="passed", checks="11")
    run.rows = [replaced(row, status="passed", checks="11") if row.status == "failed" else row for row in run.rows]
    run.finish()

    assert run.verify().consistent, "nothing inside the folder can show it"
    assert run.verify(again=regrade).consistent, "the forger made the record fit too"
    assert found(run, status_digest=anchor).startswith("run.json has the digest")


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_no_byte_of_any_file_changes_unseen(data: st.DataObject) -> None:
    run = finished_run()
    anchor = run.digest
    path = data.draw(st.sampled_from(sorted(run.files)))
    content = bytearray(run.files[path])
    content[data.draw(st.integers(0, len(content) - 1))] ^= data.draw(st.integers(1, 255))
    run.files[path] = bytes(content)

    assert not run.verify(status_digest=anchor).consistent


@pytest.mark.parametrize("path", [path for path in sorted(finished_run().files) if path.endswith("sealed.json")])
def test_no_byte_of_a_seal_changes_unseen(path: str) -> None:
    run = finished_run()
    whole = run.files[path]
    for index in range(len(whole)):
        run.files[path] = whole[:index] + bytes([whole[index] ^ 1]) + whole[index + 1 :]
        assert not run.verify(status_digest=run.digest).consistent, index


@pytest.mark.parametrize("path", sorted(finished_run().files))
def test_no_file_disappears_unseen(path: str) -> None:
    run = finished_run()
    del run.files[path]

    assert path in found(run)


@pytest.mark.parametrize(
    "path",
    [
        "notes.txt",
        "17/add/sealed.json",
        "17/add/0/1.tar.gz",
        "017/add/0/1.tar.zst",
        "17/add/0/01.tar.zst",
        "results.json",
    ],
)
def test_a_file_that_no_run_has_is_named(path: str) -> None:
    run = finished_run()
    run.files[path] = b"x"

    assert f"{path} is no file of a run" in found(run)


def test_claims_partial_and_superseded_bundles_may_lie_beside_the_evidence() -> None:
    run = finished_run()
    for path in ("17/add/0/1.claim.json", "17/restart/0/1.partial.tar.zst", "17/add/0/2.tar.zst", "gone.json"):
        run.files[path] = b"x"

    assert run.verify().consistent


def test_a_sealed_verdict_that_the_results_leave_out_is_found() -> None:
    run = with_rows(finished_run(), lambda rows: rows.remove(next(row for row in rows if row.status == "failed")))

    assert "17/restart/0/sealed.json is a sealed verdict that the results do not count" in found(run)


def test_an_edited_score_is_recomputed() -> None:
    run = finished_run()
    score = json.loads(run.files["run.json"])["score"]
    rewritten(run, score={**score, "score": "1", "resolved": True})

    assert found(run).splitlines() == [
        "run.json score.resolved is True; the results come to False",
        "run.json score.score is '1'; the results come to '0.625'",
    ]


def test_a_row_that_says_more_than_its_seal_is_found() -> None:
    def better(rows: list[LedgerRow]) -> None:
        rows[:] = [replaced(row, status="passed", checks="11") if row.status == "failed" else row for row in rows]

    text = found(with_rows(finished_run(), better))
    assert "sealed.json has status 'failed', the results count 'passed'" in text
    assert "verdict.json says ('failed', '10', None), the results count ('passed', '11', None)" in text


Change = Callable[[dict[str, bytes]], None]


def edited(name: str, **changes: Any) -> Change:
    def change(files: dict[str, bytes]) -> None:
        files[name] = json_file({**json.loads(files[name]), **changes})

    return change


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (edited("verdict.json", checks={"basic": False}), "breaks the contract"),
        (edited("verdict.json", checks={"basic": False}, status="failed", passed=False), "verdict.json says"),
        (edited("verdict.json", case_id="restart"), "is of case 'restart'"),
        (edited("verdict.json", attempt=2), "verdict.json has attempt 2"),
        (edited("verdict.json", duration_seconds=0.1), "comes to seconds 0.1"),
        (edited("verdict.json", error="x"), "comes to error 'x'"),
        (edited("verdict.json", transcript_sha256="0" * 64), "the transcript's digest is"),
        (edited("case.json", numbers=[17, 2]), "case.json has the digest"),
        (edited("attempt.json", run_uid="another"), "attempt.json has run_uid 'another'"),
        (edited("attempt.json", pod_uid="another"), "attempt.json has pod_uid 'another'"),
        (edited("attempt.json", partial=True), "partial"),
        (lambda files: files.pop("record.json"), "record.json is missing"),
        (lambda files: files.update({"verdict.json": b"[]"}), "verdict.json is no object"),
        (lambda files: files.update({"verdict.json": b"{"}), "verdict.json: "),
        (lambda files: files.update({"record.json": b'{"sum": 1, "sum": 2}'}), "a key is there twice"),
        (lambda files: files.update({"record.json": b'{"sum": NaN}'}), "NaN is no number"),
        (lambda files: files.update({"record.json": b"[" * 200_000}), "nested too deeply"),
        (lambda files: files.update({"transcript.jsonl": b"[]\n"}), "line 1: is no object"),
        (lambda files: files.update({"transcript.jsonl": b'{"dir": "in"}\n'}), "a malformed row"),
        (lambda files: files.update({"transcript.jsonl": b""}), "the transcript's digest is"),
    ],
)
def test_a_bundle_that_contradicts_itself_is_found_though_every_digest_is_right(change: Change, problem: str) -> None:
    assert problem in found(rebundled(finished_run(), BUNDLE, change))


def test_a_record_that_does_not_grade_to_its_verdict_is_found_by_grading_again() -> None:
    run = rebundled(finished_run(), BUNDLE, edited("record.json", sum=0))

    assert run.verify().consistent
    assert "graded again it is" in found(run, again=regrade)


def test_grading_again_is_counted_and_a_grader_that_raises_is_a_finding() -> None:
    def broken(planned: Any, bundle: Any) -> Mapping[str, Any]:
        raise KeyError("sum")

    assert finished_run().verify(again=regrade).regraded == 4
    assert finished_run().verify().regraded is None
    assert "cannot be graded again: KeyError" in found(finished_run(), again=broken)


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"status": "passed", "checks": "0"}, "does not fit checks"),
        ({"status": "failed", "checks": "1"}, "does not fit checks"),
        ({"checks": "11"}, "for each of 1 dimensions"),
        ({"checks": "-"}, "for each of 1 dimensions"),
        ({"status": "environment_error", "checks": "-"}, "a verdict of status"),
        ({"reason": "TimeLimit"}, "with reason"),
        ({"digest": None}, "has no bundle"),
        ({"kind": "interruption"}, "what is unassessed has none"),
    ],
)
def test_a_row_that_breaks_the_contract_is_found(changes: dict[str, Any], problem: str) -> None:
    def change(rows: list[LedgerRow]) -> None:
        rows[0] = replaced(rows[0], **changes)

    assert problem in found(with_rows(finished_run(), change))


def test_a_second_verdict_for_a_case_is_found() -> None:
    def again(rows: list[LedgerRow]) -> None:
        rows.append(replaced(rows[0], key=AttemptKey(rows[0].key.case, 2)))

    assert "17/add/0 has more than one verdict" in found(with_rows(finished_run(), again))


def test_an_attempt_that_is_there_twice_or_of_no_planned_case_is_found() -> None:
    def change(rows: list[LedgerRow]) -> None:
        rows.append(rows[-1])
        rows.append(replaced(rows[-1], key=AttemptKey(CaseKey(17, "other", 0), 1)))
        rows.append(replaced(rows[-1], key=AttemptKey(CaseKey(17, "add", 1), 1)))

    text = found(with_rows(finished_run(), change))
    assert "17/restart/0/1 is there twice" in text
    assert "17/other/0/1 is no attempt of a planned case" in text
    assert "17/add/1/1 is no attempt of a planned case" in text


def test_more_tries_than_the_spec_allows_are_found() -> None:
    def more(rows: list[LedgerRow]) -> None:
        lost = next(row for row in rows if row.kind == "environment")
        rows.extend(replaced(lost, key=AttemptKey(lost.key.case, number)) for number in (3, 4, 5))

    assert "tried again 4 times for environment, and 2 are allowed" in found(with_rows(finished_run(), more))


def test_attempts_that_draw_on_no_budget_are_not_held_against_the_run() -> None:
    def more(rows: list[LedgerRow]) -> None:
        lost = next(row for row in rows if row.kind == "environment")
        for number in range(3, 13):
            key = AttemptKey(lost.key.case, number)
            rows.append(replaced(lost, key=key, kind="interruption", reason="Superseded"))

    run = with_rows(finished_run(), more)
    assert run.verify().consistent


def test_a_verdict_of_the_operators_is_listed_as_resting_on_its_word() -> None:
    run = finished_run()

    def judged(rows: list[LedgerRow]) -> None:
        rows[0] = replaced(rows[0], status="agent_error", checks="0", reason="StorageLimit", digest=None)

    with_rows(run, judged)
    del run.files[BUNDLE], run.files[SEALED]
    run.finish()

    result = run.verify()
    assert result.consistent
    assert result.unsealed == ["17/add/0/1"]


def test_a_verdict_counted_under_a_later_number_is_followed_to_the_attempt_that_sealed() -> None:
    run = finished_run()

    def later(rows: list[LedgerRow]) -> None:
        rows[0] = replaced(rows[0], key=AttemptKey(rows[0].key.case, 2))
        rows.append(
            LedgerRow(AttemptKey(rows[0].key.case, 1), "interruption", "environment_error", "-", reason="Deleted")
        )

    assert with_rows(run, later).verify().consistent


def test_a_seal_of_an_attempt_that_the_results_do_not_have_is_found() -> None:
    def later(rows: list[LedgerRow]) -> None:
        rows[0] = replaced(rows[0], key=AttemptKey(rows[0].key.case, 2))

    assert "is of attempt 1, which the results do not have" in found(with_rows(finished_run(), later))


def test_a_run_with_unassessed_cases_is_consistent_and_has_no_score() -> None:
    run = finished_run()
    run.rows = [row for row in run.rows if row.status != "failed"]
    del run.files["17/restart/0/sealed.json"]
    run.finish()

    result = run.verify()
    assert result.consistent
    assert result.score["valid"] is False
    assert "score" not in result.score


def test_repeats_are_cases_of_their_own() -> None:
    run = RunFolder()
    for repeat in (0, 1):
        for seed in (17, 41):
            for case in small_cases(seed):
                key = AttemptKey(CaseKey(seed, case.id, repeat), 1)
                right = sum(case.content["numbers"])
                run.seal(key, case, {"sum": right, "again": right})
    run.finish({**SPEC, "repeats": 2})

    result = run.verify(again=regrade)
    assert result.consistent
    assert (result.verdicts, result.score["total"]) == (8, 8)


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({**SPEC, "seeds": {"values": [17]}}, "its spec asks for [17]"),
        ({**SPEC, "seeds": {"random": 3}}, "its spec asks for 3"),
        ({**SPEC, "aggregation": "other/v1"}, "which this version does not know"),
        ({**SPEC, "task": 1}, "spec is none: task"),
    ],
)
def test_a_run_that_is_not_what_its_spec_asked_for_is_found(spec: dict[str, Any], problem: str) -> None:
    assert problem in found(rewritten(finished_run(), spec=spec))


def test_a_plan_whose_cases_have_another_fingerprint_is_found() -> None:
    run = finished_run()
    plan = small_plan()
    plan["fingerprints"]["cases"] = "0" * 64
    run.files["plan.json"] = json_file(plan)

    assert "for its cases, which come to" in found(rewritten(run))


@pytest.mark.parametrize("path", ["run.json", "plan.json", "meta.json"])
@pytest.mark.parametrize("data", [b"", b"[]", b"{", b"\xff", b'{"v": 1,  "x": 1}\n', b'{"a": 1, "a": 1}\n'])
def test_a_file_that_is_no_canonical_object_is_a_finding_and_no_crash(path: str, data: bytes) -> None:
    run = finished_run()
    run.files[path] = data

    assert path in found(run)


@pytest.mark.parametrize("data", [b"[]\n", b"{}\n", b"\xff\n", b'{"seed": "x"}\n'])
def test_results_that_are_no_rows_are_a_finding_and_no_crash(data: bytes) -> None:
    run = finished_run()
    run.files["results.jsonl"] = data

    assert "results.jsonl line 1 is no row" in found(rewritten(run))


def test_a_run_that_is_not_over_is_said_to_be_so() -> None:
    run = finished_run()
    del run.files["run.json"]

    assert "the run is not over" in found(run)


def test_meta_of_another_run_is_found() -> None:
    run = finished_run()
    run.edit("meta.json", namespace="other")

    assert found(run) == "meta.json is of another run than run.json"


def test_a_status_that_says_something_else_than_the_evidence_is_found() -> None:
    result = finished_run().verify()
    dimensions = result.score["dimensions"]
    good = {"valid": True, "resolved": False, "score": "0.625", "passRate": "0.75", "dimensions": dimensions}
    compare_status(result, good)
    assert result.consistent

    compare_status(result, {**good, "score": "1"})
    assert [finding.problem for finding in result.findings] == ["score is '1'; the evidence comes to '0.625'"]


def test_a_failed_runs_status_has_no_score_whatever_its_rows_come_to() -> None:
    result = finished_run().verify()
    failed = [{"type": "Failed", "status": "True"}]
    status = {"valid": False, "resolved": False, "dimensions": result.score["dimensions"], "conditions": failed}
    compare_status(result, status)
    assert result.consistent

    compare_status(result, {**status, "score": "0.625"})
    assert not result.consistent


def test_the_root_digest_is_over_the_bytes_of_the_run_file() -> None:
    run = finished_run()
    assert run.verify().digest == root_digest(run.files["run.json"]) == run.digest
