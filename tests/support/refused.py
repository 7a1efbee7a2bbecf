"""Manifests that must be refused, each with who refuses it and what the refusal must say (`tests/cluster/refused`).

The comment at the head of a file says `where` it is refused (`api`: by the API server; `accepted`, `plan`: by the
operator, in the condition Accepted or Planned), the `field` and, where it has one, the `value` that must be named, and
the cure: a part of the `cluster`'s message and of the `offline` one (`=`: the same).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).resolve().parents[1] / "cluster" / "refused"


@dataclass(frozen=True)
class Refused:
    """One such manifest."""

    name: str
    text: str
    where: str
    field: str
    cluster: str
    offline: str
    value: str = ""

    @property
    def document(self) -> dict[str, Any]:
        """The manifest, parsed."""
        return yaml.safe_load(self.text)  # type: ignore[no-any-return]


def _read(path: Path) -> Refused:
    text = path.read_text()
    head = dict(line[2:].split(": ", 1) for line in text.splitlines() if line.startswith("# "))
    if head["offline"] == "=":
        head["offline"] = head["cluster"]
    return Refused(path.stem, text, **head)


REFUSED = [_read(path) for path in sorted(FOLDER.glob("*.yaml"))]


def refused_by(*where: str) -> list[Refused]:
    """Return the manifests that are refused there."""
    return [item for item in REFUSED if item.where in where]
