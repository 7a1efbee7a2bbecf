"""The parts of the report that are there before any script runs. Everything from outside goes through ``escaped``."""

from __future__ import annotations

import html
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from casewarden.core.model import CaseKey
from casewarden.core.usage import usage_in_words
from casewarden.reporting.run import ORDER, ReportedCase, ReportedRun
from casewarden_sdk.contract import PASSED

__all__ = [
    "case_list", "comparison", "dimensions", "durations", "escaped", "flakiness", "heat_map", "overview", "table",
    "usage",
]  # fmt: skip

_SHOWN: Final = 200
_BAR: Final = 1000


def escaped(value: object) -> str:
    """Return text that is text in HTML, in attributes too; control characters become visible."""
    text = "".join(char if char.isprintable() or char in "\n\t" else "\N{REPLACEMENT CHARACTER}" for char in str(value))
    return html.escape(text, quote=True)


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]], numbers: int = 0, name: str = "") -> str:
    """Return a table of cells that are HTML already; the last ``numbers`` columns are figures."""
    first = len(head) - numbers
    heads = "".join(f'<th scope="col"{" class=n" if at >= first else ""}>{cell}</th>' for at, cell in enumerate(head))
    body = "".join("<tr>" + "".join(_cell(cell, at, first) for at, cell in enumerate(row)) + "</tr>\n" for row in rows)
    kind = f' class="{name}"' if name else ""
    return (
        f'<div class="wide"><table{kind}><caption>{escaped(caption)}</caption>'
        f"<thead><tr>{heads}</tr></thead>\n<tbody>{body}</tbody></table></div>"
    )


def _cell(cell: str, at: int, first: int) -> str:
    if cell.startswith("<td"):
        return cell
    if at == 0:
        return f'<th scope="row">{cell}</th>'
    return f"<td{' class=n' if at >= first else ''}>{cell}</td>"


def overview(runs: Sequence[ReportedRun]) -> str:
    """Each run's score against what needs no skill, what is possible and what was asked."""
    return f'<section><h2>Scores</h2><div class="cards">{"".join(map(_card, runs))}</div></section>'


def _card(run: ReportedRun) -> str:
    score = run.score.get("score")
    lost = sum(not case.is_assessed for case in run.cases)
    if score is None:
        shown = f'<p class="score odd">no score</p><p>{lost} of {len(run.cases)} cases could not be assessed.</p>'
    else:
        rate = run.score.get("pass_rate")
        shown = f'<p class="score">{escaped(score)}</p><p class="soft">pass rate {escaped(rate)}</p>{_bar(run)}'
    facts: dict[str, object] = {
        "task": run.task, "candidate": run.candidate, "rule": run.score.get("rule"),
        "cases": _counts(run), "excluded": len(run.excluded), "seeds": ", ".join(map(str, run.seeds)),
        "attempts": sum(case.attempts for case in run.cases), "evidence": run.digest,
    }  # fmt: skip
    if run.usage is not None:
        facts["models"] = usage_in_words(run.usage)
    facts |= dict(run.beside)
    terms = "".join(f"<dt>{escaped(key)}</dt><dd>{escaped(value)}</dd>" for key, value in facts.items())
    return f'<article class="card"><h3>{escaped(run.title)}</h3>{shown}<dl>{terms}</dl></article>'


def _counts(run: ReportedRun) -> str:
    counts = Counter(case.status for case in run.cases)
    return ", ".join(f"{counts[status]} {status}" for status in reversed(ORDER) if counts[status])


def _bar(run: ReportedRun) -> str:
    """Draw the score from 0 to 1, with the interval, floor and reference of an audit, and the threshold."""

    def at(value: object) -> float:
        return 4 + (_BAR - 8) * min(1.0, max(0.0, float(str(value))))

    def line(kind: str, value: object, low: int, high: int) -> str:
        return f'<line class="{kind}" x1="{at(value):.1f}" x2="{at(value):.1f}" y1="{low}" y2="{high}"/>'

    score, words = str(run.score["score"]), [f"score {run.score['score']}"]
    parts = [f'<rect class="track" x="4" y="10" width="{_BAR - 8}" height="14" rx="3"/>',
             f'<rect class="fill" x="4" y="10" width="{at(score) - 4:.1f}" height="14" rx="3"/>']  # fmt: skip
    if run.interval:
        low, high = run.interval["low"], run.interval["high"]
        parts.append(f'<line class="range" x1="{at(low):.1f}" x2="{at(high):.1f}" y1="17" y2="17"/>')
        words.append(f"interval {low} to {high}")
    for key, kind in (("nullAgent", "floor"), ("reference", "range")):
        if run.floor.get(key) is not None:
            parts.append(line(kind, run.floor[key], 4, 30))
            words.append(f"{'null agent' if key == 'nullAgent' else key} {run.floor[key]}")
    goal = (run.spec.get("threshold") or {}).get("score")
    if goal is not None:
        parts.append(line("goal", goal, 2, 32))
        words.append(f"threshold {goal}")
    label = escaped(", ".join(words) + ", of 1")
    return (
        f'<svg class="bar" viewBox="0 0 {_BAR} 34" preserveAspectRatio="none" role="img" aria-label="{label}">'
        f"{''.join(parts)}</svg><small>{label}</small>"
    )


