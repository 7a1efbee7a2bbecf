"""ALFWorld's engine: TextWorld over a PDDL problem, with the names that people read."""

from __future__ import annotations

import contextlib
import io
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any, Final

__all__ = ["Engine", "EngineFailed", "State", "own_document"]

_BANNER: Final = "-= Welcome to TextWorld, ALFRED! =-"
# What the planner makes of a problem whose goal it proves to be out of reach has this one value.
_UNREACHABLE: Final = "val1"
_ARRIVAL: Final = re.compile(r"^You arrive at [^.]*\. ")


class EngineFailed(ValueError):
    """A game that the engine cannot play; the message says why."""


@dataclass(frozen=True)
class State:
    """What an agent is told after a step, and what it can do then."""

    text: str
    commands: tuple[str, ...]
    won: bool


class Engine:
    """One game. ``policy`` has the planner look for a way from where the game is: it takes its time."""

    def __init__(self, document: Mapping[str, Any], policy: bool = False) -> None:
        # Half a second to import, and only where a game is played.
        _let_be_imported()
        import textworld
        from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
        from textworld.envs.pddl import PddlEnv

        infos = textworld.EnvInfos(won=True, admissible_commands=True, policy_commands=policy)
        self._env: Any = AlfredDemangler(PddlEnv(infos))
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                self._env.load(dict(document))
                self._state: Any = self._env.reset()
        except Exception as error:
            if _UNREACHABLE in str(error):
                raise EngineFailed("it has no solution: its goal cannot be reached") from None
            raise EngineFailed(f"the engine cannot read it: {type(error).__name__}: {str(error)[:200]}") from None

    @property
    def opening(self) -> State:
        """The first state: the room and the task, without the engine's greeting."""
        return self._told(self._state, str(self._state.feedback).replace(_BANNER, "").strip())

    @property
    def policy(self) -> list[str]:
        """A way to win from here, by the planner; empty where there is none, or none was asked for."""
        return list(self._state.get("policy_commands") or ())

    def step(self, command: str) -> State:
        """Do something; what cannot be done changes nothing."""
        self._state, _, _ = self._env.step(command)
        return self._told(self._state, _ARRIVAL.sub("", str(self._state.feedback).strip()))

    @staticmethod
    def _told(state: Any, text: str) -> State:
        return State(text, tuple(state["admissible_commands"]), bool(state["won"]))


def own_document(problem: str, task: str) -> dict[str, str]:
    """Return a game of our own in the form of ALFWorld's files: its domain and its words, our problem and task."""
    domain, grammar = _logic()
    return {"pddl_domain": domain, "pddl_problem": problem, "grammar": grammar.replace("UNKNOWN GOAL", task)}


def _let_be_imported() -> None:
    # Importing alfworld makes a folder for its downloads, by default in the home folder, which need not be writable.
    os.environ.setdefault("ALFWORLD_DATA", tempfile.gettempdir())


@lru_cache(maxsize=1)
def _logic() -> tuple[str, str]:
    _let_be_imported()
    data = resources.files("alfworld") / "data"
    return tuple((data / f"alfred.{name}").read_text(encoding="utf-8") for name in ("pddl", "twl2"))  # type: ignore[return-value]
