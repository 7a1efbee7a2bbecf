"""The programs that prove the grader: the reference makes the gold calls, and each fault goes wrong in one way."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from casewarden_sdk.contract import Control

from .own import own_questions
from .questions import Question

__all__ = ["answering", "controls", "replies_to"]

_PROGRAMS: Final = Path(__file__).parent / "controls"
_BOTH: Final = ("complete", "precise")
# An attribute of what a question asks for, by the relation that leads to it.
_NARROWING: Final = {
    "art.painter.paintings": "art.painting.year",
    "art.subject.paintings": "art.painting.year",
    "art.museum.paintings": "art.painting.year",
    "art.style.painters": "art.painter.year_of_birth",
    "geo.city.painters_born": "art.painter.year_of_birth",
    "art.painting.painter": "art.painter.year_of_birth",
    "art.painter.born_in": "geo.city.population",
}


def controls() -> tuple[Control, ...]:
    """Return reference, null agent, crashing agent and every fault."""
    return (
        Control("reference", "reference", {"main.py": _answering(replies_to)}),
        Control("null-agent", "null", {"main.py": _program("null-agent")}),
        Control("crashing-agent", "crash", {"main.py": _program("crashing-agent")}),
        _fault("names-no-variable", "executable", _names_none, _BOTH),
        _fault("calls-in-prose", "executable", _in_prose, _BOTH),
        _fault("never-answers", "executable", lambda question: replies_to(question)[:1], _BOTH),
        _fault("stops-one-step-early", "complete", _early, ("precise",)),
        _fault("counts-at-the-end", "complete", _counts, ("precise",)),
        _fault("narrows-once-more", "complete", _narrows),
        _fault("skips-the-last-narrowing", "precise", _wide),
    )


def replies_to(question: Question) -> list[str]:
    """Return what the reference says to a question: a reply per call, and the answer."""
    return _said(question, question.actions)


def answering(questions: Iterable[Question]) -> str:
    """Return a program that makes the gold calls of these questions."""
    return _with({question.text: replies_to(question) for question in questions})


def _answering(replies: Callable[[Question], Sequence[str]]) -> str:
    return _with({question.text: replies(question) for question in own_questions()})


def _with(plans: Mapping[str, Sequence[str]]) -> str:
    return _program("reference").replace("PLANS = {}", f"PLANS = {json.dumps(plans)}")


def _fault(
    name: str, target: str, replies: Callable[[Question], Sequence[str]], collateral: tuple[str, ...] = ()
) -> Control:
    return Control(name, "fault", {"main.py": _answering(replies)}, target, collateral)


def _said(question: Question, actions: Sequence[str]) -> list[str]:
    names = {id: name for name, id in question.entities.items()}
    calls = []
    for action in actions:
        for id, name in names.items():
            action = action.replace(f"({id})", f"({name})").replace(f"({id},", f"({name},")
        calls.append(f"Thought: the next step.\nAction: {action}")
    return [*calls, f"Thought: this is it.\nFinal Answer: #{_made(actions) - 1}"]


def _made(actions: Sequence[str]) -> int:
    """How many variables some calls make."""
    return sum(not action.startswith(("get_relations", "get_attributes")) for action in actions)


def _names_none(question: Question) -> list[str]:
    return [*replies_to(question)[:-1], "Final Answer: #60"]


def _in_prose(question: Question) -> list[str]:
    return [reply.replace("Action: ", "I call ").replace("Final Answer: ", "It is ") for reply in replies_to(question)]


def _early(question: Question) -> list[str]:
    actions = list(question.actions)
    while not _is_making(actions.pop()):
        continue
    while not _is_making(actions[-1]):
        actions.pop()
    return _said(question, actions)


def _counts(question: Question) -> list[str]:
    last = f"#{_made(question.actions) - 1}"
    if question.actions[-1].startswith("count"):
        return _said(question, question.actions[:-1])
    return _said(question, [*question.actions, f"count({last})"])


def _narrows(question: Question) -> list[str]:
    if len(question.answer) < 2:
        return replies_to(question)
    last, relation = f"#{_made(question.actions) - 1}", _relation(question.actions)
    narrower = [f"get_attributes({last})", f"argmax({last}, {_NARROWING[relation]})"]
    return _said(question, [*question.actions, *narrower])


def _wide(question: Question) -> list[str]:
    if not question.actions[-1].startswith(("intersection", "argm")):
        return replies_to(question)
    return _early(question)


def _relation(actions: Sequence[str]) -> str:
    last = next(action for action in reversed(actions) if action.startswith("get_neighbors"))
    return last.rpartition(",")[2].strip(" )")


def _is_making(action: str) -> bool:
    return _made([action]) == 1


def _program(name: str) -> str:
    return (_PROGRAMS / name / "main.py").read_text(encoding="utf-8")