def dimensions(runs: Sequence[ReportedRun]) -> str:
    """What each dimension of the task came to in each run."""
    weights: dict[tuple[str, str], str] = {}
    found: dict[tuple[str, str], dict[int, Mapping[str, Any]]] = defaultdict(dict)
    for number, run in enumerate(runs):
        for name, dimension in (run.score.get("dimensions") or {}).items():
            weights[run.task, name] = str(dimension["weight"])
            found[run.task, name][number] = dimension
    rows = []
    for (task, name), by_run in sorted(found.items()):
        cells = [escaped(task), escaped(name), escaped(weights[task, name])]
        for number in range(len(runs)):
            dimension = by_run.get(number)
            cells.append("" if dimension is None else _dimension(dimension))
        rows.append(cells)
    head = ["Task", "Dimension", "Weight", *(escaped(run.title) for run in runs)]
    caption = "Score of each dimension, and how many of its checks passed"
    return f"<section><h2>Dimensions</h2>{table(caption, head, rows, len(runs) + 1)}</section>"


def _dimension(found: Mapping[str, Any]) -> str:
    score = found.get("score")
    checks = f"<small>{found['passed']}/{found['total']}</small>"
    return f"{escaped(score)} {checks}" if score is not None else f'<span class="odd">none</span> {checks}'


def heat_map(runs: Sequence[ReportedRun]) -> str:
    """Families by candidates: the share of cases that passed."""
    families = list(dict.fromkeys((run.task, name) for run in runs for name in run.families))
    by_family: dict[tuple[int, str], list[ReportedCase]] = defaultdict(list)
    for number, run in enumerate(runs):
        for case in run.cases:
            by_family[number, case.key.case_id].append(case)
    rows = []
    for task, name in families:
        cells = [escaped(name) if len({run.task for run in runs}) == 1 else escaped(f"{task} {name}")]
        for number, run in enumerate(runs):
            cells.append(_heat(by_family.get((number, name), ()) if run.task == task else ()))
        rows.append(cells)
    head = ["Family", *(f"{escaped(run.candidate)}<br><small>{escaped(run.title)}</small>" for run in runs)]
    caption = "Cases that passed, of those assessed; hatched where some could not be assessed"
    return f"<section><h2>Families by candidate</h2>{table(caption, head, rows, name='heat')}</section>"


def _heat(cases: Sequence[ReportedCase]) -> str:
    if not cases:
        return "<td></td>"
    passed, assessed = sum(case.status == PASSED for case in cases), sum(case.is_assessed for case in cases)
    if assessed < len(cases):
        return f'<td class="hx">{passed}/{assessed} <small>{len(cases) - assessed} lost</small></td>'
    return f'<td class="h{round(7 * passed / assessed)}">{passed}/{assessed}</td>'


def flakiness(runs: Sequence[ReportedRun]) -> str:
    """Cases that pass in one repeat and not in another, with the same seed."""
    rows = []
    for run in runs:
        repeats: dict[tuple[int, str], list[ReportedCase]] = defaultdict(list)
        for case in run.cases:
            repeats[case.key.seed, case.key.case_id].append(case)
        for (seed, name), cases in repeats.items():
            outcomes = {case.status == PASSED for case in cases if case.is_assessed}
            if len(outcomes) == 2:
                passed = sum(case.status == PASSED for case in cases)
                rows.append([escaped(run.title), escaped(name), str(seed), f"{passed}/{len(cases)}"])
    if not any(int(run.spec.get("repeats", 1)) > 1 for run in runs):
        said = "<p>Every case was run once for each seed; <code>spec.repeats</code> shows how steady it is.</p>"
    elif not rows:
        said = "<p>No case passed in one repeat and failed in another.</p>"
    else:
        said = table("Passed in some repeats only", ["Run", "Case", "Seed", "Passed"], rows[:_SHOWN], 2) + _rest(rows)
    retried = sum(case.attempts > 1 for run in runs for case in run.cases)
    said += f"<p>{retried} cases took more than one attempt: environment errors and interruptions are tried again.</p>"
    return f"<section><h2>Flakiness</h2>{said}</section>"


def durations(runs: Sequence[ReportedRun]) -> str:
    """How long candidates took."""
    rows = []
    for run in runs:
        taken = sorted(case.seconds for case in run.cases if case.seconds is not None)
        if not taken:
            continue
        last = taken[min(len(taken) - 1, round(0.95 * (len(taken) - 1)))]
        figures = (statistics.median(taken), last, taken[-1], sum(taken))
        rows.append([escaped(run.title), *(f"{figure:.2f} s" for figure in figures)])
    head = ["Run", "Median", "95th percentile", "Longest", "All cases"]
    caption = "From the candidate's start to its verdict, by the recorder's clock"
    return f"<section><h2>Durations</h2>{table(caption, head, rows, 4)}</section>"


