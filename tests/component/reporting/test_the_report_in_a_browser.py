"""The report in a real Chromium: silent, self-contained, usable by keyboard, in both themes, and quick at any size."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.audit_evidence import AuditFolder
from support.browser import Page, browsing
from support.reports import HOSTILE, case, many, rows, run

from casewarden.reporting.audits import reported_audit
from casewarden.reporting.html import to_html

# Chromium may have to be installed first.
pytestmark = pytest.mark.timeout(900)

INTERACTIVE_MS = 3000


@pytest.fixture
async def page(tmp_path: Path) -> AsyncIterator[Page]:
    async with browsing(tmp_path) as found:
        yield found


def written(folder: Path, cases: list, *texts: str, **rest: object) -> Path:  # type: ignore[type-arg]
    file = folder / "report.html"
    made = [run(cases, **rest), run([case("a"), case("b")], name="two")]
    found = AuditFolder()
    audit = reported_audit(found.document(), found.plan, found.digest)
    page = to_html(made, lambda *_: rows(*texts), limit=16 << 20, audits=[audit])
    file.write_text(page, encoding="utf-8")
    return file


async def test_hostile_text_is_shown_and_nothing_else_happens(page: Page, tmp_path: Path) -> None:
    cases = [case(f"c{number}", "failed", error=text, reason=text) for number, text in enumerate(HOSTILE)]
    file = written(tmp_path, cases, *HOSTILE, candidate=HOSTILE[1])
    await page.open(file)
    await page.evaluate("document.querySelectorAll('details.case').forEach((node) => { node.open = true; })")
    await page.evaluate("new Promise((done) => setTimeout(done, 500))")
    shown = await page.evaluate(
        "[...document.querySelectorAll('.turns .out pre')].slice(0, 4).map((n) => n.textContent)"
    )
    assert shown == list(HOSTILE)
    assert await page.evaluate("window.pwned === undefined") is True
    assert await page.evaluate("document.querySelectorAll('main img, iframe, main svg:not(.bar)').length") == 0
    assert page.troubles() == []
    assert page.requests() == [file.as_uri(), "data:,"] or page.requests() == [file.as_uri()]


async def test_what_is_not_the_pages_own_cannot_run(page: Page, tmp_path: Path) -> None:
    await page.open(written(tmp_path, [case("a", "failed")]))
    await page.evaluate("""(() => {
        const script = document.createElement('script');
        script.textContent = 'window.pwned = 1';
        document.body.append(script);
    })()""")
    assert await page.evaluate("window.pwned === undefined") is True
    assert any("Content Security Policy" in str(event) for event in page.troubles())


async def test_a_transcript_is_reached_and_read_by_keyboard_alone(page: Page, tmp_path: Path) -> None:
    await page.open(written(tmp_path, [case("first", "failed", error="expected 3")], "I give up"))
    for _ in range(12):
        await page.press("Tab", 9)
        if await page.evaluate("document.activeElement.tagName") == "SUMMARY":
            break
    assert await page.evaluate("document.activeElement.textContent") == "failed first, seed 17, evals/one"
    await page.press("Enter", 13, "\r")
    assert await page.evaluate("document.querySelector('details.case').open") is True
    text = await page.appearing("details.case > div")
    assert "expected 3" in text
    assert "basic FAIL" in text
    assert "I give up" in text


async def test_both_themes_can_be_read(page: Page, tmp_path: Path) -> None:
    used = {"model_calls": 3, "prompt_tokens": 20, "completion_tokens": 10, "source": "reported", "cost": "0.5"}
    await page.open(written(tmp_path, many(60), "hello", usage=used))
    contrast = """(() => {
        const light = (text) => text.match(/[0-9.]+/g).slice(0, 3).map(Number).map((v) => v / 255)
            .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
            .reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0);
        const back = (node) => { for (; node; node = node.parentElement) {
            const found = getComputedStyle(node).backgroundColor;
            if (found !== 'rgba(0, 0, 0, 0)') return found;
        } return 'rgb(255, 255, 255)'; };
        let worst = 99, where = '';
        const all = 'h1, h2, h3, p, td, th, dt, dd, summary, strong, small, label, select, button';
        for (const node of document.querySelectorAll(all)) {
            if (!node.textContent.trim() || node.hidden) continue;
            const [a, b] = [light(getComputedStyle(node).color), light(back(node))].sort((x, y) => y - x);
            const ratio = (a + 0.05) / (b + 0.05);
            if (ratio < worst) { worst = ratio; where = node.tagName + ' ' + node.textContent.slice(0, 40); }
        }
        return [worst, where];
    })()"""
    seen = set()
    for name in ("light", "dark"):
        await page.theme(name)
        seen.add(await page.evaluate("getComputedStyle(document.body).backgroundColor"))
        worst, where = await page.evaluate(contrast)
        assert worst >= 4.5, f"{name}: {where} has a contrast of {worst:.2f}"
    assert len(seen) == 2


async def test_every_field_has_a_name_and_every_table_its_heads(page: Page, tmp_path: Path) -> None:
    await page.open(written(tmp_path, many(60), "hello"))
    nameless = await page.evaluate(
        "[...document.querySelectorAll('select, input')].filter((n) => !n.labels.length).length"
    )
    assert nameless == 0
    assert await page.evaluate("document.documentElement.lang") == "en"
    headless = (
        "[...document.querySelectorAll('table')].filter((t) => !t.caption || !t.querySelector('th[scope=col]')).length"
    )
    assert await page.evaluate(headless) == 0


async def test_ten_thousand_cases_are_there_within_seconds_and_can_be_searched(page: Page, tmp_path: Path) -> None:
    file = written(tmp_path, many(10_000), "hello " * 20)
    taken = []
    for _ in range(3):
        await page.open(file)
        taken.append(await page.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd"))
    assert min(taken) < INTERACTIVE_MS, taken
    assert "1000 of 10002 cases" in await page.evaluate("document.querySelector('#count').textContent")
    search = """(() => {
        const began = performance.now(), node = document.querySelector('#pick-status');
        node.value = ''; node.dispatchEvent(new Event('input'));
        const text = document.querySelector('#pick-text');
        text.value = '499'; text.dispatchEvent(new Event('input'));
        return [performance.now() - began, document.querySelectorAll('details.case').length];
    })()"""
    spent, shown = await page.evaluate(search)
    assert spent < 1000
    assert shown == 20
    assert page.troubles() == []
