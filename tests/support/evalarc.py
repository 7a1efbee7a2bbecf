"""The peer's own programs as candidates, and what the peer itself makes of them.

``programs`` gives the reference and every fault of a task as files from the installed package, each with the score and
the failing cases that evalarc's local evaluation gives here and now, at seed 17. It takes seconds, so it is done once
per process; ``write`` lays one out as a candidate's folder, byte for byte as evalarc would.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from evalarc.audit import CONTROL_PACKS, audit, mutate
from evalarc.runner import Runtime
from evalarc.templates import CandidateTemplate, candidate_template

__all__ = ["DO_NOTHING", "SEED", "TASKS", "Program", "names", "programs", "write"]

SEED = 17
TASKS = ("durable-kv", "support-routing")

# A support policy that finishes at once and one that breaks at once; on durable-kv they are no better.
DO_NOTHING = """\
import json, sys
for line in sys.stdin:
    print(json.dumps({"finish": True}), flush=True)
"""


@dataclass(frozen=True)
class Program:
    """One of evalarc's programs; ``failing`` are the cases that evalarc fails in ``target``, sorted."""

    task: str
    name: str
    files: Mapping[str, str]
    target: str | None
    score: Decimal
    failing: tuple[str, ...]


def names(task: str) -> list[str]:
    """Return the names of a task's programs, the reference first, without running anything."""
    return ["reference", *CONTROL_PACKS[task]]


@functools.cache
def programs(task: str) -> Mapping[str, Program]:
    """Return a task's programs by name, judged by evalarc at ``SEED``; ``AssertionError`` where its own audit fails."""
    report = audit(Runtime(backend="local"), [SEED], task)
    assert report["passed"], f"evalarc's own audit of {task} fails here; its scores are nothing to compare with"
    template = candidate_template(task, reference=True)
    found = {"reference": Program(task, "reference", _files(template), None, _score(report["reference"]), ())}
    for row in report["mutants"]:
        old, new, target = CONTROL_PACKS[task][row["name"]]
        files = _files(template, mutate(template.source, old, new))
        found[row["name"]] = Program(task, row["name"], files, target, _score(row), tuple(row["failing_cases"]))
    return found


def write(program: Program, folder: Path) -> Path:
    """Write a program's files into ``folder``, which must not exist, and return it."""
    folder.mkdir(parents=True)
    for name, text in program.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def _score(report: Mapping[str, Any]) -> Decimal:
    """Return evalarc's score, a float rounded to 8 places, as the decimal that it stands for."""
    return Decimal(str(report["score"]))


def _files(template: CandidateTemplate, source: str | None = None) -> Mapping[str, str]:
    with tempfile.TemporaryDirectory() as scratch:
        template.write(Path(scratch), source=source)
        return {path.name: path.read_text(encoding="utf-8") for path in sorted(Path(scratch).iterdir())}
