"""The peer's own programs as candidates, and what the peer itself makes of them.

``programs`` gives the reference and every fault of a task as files from the installed package, each with the score and
the failing cases that evalarc's local evaluation gives here and now, at seed 17. It takes seconds, so it is done once
per process; ``write`` lays one out as a candidate's folder, byte for byte as evalarc would.
"""

from __future__ import annotations

import dataclasses
import functools
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from evalarc.audit import CONTROL_PACKS, audit, mutate
from evalarc.runner import Runtime
from evalarc.tasks import get_task
from evalarc.templates import CandidateTemplate, candidate_template

__all__ = ["DO_NOTHING", "SEED", "TASKS", "Program", "cases", "names", "programs", "write"]

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
    """One of evalarc's programs, and evalarc's verdict on it.

    ``failing`` are the cases that evalarc fails in ``target``, sorted; ``digest`` is evalarc's of the folder.
    """

    task: str
    name: str
    files: Mapping[str, str]
    target: str | None
    score: Decimal
    failing: tuple[str, ...]
    digest: str


def names(task: str) -> list[str]:
    """Return the names of a task's programs, the reference first, without running anything."""
    return ["reference", *CONTROL_PACKS[task]]


def cases(task: str, seeds: Sequence[int]) -> list[dict[str, Any]]:
    """Return evalarc's cases as its ``cases_sha256`` takes them: each with its seed, in order."""
    generate = get_task(task).generate_cases
    return [{"seed": seed, **dataclasses.asdict(case)} for seed in seeds for case in generate(seed)]


@functools.cache
def programs(task: str) -> Mapping[str, Program]:
    """Return a task's programs by name, judged by evalarc at ``SEED``; ``AssertionError`` where its own audit fails."""
    report = audit(Runtime(backend="local"), [SEED], task)
    assert report["passed"], f"evalarc's own audit of {task} fails here; its scores are nothing to compare with"
    template = candidate_template(task, reference=True)
    found = {"reference": _program(task, "reference", template.source, None, report["reference"], ())}
    for row in report["mutants"]:
        old, new, target = CONTROL_PACKS[task][row["name"]]
        source = mutate(template.source, old, new)
        found[row["name"]] = _program(task, row["name"], source, target, row, tuple(row["failing_cases"]))
    return found


def write(program: Program, folder: Path) -> Path:
    """Write a program's files into ``folder``, which must not exist, and return it."""
    folder.mkdir(parents=True)
    for name, text in program.files.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def _program(
    task: str, name: str, source: str, target: str | None, judged: Mapping[str, Any], failing: tuple[str, ...]
) -> Program:
    files = _files(candidate_template(task, reference=True), source)
    # A float rounded to 8 places, as the decimal that it stands for.
    return Program(task, name, files, target, Decimal(str(judged["score"])), failing, judged["candidate_sha256"])


def _files(template: CandidateTemplate, source: str) -> Mapping[str, str]:
    with tempfile.TemporaryDirectory() as scratch:
        template.write(Path(scratch), source=source)
        return {path.name: path.read_text(encoding="utf-8") for path in sorted(Path(scratch).iterdir())}
