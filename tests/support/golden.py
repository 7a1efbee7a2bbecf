"""Golden files: what is built is compared with what was looked at and kept. ``REGENERATE=1`` writes them anew."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import yaml


def check_golden(path: Path, value: Any) -> None:
    text = yaml.safe_dump(value, sort_keys=False, width=120)
    if os.environ.get("REGENERATE"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert path.exists(), f"{path.name} is missing; write it with REGENERATE=1 and look at it"
    assert path.read_text() == text, (
        f"{path.name} has changed; write it anew with REGENERATE=1 and look at the difference"
    )
