"""A run as CSV: a line for each case, for spreadsheets and data frames."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence

from casewarden.reporting.run import ReportedRun

__all__ = ["to_csv"]

_HEAD = (
    "namespace", "run", "task", "candidate", "seed", "case", "repeat", "status", "reason", "seconds", "attempts",
    "error",
)  # fmt: skip
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


def to_csv(runs: Sequence[ReportedRun]) -> str:
    """Return all cases of all runs; a column ``check_…`` for each dimension: 1, 0, or empty where there is no check."""
    dimensions = sorted({name for run in runs for case in run.cases for name in case.checks})
    out = io.StringIO()
    lines = csv.writer(out, lineterminator="\r\n")
    lines.writerow([*_HEAD, *(f"check_{name}" for name in dimensions)])
    for run in runs:
        for case in run.cases:
            checks = [{True: "1", False: "0", None: ""}[case.checks.get(name)] for name in dimensions]
            texts = [run.namespace, run.name, run.task, run.candidate]
            seconds = "" if case.seconds is None else f"{case.seconds:g}"
            lines.writerow([
                *map(_text, texts), case.key.seed, _text(case.key.case_id), case.key.repeat, case.status,
                _text(case.reason or ""), seconds, case.attempts, _text(case.error or ""), *checks,
            ])  # fmt: skip
    return out.getvalue()


def _text(value: str) -> str:
    """Keep a spreadsheet from taking for a formula what a candidate wrote."""
    return f"'{value}" if value.startswith(_FORMULA) else value