def usage(runs: Sequence[ReportedRun]) -> str:
    """What the candidates' models used; nothing where no run has a model."""
    rows = []
    for run in runs:
        if not run.usage:
            continue
        found, passed = run.usage, sum(case.status == PASSED for case in run.cases)
        cost = found.get("cost")
        each = "" if cost is None or not passed else f"{float(cost) / passed:.6g}"
        rows.append([
            escaped(run.title), escaped(found.get("source", "")),
            *(f"{int(found.get(name, 0)):,}" for name in ("model_calls", "prompt_tokens", "completion_tokens")),
            escaped("no price" if cost is None else cost), each,
        ])  # fmt: skip
    if not rows:
        return ""
    head = ["Run", "Counted", "Calls", "Prompt tokens", "Completion tokens", "Cost", "Cost of a passed case"]
    caption = "As the relay counted it; costs are in the currency of the endpoint's price"
    return f"<section><h2>Models and costs</h2>{table(caption, head, rows, 5)}</section>"


def comparison(runs: Sequence[ReportedRun]) -> str:
    """Where two runs differ, case by case; nothing for another number of runs."""
    if len(runs) != 2:
        return ""
    one, two = runs
    unlike = [
        name for name in ("contract", "cases", "grader") if one.fingerprints.get(name) != two.fingerprints.get(name)
    ]
    if one.task.partition("@")[0] != two.task.partition("@")[0]:
        return "<section><h2>Comparison</h2><p>The runs are of different tasks and cannot be compared.</p></section>"
    warning = ""
    if unlike:
        names = escaped(", ".join(unlike))
        warning = f'<p class="odd">Their fingerprints differ ({names}): a difference may be the task\'s.</p>'
    before = {case.key: case for case in one.cases}
    both = [(before[case.key], case) for case in two.cases if case.key in before]
    both = [(a, b) for a, b in both if a.is_assessed and b.is_assessed]
    moved = [(a, b) for a, b in both if (a.status == PASSED) != (b.status == PASSED)]
    counts = Counter((a.status == PASSED, b.status == PASSED) for a, b in both)
    lines = [
        ["Both passed", str(counts[True, True])],
        ["Only the first passed", str(counts[True, False])],
        ["Only the second passed", str(counts[False, True])],
        ["Neither passed", str(counts[False, False])],
        ["Cases of one run alone, or not assessed", str(len({*before, *(c.key for c in two.cases)}) - len(both))],
    ]
    said = table(f"{one.title} against {two.title}, by seed, case and repeat", ["Outcome", "Cases"], lines, 1)
    if moved:
        head = ["Case", "Seed", "Repeat", "First", "Second"]
        rows = [[escaped(a.key.case_id), str(a.key.seed), str(a.key.repeat), escaped(a.status), escaped(b.status)]
                for a, b in sorted(moved, key=_by_key)]  # fmt: skip
        said += table("Cases that came to something else", head, rows[:_SHOWN]) + _rest(rows)
    return f"<section><h2>Comparison</h2>{warning}{_difference(one, two)}{said}</section>"


def _by_key(pair: tuple[ReportedCase, ReportedCase]) -> CaseKey:
    return pair[0].key


def _difference(one: ReportedRun, two: ReportedRun) -> str:
    scores = one.score.get("score"), two.score.get("score")
    if None in scores:
        return "<p>One of the runs has no score.</p>"
    gain = float(str(scores[1])) - float(str(scores[0]))
    return f"<p>The second run's score is {escaped(scores[1])}, the first's {escaped(scores[0])}: {gain:+.4f}.</p>"


def _rest(rows: Sequence[object]) -> str:
    return f"<p>and {len(rows) - _SHOWN} more.</p>" if len(rows) > _SHOWN else ""


def case_list(runs: Sequence[ReportedRun], kept: int, left_out: int) -> str:
    """The tools over the list of cases; the page's script fills the list."""
    families = list(dict.fromkeys(name for run in runs for name in run.families))
    options = {
        "run": [("", "all"), *((str(number), run.title) for number, run in enumerate(runs))],
        "status": [("*", "not passed"), ("", "all"), *((status, status) for status in ORDER)],
        "family": [("", "all"), *((name, name) for name in families)],
    }
    tools = "".join(
        f'<label>{name.capitalize()}<select id="pick-{name}">'
        + "".join(f'<option value="{escaped(value)}">{escaped(text)}</option>' for value, text in found)
        + "</select></label>"
        for name, found in options.items()
    )
    room = f" {left_out} had no room: raise --max-mib, or see casewarden show." if left_out else ""
    return f"""<section id="list"><h2>Cases</h2>
<p>{kept} transcripts are in this report.{room}</p>
<noscript><p>The list of cases needs this page's own script.</p></noscript>
<div class="tools">{tools}<label>Text or seed<input id="pick-text" type="search"></label></div>
<p id="count" role="status" aria-live="polite"></p>
<div id="cases"></div>
<button id="more" type="button" hidden>Show 100 more</button>
</section>"""
