"""The controls: programs whose verdict is known, made from the gold data of the set that is played.

Each fault is the reference with one passage replaced, so that it differs from right in one way. ``target`` is the
dimension that must catch it; ``collateral`` are the others that it breaks too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from casewarden_sdk.contract import Control
from casewarden_sdk.planted import Fault, planted

from .play import opening
from .rows import Row

__all__ = ["FAULTS", "controls"]

_PROGRAMS: Final = Path(__file__).parent / "controls"
_ANSWER: Final = 'yield answer(gold["answers"])'
_OPERATION: Final = 'yield operation(gold["statement"])'

FAULTS: Final = (
    Fault("off-by-one", "select", _ANSWER, f"""\
answers = gold["answers"]
        try:
            answers = [str(float(text) + 1) for text in answers]
        except ValueError:
            pass
        {_ANSWER.replace('gold["answers"]', "answers")}"""),
    Fault("wrong-format", "select", "Final Answer: %s\" % answers", "Final Answer: %s\" % ', '.join(answers)"),
    Fault(
        "one-answer-too-many",
        "select",
        _ANSWER,
        _ANSWER.replace('gold["answers"]', 'gold["answers"] + ["another"]'),
    ),
    Fault("one-row-too-many", "insert", _OPERATION, f"{_OPERATION}\n        {_OPERATION}"),
    Fault("claims-without-doing", "update", _OPERATION, "pass", ("insert",)),
    Fault(
        "changes-every-row",
        "update",
        _OPERATION,
        _OPERATION.replace('gold["statement"]', 'gold["statement"].partition(" WHERE ")[0]'),
    ),
    Fault("drops-the-database", "insert", _OPERATION, """\
name = gold["table"].replace("`", "``")
        yield operation("DROP TABLE `%s`" % name)
        yield operation("DROP DATABASE `%s`" % name)""", ("update",)),
    Fault("kills-the-server", "update", _OPERATION, """\
yield operation("SHUTDOWN")
        yield operation("KILL CONNECTION_ID()")""", ("insert",)),
)  # fmt: skip


def controls(rows: Iterable[Row]) -> tuple[Control, ...]:
    """Return reference, null agent, crashing agent and every fault, for these rows."""
    reference = _program("reference").replace("@GOLD@", _gold(rows))
    return planted(reference, _PROGRAMS, FAULTS)


def _program(name: str) -> str:
    return (_PROGRAMS / name / "main.py").read_text(encoding="utf-8")


def _gold(rows: Iterable[Row]) -> str:
    """Return what is right by the text of the task, as JSON that stands in a raw text of Python's."""
    gold: dict[str, dict[str, Any]] = {}
    for row in rows:
        task = opening(row)[-1]["content"]
        right = {"statement": row.label[0], "table": row.table.name} if row.changes else {"answers": list(row.label)}
        gold.setdefault(task, right)
    # Within JSON's texts a quotation mark may be written so; nothing then ends the raw text before its time.
    return json.dumps(gold, separators=(",", ":")).replace('\\"', "\\u0022")
