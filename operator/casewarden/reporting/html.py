"""The report: one page that needs nothing else, not even a connection.

What candidates wrote reaches the page as data, is shown as text by `textContent` and never as markup, and the page's
Content-Security-Policy lets nothing run but its own script, by its hash, and nothing be fetched at all.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, Final

from casewarden.reporting import sections
from casewarden.reporting.audits import ReportedAudit
from casewarden.reporting.audits import audits as section_of_audits
from casewarden.reporting.run import ORDER, ReportedCase, ReportedRun
from casewarden.reporting.sections import escaped
from casewarden.reporting.spoken import spoken
from casewarden_sdk.contract import PASSED

__all__ = ["LINE_CHARACTERS", "Transcripts", "to_html"]

LINE_CHARACTERS: Final = 8000
"""Longer lines of a transcript lose their middle."""
Rows = Sequence[Mapping[str, Any]]
Transcripts = Callable[[ReportedRun, ReportedCase], Rows | None]
"""Gives the rows of a case's transcript, None where there is none."""


@dataclass
class _Budget:
    left: int
    kept: int = 0
    left_out: int = 0


def to_html(
    runs: Sequence[ReportedRun],
    transcripts: Transcripts,
    *,
    limit: int,
    passed: bool = False,
    audits: Sequence[ReportedAudit] = (),
) -> str:
    """Return the page about some runs, some audits, or both.

    ``limit`` bounds the bytes of all transcripts together: environment errors come first, then agent errors, failures
    and, with ``passed``, cases that passed. The page says how many had no room.
    """
    numbered = [(number, case) for number, run in enumerate(runs) for case in run.cases]
    numbered.sort(key=lambda item: ORDER.index(item[1].status) if item[1].status in ORDER else 0)
    budget = _Budget(limit)
    kept: list[list[list[Any]]] = []
    cases: list[list[Any]] = []
    for number, case in numbered:
        place = None
        if passed or case.status != PASSED:
            rows = _fitting(transcripts, runs[number], case, budget)
            if rows is not None:
                place = len(kept)
                kept.append(rows)
        bits = "".join({True: "1", False: "0", None: "-"}[case.checks[name]] for name in sorted(case.checks))
        cases.append([
            number, case.key.seed, case.key.case_id, case.key.repeat, case.status, bits, case.reason, case.error,
            case.seconds, case.attempts, place,
        ])  # fmt: skip
    data = {
        "runs": [run.title for run in runs],
        "checks": {case.key.case_id: sorted(case.checks) for run in runs for case in run.cases},
        "cases": cases,
        "transcripts": kept,
    }
    return _page(runs, audits, data, budget)


def _fitting(transcripts: Transcripts, run: ReportedRun, case: ReportedCase, budget: _Budget) -> list[list[Any]] | None:
    if budget.left <= 0:
        budget.left_out += 1
        return None
    rows = transcripts(run, case)
    if rows is None:
        return None
    lines = [_line(row) for row in rows]
    size = len(json.dumps(lines))
    if size > budget.left:
        budget.left_out += 1
        return None
    budget.left -= size
    budget.kept += 1
    return lines


def _line(row: Mapping[str, Any]) -> list[Any]:
    text = str(row["text"]) if "text" in row else f"base64 {row.get('base64', '')}"
    text = spoken(str(row.get("dir")), text)
    if len(text) > LINE_CHARACTERS:
        half = LINE_CHARACTERS // 2
        text = f"{text[:half]}\n… {len(text) - 2 * half} characters are left out …\n{text[-half:]}"
    return [float(row.get("t") or 0.0), row.get("session") or 0, str(row.get("dir")), text]


def _page(
    runs: Sequence[ReportedRun], audits: Sequence[ReportedAudit], data: Mapping[str, Any], budget: _Budget
) -> str:
    folder = files("casewarden.reporting")
    style, script = ((folder / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    policy = (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    titles = [run.title for run in runs] + [audit.title for audit in audits]
    title = escaped(", ".join(titles[:4]) + (" and others" if len(titles) > 4 else ""))
    about_runs = f"""{sections.overview(runs)}
{sections.dimensions(runs)}
{sections.comparison(runs)}
{sections.heat_map(runs)}
{sections.flakiness(runs)}
{sections.durations(runs)}
{sections.usage(runs)}
"""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<link rel="icon" href="data:,">
<title>{title} · Casewarden</title>
<style>{style}</style>
</head>
<body>
<a class="skip" href="#list">To the cases</a>
<header><h1>{title}</h1><p class="soft">Casewarden report</p></header>
<main>
{about_runs if runs else ""}{section_of_audits(audits)}
{sections.case_list(runs, budget.kept, budget.left_out)}
</main>
<footer>Scores are recomputed from the evidence by <code>casewarden verify</code>.</footer>
<script type="application/json" id="data">{_data(data)}</script>
<script>{script}</script>
</body>
</html>
"""


def _data(data: Mapping[str, Any]) -> str:
    """Write JSON that no parser of HTML takes for anything else."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
