"""The report needs nothing else, runs nothing else, and says what is in it and what is not."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.reports import HOSTILE, case, many, rows, run

from casewarden.reporting.audits import ReportedAudit
from casewarden.reporting.html import LINE_CHARACTERS, to_html
from casewarden.reporting.run import ReportedRun


class Tags(HTMLParser):
    """Collects every element and its attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def page(*runs: ReportedRun, text: str = "hello", **rest: Any) -> str:
    return to_html(runs, lambda *_: rows(text), **{"limit": 1 << 20, **rest})


def data(text: str) -> dict[str, Any]:
    (found,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    return json.loads(found)  # type: ignore[no-any-return]


def test_nothing_is_fetched_and_only_the_pages_own_script_runs() -> None:
    text = page(run([case("a", "failed")]))
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    (style,), (script,) = (
        re.findall(r"<style>(.*?)</style>", text, re.S),
        re.findall(r"<script>(.*?)</script>", text, re.S),
    )

    def digest(part: str) -> str:
        return base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()

    assert f"script-src 'sha256-{digest(script)}'" in policy
    assert f"style-src 'sha256-{digest(style)}'" in policy
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert not re.search(r"https?://|@import|url\(", text)
    for _, attributes in Tags(text).found:
        assert not any(name.startswith("on") or name == "style" for name in attributes)


@settings(max_examples=30, deadline=None)
@given(st.sampled_from(HOSTILE) | st.text(max_size=60))
def test_what_a_candidate_or_user_wrote_never_becomes_markup(text: str) -> None:
    def made(text: str) -> str:
        cases = [case("a", "failed", error=text, reason=text)]
        found = run(cases, candidate=text, name=text, task=f"{text}@1", floor={"nullAgent": "0"})
        return page(found, run(cases, name=text, task=f"{text}@1"), text=text)

    def tags(text: str) -> list[tuple[str, list[str]]]:
        return [(tag, sorted(attributes)) for tag, attributes in Tags(text).found]

    assert tags(made(text)) == tags(made("harmless"))
    assert data(made(text))["transcripts"][0][1][3] == text


def an_audit(text: str) -> ReportedAudit:
    control = {"name": text, "kind": "fault", "valid": True, "score": "0.5", "target": text, "killed": False,
               "margin": 0, "detected_by": [text] * 9, "collateral": [text], "problem": text}  # fmt: skip
    judgement = {"valid": True, "passed": False, "problems": [text], "mutation_score": "0", "killed": 0, "faults": 1,
                 "weakest_margin": 0, "reference_score": "1", "reference_flakes": 0, "floors": {text: "0"},
                 "controls": [control, {**control, "valid": False}, {**control, "killed": None}]}  # fmt: skip
    return ReportedAudit(text, "evals", "uid", text, (17,), judgement, text)


@pytest.mark.parametrize("text", HOSTILE)
def test_what_an_audit_says_never_becomes_markup_either(text: str) -> None:
    def tags(text: str) -> list[tuple[str, list[str]]]:
        return [(tag, sorted(attributes)) for tag, attributes in Tags(page(audits=[an_audit(text)])).found]

    assert tags(text) == tags("harmless")


def test_an_audit_that_is_not_valid_shows_no_figures() -> None:
    audit = an_audit("x")
    judgement = {**audit.judgement, "valid": False, "passed": None, "mutation_score": None}
    text = page(audits=[replace(audit, judgement=judgement)])
    assert "not valid" in text
    assert "mutation score" not in text


def test_a_models_calls_are_shown_as_a_talk() -> None:
    body = json.dumps({"choices": [{"message": {"role": "assistant", "content": "I look."}}]})
    said = [{"t": 1.0, "session": 1, "dir": "model-out", "text": body}]
    text = to_html([run([case("a", "failed")])], lambda *_: said, limit=1 << 20)
    assert data(text)["transcripts"][0][0][2:] == ["model-out", "assistant: I look."]


def test_costs_are_shown_for_runs_with_a_model_alone() -> None:
    used = {"model_calls": 12, "prompt_tokens": 34567, "completion_tokens": 89, "source": "reported", "cost": "0.5"}
    text = page(run([case("a"), case("b")], usage=used), run([case("a")], name="two"))
    assert "Models and costs" in text
    assert "34,567" in text
    assert "<td class=n>0.25</td>" in text
    assert "Models and costs" not in page(run([case("a")]))


def test_failing_cases_come_first_and_what_has_no_room_is_counted() -> None:
    cases = [case("ok"), case("bad", "failed"), case("crash", "agent_error"), case("lost", "environment_error")]
    text = page(run(cases), passed=True)
    assert [item[4] for item in data(text)["cases"]] == ["environment_error", "agent_error", "failed", "passed"]
    assert len(data(text)["transcripts"]) == 4
    small = page(run(cases), passed=True, limit=150)
    assert len(data(small)["transcripts"]) == 2
    assert "2 transcripts are in this report. 2 had no room" in small
    assert data(page(run(cases)))["cases"][3][10] is None


def test_a_long_line_loses_its_middle() -> None:
    text = data(page(run([case("a", "failed")]), text="x" * 100_000))["transcripts"][0][1][3]
    assert len(text) < LINE_CHARACTERS + 100
    assert "92000 characters are left out" in text


def test_an_invalid_run_has_no_score_and_says_why() -> None:
    text = page(run([case("a"), case("b", "environment_error", reason="Evicted")]))
    assert "no score" in text
    assert "1 of 2 cases could not be assessed" in text
    assert 'class="hx"' in text


def test_a_score_is_drawn_against_floor_interval_reference_and_threshold() -> None:
    found = run(
        [case("a")], floor={"nullAgent": "0.1", "reference": "1"}, interval={"low": "0.7", "high": "1", "method": "m"}
    )
    text = page(found)
    assert 'aria-label="score 1, interval 0.7 to 1, null agent 0.1, reference 1, threshold 0.8, of 1"' in text


def test_two_runs_are_compared_case_by_case() -> None:
    one = run([case("a"), case("b", "failed"), case("c"), case("d", "environment_error")])
    two = run([case("a"), case("b"), case("c", "failed"), case("d")], name="two", fingerprints={"cases": "other"})
    text = page(one, two)
    assert "Their fingerprints differ (contract, cases, grader)" in text
    table = text[text.index("Only the first passed") : text.index("Cases that came to something else")]
    assert re.findall(r">(\d+)</td>", table) == ["1", "1", "0", "1"]
    assert "of different tasks" in page(one, run([case("a")], task="other@1"))


def test_repeats_that_disagree_are_flaky() -> None:
    cases = [case("a", key=case("a").key.__class__(17, "a", repeat), status=status)
             for repeat, status in enumerate(("passed", "failed", "passed"))]  # fmt: skip
    text = page(run(cases, spec={"repeats": 3}))
    assert "Passed in some repeats only" in text
    assert ">2/3</td>" in text


def test_ten_thousand_cases_stay_a_small_page() -> None:
    text = page(run(many(10_000)))
    assert len(data(text)["cases"]) == 10_000
    assert len(data(text)["transcripts"]) == 1_000
    assert len(text) < 2_000_000
