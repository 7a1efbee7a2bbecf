"""The programs that prove the grader: the reference knows what each action was; each fault gets a part of it wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from casewarden_sdk.contract import Control

from .own import own_tasks
from .page import Page
from .records import Sample, samples_of

__all__ = ["answering", "controls"]

_PROGRAMS: Final = Path(__file__).parent / "controls"
_Plan = dict[str, Any]


def controls() -> tuple[Control, ...]:
    """Return reference, null agent, crashing agent and every fault."""
    return (
        Control("reference", "reference", {"main.py": answering(_own())}),
        Control("null-agent", "null", {"main.py": _program("null-agent")}),
        Control("crashing-agent", "crash", {"main.py": _program("crashing-agent")}),
        _fault("takes-something-else", "element", lambda plan: {**plan, "wrong": True}),
        _fault("always-none-of-the-above", "element", _none, ("operation", "value"), protocol=True),
        _fault("answers-in-prose", "element", lambda plan: {**plan, "form": "I take {}."}, ("operation", "value"),
               protocol=True),
        _fault("clicks-everything", "operation", lambda plan: {**plan, "op": "CLICK", "value": ""}, ("value",)),
        _fault("types-where-it-should-click", "operation", _types),
        _fault("forgets-the-value", "value", lambda plan: {**plan, "value": ""}),
        _fault("cuts-the-value-short", "value", lambda plan: {**plan, "value": plan["value"][:-1]}),
    )  # fmt: skip


def answering(samples: Iterable[Sample], change: Callable[[_Plan], _Plan] = lambda plan: plan) -> str:
    """Return a program that knows what each of these actions was; ``change`` is what it gets wrong."""
    plans = {f"{sample.task}\n{len(sample.previous)}": change(_plan(sample)) for sample in samples}
    return _program("reference").replace("PLANS = {}", f"PLANS = {plans!r}")


def _plan(sample: Sample) -> _Plan:
    page = Page(sample.html)
    return {
        "choices": [page.choice(node, 0) for node in sample.positives],
        "op": sample.operation.op,
        "value": sample.operation.value,
        "form": "Thought: this one.\nAnswer: {}",
        "wrong": False,
    }


def _none(plan: _Plan) -> _Plan:
    return {**plan, "choices": []}


def _types(plan: _Plan) -> _Plan:
    return {**plan, "op": "TYPE"} if plan["op"] != "TYPE" else plan


def _own() -> list[Sample]:
    return [sample for task in own_tasks() for sample in samples_of(task, None) if isinstance(sample, Sample)]


def _fault(
    name: str,
    target: str,
    change: Callable[[_Plan], _Plan],
    collateral: tuple[str, ...] = (),
    *,
    protocol: bool = False,
) -> Control:
    return Control(name, "fault", {"main.py": answering(_own(), change)}, target, collateral, protocol)


def _program(name: str) -> str:
    return (_PROGRAMS / name / "main.py").read_text(encoding="utf-8")
