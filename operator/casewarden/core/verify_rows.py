"""Do a run's rows keep the contract, each by itself and all together? Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Final

from casewarden.api.evalrun import EvalRunSpec
from casewarden.api.plan import PlanCase
from casewarden.api.reasons import AttemptReason
from casewarden.core.model import CaseKey, LedgerRow
from casewarden.core.outcome import run_reasons
from casewarden_sdk.contract import AGENT_ERROR, ENVIRONMENT_ERROR, FAILED, PASSED

__all__ = ["check_rows"]

# These draw on no budget: the case was settled without the attempt, or the whole run failed for it.
_UNBUDGETED: Final = run_reasons() | {str(AttemptReason.SUPERSEDED)}


def check_rows(
    rows: Iterable[LedgerRow],
    keys: Collection[CaseKey],
    planned: Mapping[tuple[int, str], PlanCase],
    spec: EvalRunSpec,
) -> tuple[dict[CaseKey, LedgerRow], list[str]]:
    """Check each row by itself and all together.

    Return the verdict that counts for each case that has one, and what is wrong.
    """
    problems: list[str] = []
    counted: dict[CaseKey, LedgerRow] = {}
    seen: set[Any] = set()
    kinds: Counter[tuple[CaseKey, str]] = Counter()
    for row in rows:
        case = row.key.case
        if case not in keys:
            problems.append(f"{row.key} is no attempt of a planned case")
            continue
        if row.key in seen:
            problems.append(f"{row.key} is there twice")
        seen.add(row.key)
        if row.reason not in _UNBUDGETED:
            kinds[case, row.kind] += 1
        width = len(planned[case.seed, case.case_id].dimensions)
        problems.extend(f"{row.key}: {problem}" for problem in _row_problems(row, width))
        if row.kind == "verdict" and counted.setdefault(case, row) is not row:
            problems.append(f"{case} has more than one verdict; the first seal alone counts")
    budgets = {"environment": spec.retries.environment, "interruption": spec.retries.interruptions}
    for (case, kind), count in kinds.items():
        if kind in budgets and count > budgets[kind] + 1:
            problems.append(f"{case} was tried again {count} times for {kind}, and {budgets[kind]} are allowed")
    return counted, problems


def _row_problems(row: LedgerRow, width: int) -> Iterator[str]:
    if row.kind != "verdict":
        if row.status != ENVIRONMENT_ERROR or row.checks.strip("-"):
            yield f"{row.kind} with status {row.status!r} and checks {row.checks!r}; what is unassessed has none"
        return
    if row.status not in (PASSED, FAILED, AGENT_ERROR):
        yield f"a verdict of status {row.status!r}"
    if len(row.checks) != width or set(row.checks) - {"0", "1"}:
        yield f"checks {row.checks!r} are not one 0 or 1 for each of {width} dimensions"
    if (row.status == PASSED) != ("0" not in row.checks):
        yield f"status {row.status!r} does not fit checks {row.checks!r}"
    if (row.reason is not None) != (row.status == AGENT_ERROR):
        yield f"status {row.status!r} with reason {row.reason!r}; agent_error, and only it, has one"
    if row.digest is None and (row.status != AGENT_ERROR or "1" in row.checks):
        yield "has no bundle, and only an agent_error that failed every check may have none"
