"""What a run's status means for whoever waits for it: a state, an exit code and a summary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from casewarden.cli.failure import GOOD, INVALID, NOT_GOOD
from casewarden.cli.printing import print_line, print_rows
from casewarden.cli.text import one_line
from casewarden.core.in_words import beside_the_score
from casewarden.core.usage import from_status, usage_in_words

__all__ = ["condition", "exit_code", "is_finished", "print_summary", "state_of", "verdict_line"]


def condition(status: Mapping[str, Any], type_: str) -> Mapping[str, Any]:
    """Return a condition, empty where the operator has not set it."""
    return next((item for item in status.get("conditions") or [] if item.get("type") == type_), {})


def is_finished(status: Mapping[str, Any]) -> bool:
    """Tell whether the run is over."""
    return condition(status, "Finished").get("status") == "True"


def exit_code(status: Mapping[str, Any]) -> int:
    """Return 0 for a finished run that passed, 1 for one that was assessed and did not, 2 for any other."""
    if not is_finished(status) or not status.get("valid"):
        return INVALID
    return GOOD if condition(status, "Passed").get("status") == "True" else NOT_GOOD


def state_of(status: Mapping[str, Any]) -> str:
    """Say in a few words where the run is."""
    finished = condition(status, "Finished")
    if not finished:
        return "waiting for the operator"
    reason, message = finished.get("reason", ""), finished.get("message", "")
    if is_finished(status):
        word = "complete" if condition(status, "Complete").get("status") == "True" else f"failed: {reason}"
        return f"{word}: {message}" if message and word.startswith("failed") else word
    plain = reason in ("Running", "Planning", "Suspended")
    return reason.lower() if plain else f"{reason}: {message}" if message else str(reason)


def verdict_line(status: Mapping[str, Any]) -> str:
    """Say what a finished run came to, in one line."""
    counts = status.get("cases") or {}
    said = [f"{counts.get('passed', 0)} of {counts.get('total', 0)} cases passed"]
    names = {"failed": "failed", "agentErrors": "agent errors", "environmentErrors": "environment errors"}
    said += [f"{counts[key]} {name}" for key, name in names.items() if counts.get(key)]
    attempts = status.get("attempts") or {}
    said += [
        f"{attempts[key]} {name}"
        for key, name in (("environmentRetries", "retries"), ("interruptions", "interruptions"))
        if attempts.get(key)
    ]
    if not status.get("valid"):
        return f"no score: {', '.join(said)}" if counts.get("total") else "no score"
    return f"score {status.get('score')}{', resolved' if status.get('resolved') else ''}: {', '.join(said)}"


def print_summary(name: str, status: Mapping[str, Any]) -> None:
    """Write a finished run for people: verdict, dimensions, failures, evidence."""
    task = (status.get("fingerprints") or {}).get("task")
    print_line(f"{name}{f' on {task}' if task else ''}: {state_of(status)}")
    if status.get("cases") or status.get("valid"):
        print_line(verdict_line(status))
    passed = condition(status, "Passed")
    if passed.get("status") in ("True", "False"):
        print_line(f"{'passed' if passed['status'] == 'True' else 'not passed'}: {passed.get('message', '')}")
    for name, said in beside_the_score(status):
        print_line(f"{name}: {one_line(said, 600)}")
    if status.get("dimensions"):
        print_line()
        rows = [{"name": key, **value} for key, value in status["dimensions"].items()]
        columns = {"name": "DIMENSION", "weight": "WEIGHT", "passed": "PASSED", "assessed": "ASSESSED"}
        print_rows({**columns, "total": "TOTAL", "score": "SCORE"}, rows)
    if status.get("failures"):
        print_line()
        print_rows(
            {key: key.upper() for key in ("case", "seed", "repeat", "status", "reason", "error")},
            [{**failure, "error": one_line(failure.get("error") or "", 90)} for failure in status["failures"]],
        )
    if status.get("usage"):
        print_line()
        print_line(usage_in_words(from_status(status["usage"])))
    evidence = status.get("evidence") or {}
    if evidence:
        print_line()
        print_line(f"evidence {evidence.get('uri', '')} {evidence.get('digest', '')}".rstrip())
