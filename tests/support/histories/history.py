"""A history: what befalls a run, drawn from a seed, small enough to be read, and made smaller when it shows a fault."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

KINDS = (
    "kill", "kill", "kill", "second", "fate", "fate", "fate", "fate", "lose", "repeat", "compact", "api_away",
    "relay_away", "suspend", "resume", "parallelism", "delete", "delete_now", "evict", "drain", "node_gone",
    "touch_ledger", "clock",
)  # fmt: skip
METHODS = ("POST", "PATCH", "DELETE", "GET", "RELAY", "")
HOWS = ("busy", "broken", "cut", "lost", "late", "late", "slow")
OUTCOMES = ("passed", "passed", "passed", "failed", "agent_error")
TROUBLES = ("environment_error", "lost", "lost")


@dataclass(frozen=True)
class Step:
    """One thing that happens ``at`` some second; what the other fields mean its kind says."""

    at: float
    kind: str
    number: int = 0
    how: str = ""
    what: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class History:
    """A run of ``cases`` at ``parallelism``, what its attempts come to, and all that happens meanwhile."""

    seed: int
    cases: int
    parallelism: int
    outcomes: tuple[tuple[str, ...], ...]
    works: tuple[float, ...]
    steps: tuple[Step, ...]

    def outcome(self, case: int, attempt: int) -> str:
        """What an attempt comes to; the last word of a case stands for all later ones."""
        row = self.outcomes[case]
        return row[min(attempt, len(row)) - 1]


def draw(seed: int) -> History:
    """Make the history of a seed."""
    rng = Random(seed)
    cases = rng.randint(1, 5)
    outcomes = tuple(
        (*(rng.choice(TROUBLES) for _ in range(rng.choice((0, 0, 0, 1)))), rng.choice(OUTCOMES)) for _ in range(cases)
    )
    works = tuple(rng.choice((0.1, 1.0, 4.0, 15.0)) for _ in range(cases))
    steps = tuple(sorted((_step(rng) for _ in range(rng.randint(0, 9))), key=lambda step: step.at))
    return History(seed, cases, rng.randint(1, 4), outcomes, works, steps)


def _step(rng: Random) -> Step:
    at, kind = round(rng.uniform(0, 40), 2), rng.choice(KINDS)
    seconds = round(rng.choice((0.05, 1.0, 8.0, 40.0)) * rng.uniform(0.5, 1.5), 2)
    if kind == "kill":
        return Step(at, kind, rng.choice((0, 1, 2, 3, 5, 8, 20)), rng.choice(("before", "after", "late")), "", seconds)
    if kind == "fate":
        method, what = rng.choice(METHODS), rng.choice(("", "pods", "configmaps", "evalruns"))
        if method == "RELAY":
            what = rng.choice(("", "sealed", "put_file"))
        return Step(at, kind, rng.randint(1, 6), rng.choice(HOWS), f"{method} {what}", seconds)
    if kind == "clock":
        return Step(at, kind, rng.choice((-100, -3, 3, 100)))
    return Step(at, kind, rng.randint(1, 4), seconds=seconds)


def shrink(history: History, fails: Callable[[History], bool], tries: int = 60) -> History:
    """Return a smaller history that still ``fails``."""
    smaller = True
    while smaller and tries > 0:
        smaller = False
        for candidate in _smaller(history):
            tries -= 1
            if fails(candidate):
                history, smaller = candidate, True
                break
            if tries <= 0:
                break
    return history


def _smaller(history: History) -> list[History]:
    steps = history.steps
    found = [replace(history, steps=steps[: len(steps) // 2]), replace(history, steps=steps[len(steps) // 2 :])]
    found = found if len(steps) > 1 else []
    found += [replace(history, steps=(*steps[:n], *steps[n + 1 :])) for n in range(len(steps))]
    if history.cases > 1:
        less = history.cases - 1
        found.append(replace(history, cases=less, outcomes=history.outcomes[:less], works=history.works[:less]))
    if history.parallelism > 1:
        found.append(replace(history, parallelism=1))
    found += [
        replace(history, outcomes=(*history.outcomes[:n], row[-1:], *history.outcomes[n + 1 :]))
        for n, row in enumerate(history.outcomes)
        if len(row) > 1
    ]
    return found
