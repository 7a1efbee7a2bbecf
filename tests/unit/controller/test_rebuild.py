"""A ledger that lost rows is made again exactly, or not at all."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from casewarden.controller.rebuild import Counted, rebuild
from casewarden.core.model import AttemptKey, CaseKey, LedgerRow

KINDS = ["environment", "interruption", "suspended"]
CASES = [CaseKey(17, name, 0) for name in "abcdef"]


def verdict(case: CaseKey, attempt: int, digest: str | None = "d" * 64) -> LedgerRow:
    return LedgerRow(AttemptKey(case, attempt), "verdict", "passed", "1", digest=digest, pod_uid="u", seconds=1.0)


def unsealed(case: CaseKey, attempt: int, kind: Any) -> LedgerRow:
    return LedgerRow(AttemptKey(case, attempt), kind, "environment_error", "-", reason="Unknown")


def index_of(rows: list[LedgerRow]) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = []
    for row in rows:
        case = row.key.case
        where = {"seed": case.seed, "case_id": case.case_id, "repeat": case.repeat, "attempt": row.key.attempt}
        lines.append({"kind": "claim", **where})
        if row.kind == "verdict" and row.digest:
            sealed = where | {"status": row.status, "checks": row.checks, "digest": row.digest, "pod_uid": row.pod_uid}
            lines.append({"kind": "sealed", **where, "sealed": sealed | {"seconds": row.seconds}})
    return lines


def counted(rows: list[LedgerRow]) -> Counted:
    kinds = Counter(row.kind for row in rows)
    return Counted(len(rows), kinds["verdict"], kinds["environment"], kinds["interruption"])


def made(left: list[LedgerRow], rows: list[LedgerRow], alive: set[AttemptKey] | None = None) -> Any:
    return rebuild(left, index_of(rows), counted(rows), alive or set(), dict.fromkeys(CASES, 1), 5.0)


def test_lost_verdicts_come_back_from_the_seals() -> None:
    rows = [verdict(CASES[0], 1), verdict(CASES[1], 1)]
    (row,) = made(rows[:1], rows)
    assert (row.key, row.status, row.checks, row.digest, row.seconds) == (rows[1].key, "passed", "1", "d" * 64, 1.0)


def test_lost_retries_come_back_where_the_counts_leave_one_kind() -> None:
    rows = [unsealed(CASES[0], 1, "interruption"), verdict(CASES[0], 2), verdict(CASES[1], 1)]
    assert [(row.key.attempt, row.kind) for row in made(rows[2:], rows)] == [(2, "verdict"), (1, "interruption")]


def test_retries_of_two_kinds_cannot_be_told_apart() -> None:
    rows = [unsealed(CASES[0], 1, "interruption"), unsealed(CASES[1], 1, "environment")]
    assert made([], rows) is None


def test_a_verdict_that_was_never_sealed_cannot_be_made_again() -> None:
    rows = [verdict(CASES[0], 1, digest=None)]
    assert made([], rows) is None


def test_an_attempt_that_runs_is_not_taken_for_a_lost_one() -> None:
    rows = [unsealed(CASES[0], 1, "environment"), verdict(CASES[1], 1)]
    running = AttemptKey(CASES[0], 2)
    lines = [*rows, unsealed(CASES[0], 2, "environment")]
    found = rebuild([], index_of(lines), counted(rows), {running}, dict.fromkeys(CASES, 1), 5.0)
    assert found is not None
    assert {row.key for row in found} == {row.key for row in rows}


histories = st.lists(
    st.tuples(st.sampled_from(CASES), st.lists(st.sampled_from(KINDS), max_size=3)),
    unique_by=lambda pair: pair[0],
).map(
    lambda pairs: [
        row
        for case, kinds in pairs
        for row in [
            *(unsealed(case, number + 1, kind) for number, kind in enumerate(kinds)),
            verdict(case, len(kinds) + 1),
        ]
    ]
)  # fmt: skip


@given(histories, st.data())
def test_what_is_made_again_has_the_kinds_and_attempts_that_were_lost(
    rows: list[LedgerRow], data: st.DataObject
) -> None:
    kept = [row for row in rows if data.draw(st.booleans())]
    found = made(kept, rows)
    if found is not None:
        assert sorted((row.key, row.kind) for row in [*kept, *found]) == sorted((row.key, row.kind) for row in rows)
