"""A ledger that lost rows, put together again from what the store knows; pure.

Verdicts are sealed in the store, so those rows can be made again. Attempts that came to nothing leave claims and
partial bundles, which tell that they were, not what they drew on. So the rows are rebuilt where the counts in the
status leave one way to do it, and the run fails otherwise: a score over a guessed history would be no score.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from casewarden.core.model import AttemptKey, CaseKey, LedgerRow

__all__ = ["Counted", "rebuild"]

_Unsealed = Literal["environment", "interruption", "suspended"]
_UNSEALED: tuple[_Unsealed, ...] = ("environment", "interruption", "suspended")


@dataclass(frozen=True, slots=True)
class Counted:
    """What the status says that the ledger had."""

    rows: int
    verdicts: int
    environment: int
    interruption: int

    @property
    def suspended(self) -> int:
        """Rows of attempts that were stopped because the run was suspended."""
        return self.rows - self.verdicts - self.environment - self.interruption


def rebuild(
    left: Sequence[LedgerRow],
    index: Iterable[Mapping[str, Any]],
    counted: Counted,
    alive: Collection[AttemptKey],
    bits: Mapping[CaseKey, int],
    now: float,
) -> list[LedgerRow] | None:
    """Return the rows that are missing, or None where they cannot be known.

    ``left`` are the rows that are still there, ``index`` the relay's lines for the run, ``alive`` attempts that have a
    pod, ``bits`` how many dimensions each case checks.
    """
    lines = list(index)
    have = {row.key for row in left}
    judged = {row.key.case for row in left if row.kind == "verdict"}
    verdicts = [row for row in _sealed(lines, now) if row.key.case not in judged and row.key not in have]
    kinds = Counter(row.kind for row in left)
    lost = {kind: getattr(counted, kind) - kinds[kind] for kind in _UNSEALED}
    if counted.verdicts - kinds["verdict"] > len(verdicts) or any(number < 0 for number in lost.values()):
        return None
    rebuilt = have | {row.key for row in verdicts}
    gaps = sorted(_evidenced(lines, rebuilt) - rebuilt - set(alive))
    wanted = [kind for kind in _UNSEALED if lost[kind]]
    if not wanted:
        return verdicts
    if len(wanted) > 1 or len(gaps) != lost[wanted[0]]:
        return None
    return verdicts + [_unsealed(key, wanted[0], bits.get(key.case, 1), now) for key in gaps]


def _sealed(lines: Iterable[Mapping[str, Any]], now: float) -> Iterable[LedgerRow]:
    for line in lines:
        sealed = line.get("sealed")
        if line.get("kind") == "sealed" and sealed:
            case = CaseKey(sealed["seed"], sealed["case_id"], sealed["repeat"])
            yield LedgerRow(
                AttemptKey(case, sealed["attempt"]),
                "verdict",
                sealed["status"],
                sealed["checks"],
                reason=sealed.get("reason"),
                error=sealed.get("error"),
                digest=sealed["digest"],
                seconds=sealed.get("seconds"),
                pod_uid=sealed["pod_uid"],
                ended_at=now,
            )


def _evidenced(lines: Iterable[Mapping[str, Any]], rebuilt: Iterable[AttemptKey]) -> set[AttemptKey]:
    """Every attempt that must have been: it left something, or a later one of its case did."""
    found = {
        AttemptKey(CaseKey(line["seed"], line["case_id"], line["repeat"]), line["attempt"])
        for line in lines
        if line.get("attempt")
    } | set(rebuilt)
    return {AttemptKey(key.case, number) for key in found for number in range(1, key.attempt + 1)}


def _unsealed(key: AttemptKey, kind: _Unsealed, bits: int, now: float) -> LedgerRow:
    reason = {"environment": "Unknown", "interruption": "Deleted", "suspended": "Suspended"}[kind]
    error = "this row was made again after the ledger had lost it"
    return LedgerRow(key, kind, "environment_error", "-" * bits, reason=reason, error=error, ended_at=now)
