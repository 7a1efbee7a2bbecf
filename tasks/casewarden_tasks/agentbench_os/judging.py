"""Whether a sample is passed, by what was written down of its end. Pure, and whatever a record says it raises nothing.

``facts`` of a record: ``answer`` (a text, null where the agent finished without one), ``steps`` (of a pipeline of
checks, what each came to: ``where``, ``code``, ``output``), ``changed`` (the sandbox's own programs that are no longer
what they were). A comparison of an answer with a reference is made again here and not believed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from .checks import PROGRAMS, matches

__all__ = ["compare", "finding"]

_SHOWN: Final = 100


def compare(program: str, params: Sequence[str]) -> bool:
    """Run one of AgentBench's comparisons: of the answer, ``params[0]``, with what the first step said."""
    return PROGRAMS[program](params[0], params[1])


def finding(sample: Mapping[str, Any], facts: Mapping[str, Any]) -> str:
    """Return why the sample is not passed, in a sentence, or the empty text where it is."""
    if facts.get("committed") is not True:
        return "the agent neither answered nor finished"
    answer = facts.get("answer")
    answer = answer if isinstance(answer, str) else None
    if "match" in sample:
        rule = sample["match"]
        wanted = rule.get("answer", rule.get("regex"))
        return "" if matches(rule, answer) else f"the answer is {_told(answer)}, not {_told(wanted)}"
    return _pipeline(sample["steps"], facts, str(answer))


def _pipeline(steps: Sequence[Mapping[str, Any]], facts: Mapping[str, Any], answer: str) -> str:
    found = facts.get("steps")
    rows = [row for row in found if isinstance(row, dict)] if isinstance(found, list) else []
    params = [answer]
    for number, step in enumerate(steps):
        if number >= len(rows):
            return f"check {number} was not made"
        row, output = rows[number], rows[number].get("output")
        text = output if isinstance(output, str) else ""
        if step["where"] == "grader":
            if not compare(step["program"], params):
                return f"the answer is {_told(answer)}; the reference is {_told(params[1].strip())} ({step['program']})"
        elif row.get("code") != 0 or isinstance(row.get("code"), bool):
            what = "the reference command" if step["where"] == "twin" else f"check {number}"
            return f"{what} ended with {_told(row.get('code'))}: {_told(text.strip())}"
        elif step["where"] == "sandbox" and facts.get("changed"):
            return f"the checks prove nothing: programs of the sandbox were replaced: {_told(facts['changed'])}"
        params.append(text)
    return ""


def _told(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
