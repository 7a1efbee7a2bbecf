"""The pages of settings and metrics say what the code says, and are found stale where they do not."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from casewarden.adapters.metrics import DEFINITIONS
from casewarden.reference import main, render
from casewarden.settings import Settings

ROOT = Path(__file__).resolve().parents[2]


def test_the_pages_are_those_of_the_code() -> None:
    assert main(["--check", "--root", str(ROOT)]) == 0


def test_a_stale_page_is_told_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "docs/reference").mkdir(parents=True)
    assert main(["--root", str(tmp_path)]) == 0
    page = tmp_path / "docs/reference/settings.md"
    page.write_text("old")
    assert main(["--check", "--root", str(tmp_path)]) == 1
    assert page.read_text() == "old"


def test_every_setting_and_every_metric_has_its_line() -> None:
    settings, metrics = render()["docs/reference/settings.md"], render()["docs/reference/metrics.md"]
    assert [item.name for item in fields(Settings) if f"CASEWARDEN_{item.name.upper()}`" not in settings] == []
    assert [name for name in DEFINITIONS if f"`{name}`" not in metrics] == []
