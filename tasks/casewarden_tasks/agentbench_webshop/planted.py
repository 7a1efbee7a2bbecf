"""The programs that prove the grader: the reference knows what to buy, and each fault buys it wrongly in one way."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from casewarden_sdk.contract import Control

from .goals import Goal
from .own import own_goals
from .reward import nouns

__all__ = ["controls"]

_PROGRAMS: Final = Path(__file__).parent / "controls"
_ALL: Final = ("attributes", "options", "price")
_Plan = dict[str, Any]


def controls() -> tuple[Control, ...]:
    """Return reference, null agent, crashing agent and every fault."""
    return (
        Control("reference", "reference", {"main.py": _shopper(_right)}),
        Control("null-agent", "null", {"main.py": _program("null-agent")}),
        Control("crashing-agent", "crash", {"main.py": _program("crashing-agent")}),
        _fault("buys-something-else", "kind", _something_else, ("attributes", "options", "price")),
        _fault("looks-and-leaves", "kind", _leaves, _ALL),
        _fault("forgets-the-form", "kind", _formless, _ALL, protocol=True),
        _fault("takes-the-plain-one", "attributes", lambda goal: _look_alike(goal, 0)),
        _fault("forgets-the-options", "options", lambda goal: {**_right(goal), "options": []}),
        _fault("takes-what-lacks-the-option", "options", lambda goal: _look_alike(goal, 2)),
        _fault("forgets-the-last-option", "options", lambda goal: {**_right(goal), "options": list(goal.options[:-1])}),
        _fault("overpays", "price", lambda goal: _look_alike(goal, 1)),
    )


def _fault(
    name: str, target: str, plan: Callable[[Goal], _Plan], collateral: tuple[str, ...] = (), *, protocol: bool = False
) -> Control:
    return Control(name, "fault", {"main.py": _shopper(plan)}, target, collateral, protocol)


def _right(goal: Goal) -> _Plan:
    return {"search": goal.title, "asin": goal.asin.lower(), "options": list(goal.options), "form": "Action:\n{}"}


def _look_alike(goal: Goal, number: int) -> _Plan:
    """The look-alikes of a goal's product have numbers that follow from its own (``own``)."""
    kind, place = goal.asin[:4], int(goal.asin[4:])
    return {**_right(goal), "asin": f"{kind}{100 + place * 10 + number:06d}".lower()}


def _something_else(goal: Goal) -> _Plan:
    other = next(one for one in own_goals() if not nouns(one.title) & nouns(goal.title) and _top(one) != _top(goal))
    return {**_right(goal), "search": other.title, "asin": other.asin.lower(), "options": []}


def _top(goal: Goal) -> str:
    return goal.category.split(" › ")[0]


def _leaves(goal: Goal) -> _Plan:
    return {**_right(goal), "asin": "nothing of this name", "options": []}


def _formless(goal: Goal) -> _Plan:
    return {**_right(goal), "form": "I would do this: {}"}


def _shopper(plan: Callable[[Goal], _Plan]) -> str:
    plans: Mapping[str, _Plan] = {goal.instruction: plan(goal) for goal in own_goals()}
    return _program("reference").replace("PLANS = {}", f"PLANS = {json.dumps(plans)}")


def _program(name: str) -> str:
    return (_PROGRAMS / name / "main.py").read_text(encoding="utf-8")
