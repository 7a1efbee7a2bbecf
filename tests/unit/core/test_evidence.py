from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casewarden.core.evidence import (
    EvidenceKey,
    case_prefix,
    json_file,
    parse_evidence_key,
    result_row,
    results_file,
    root_digest,
    row_of_result,
    run_document,
    run_key,
    workspace_key,
)
from casewarden.core.model import AttemptKey, CaseKey, LedgerRow
from casewarden.ports.store import check_key

CASE_IDS = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}", fullmatch=True)
CASES = st.builds(CaseKey, st.integers(-(10**18), 10**18), CASE_IDS, st.integers(0, 10**6))
KEYS = st.one_of(
    st.builds(EvidenceKey, CASES, st.just("sealed")),
    st.builds(EvidenceKey, CASES, st.sampled_from(["bundle", "partial", "claim"]), st.integers(1, 10**6)),
)
ROWS = st.builds(
    LedgerRow,
    st.builds(AttemptKey, CASES, st.integers(1, 100)),
    st.sampled_from(["verdict", "environment", "interruption", "suspended"]),
    st.sampled_from(["passed", "failed", "agent_error", "environment_error"]),
    st.text("01-", min_size=1, max_size=5),
    reason=st.none() | st.just("TimeLimit"),
    error=st.none() | st.text(),
    digest=st.none() | st.just("0" * 64),
    seconds=st.none() | st.floats(0, 1e6),
    pod_uid=st.text("abc-123"),
    ended_at=st.floats(0, 2e9),
)


@given(KEYS)
def test_every_file_of_a_case_has_a_key_that_stores_take_and_that_reads_back(key: EvidenceKey) -> None:
    assert parse_evidence_key(key.path()) == key
    stored = check_key(run_key("0f5e-uid", key.path()))
    assert stored.startswith(case_prefix("0f5e-uid", key.case))


@given(KEYS, KEYS)
def test_two_files_never_share_a_key(left: EvidenceKey, right: EvidenceKey) -> None:
    assert (left == right) == (left.path() == right.path())


NONE = ["", "run.json", "17/a/0", "17/a/0/", "17/a/0/0x1.tar.zst", "017/a/0/1.tar.zst", "-017/a/0/sealed.json"]
NONE += ["x/a/0/sealed.json", "17/.a/0/sealed.json", "17/a/0/b/sealed.json", "17/a/00/sealed.json", "17/a/0/1.tar"]
NONE += ["17/a/0/sealed.json\n", "-0/a/0/sealed.json"]


@pytest.mark.parametrize("path", NONE)
def test_what_is_no_file_of_a_case_is_none(path: str) -> None:
    assert parse_evidence_key(path) is None


@given(st.text())
def test_any_text_is_a_key_or_none_and_never_an_error(path: str) -> None:
    key = parse_evidence_key(path)
    assert key is None or key.path() == path


@given(ROWS)
def test_a_row_reads_back_from_its_line(row: LedgerRow) -> None:
    assert row_of_result(json.loads(json_file(result_row(row)))) == row


@given(st.lists(ROWS, max_size=5, unique_by=lambda row: row.key), st.randoms())
def test_results_do_not_depend_on_the_order_of_the_rows(rows: list[LedgerRow], random: object) -> None:
    shuffled = list(rows)
    random.shuffle(shuffled)  # type: ignore[attr-defined]

    assert results_file(shuffled) == results_file(rows)
    assert len(results_file(rows).splitlines()) == len(rows)


@pytest.mark.parametrize("change", [{"kind": "other"}, {"seed": "x"}, {"seed": None}])
def test_a_line_that_is_no_row_is_refused(change: dict[str, object]) -> None:
    row = LedgerRow(AttemptKey(CaseKey(1, "a", 0), 1), "verdict", "passed", "1")
    with pytest.raises((KeyError, TypeError, ValueError)):
        row_of_result({**result_row(row), **change})
    with pytest.raises(KeyError):
        row_of_result({})


def test_the_root_digest_reaches_plan_results_and_score() -> None:
    def digest(**changes: object) -> str:
        parts: dict[str, object] = {"name": "n", "namespace": "ns", "run_uid": "u", "spec": {"a": 1}, "seeds": [1]}
        parts |= {"plan": b"p", "results": b"r", "score": {}}
        return root_digest(json_file(run_document(**{**parts, **changes})))  # type: ignore[arg-type]

    changed = [{"plan": b"q"}, {"results": b"s"}, {"score": {"score": "1"}}, {"spec": {"a": 1.0}}, {"seeds": [2]}]
    digests = {digest(), *(digest(**change) for change in changed)}

    assert len(digests) == len(changed) + 1
    assert all(text.startswith("sha256:") and len(text) == 71 for text in digests)


def test_a_workspace_lies_below_its_namespace() -> None:
    assert check_key(workspace_key("evals", "0" * 64)) == f"workspaces/evals/{'0' * 64}.tar.zst"
