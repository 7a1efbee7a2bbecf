"""The programs that prove the grader: the reference knows every way, and each fault goes another."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from casewarden_sdk.contract import Control

from .own import OwnGame, own_games

__all__ = ["answering", "controls"]

_PROGRAMS: Final = Path(__file__).parent / "controls"
_TREATMENTS: Final = ("clean ", "heat ", "cool ")


def controls() -> tuple[Control, ...]:
    """Return reference, null agent, crashing agent and every fault."""
    return (
        Control("reference", "reference", {"main.py": _own(lambda game: game.way)}),
        Control("null-agent", "null", {"main.py": _program("null-agent")}),
        Control("crashing-agent", "crash", {"main.py": _program("crashing-agent")}),
        _fault("leaves-out-the-last-step", "goal", lambda game: game.way[:-1]),
        _fault("does-not-treat-it", "goal", _untreated),
        _fault("takes-one-of-two", "goal", _one),
        _fault("says-the-same-again", "goal", lambda _: ("look",) * 4, protocol=True),
        _fault("names-no-action", "form", lambda game: game.way, ("goal",), form="I will {}.", protocol=True),
    )


def answering(ways: Mapping[str, Sequence[str]], form: str = "THOUGHT: the next step.\nACTION: {}") -> str:
    """Return a program that goes these ways, by the words of the task; at its end it looks around, in turns."""
    program = _program("reference").replace("WAYS = {}", f"WAYS = {dict(ways)!r}")
    return program.replace('FORM = ""', f"FORM = {form!r}")


def _own(way: Callable[[OwnGame], Sequence[str]], form: str = "THOUGHT: the next step.\nACTION: {}") -> str:
    return answering({game.task: list(way(game)) for game in own_games()}, form)


def _fault(
    name: str,
    target: str,
    way: Callable[[OwnGame], Sequence[str]],
    collateral: tuple[str, ...] = (),
    *,
    form: str = "THOUGHT: the next step.\nACTION: {}",
    protocol: bool = False,
) -> Control:
    return Control(name, "fault", {"main.py": _own(way, form)}, target, collateral, protocol)


def _untreated(game: OwnGame) -> Sequence[str]:
    return [command for command in game.way if not command.startswith(_TREATMENTS)]


def _one(game: OwnGame) -> Sequence[str]:
    if game.kind != "pick_two_obj":
        return game.way
    return game.way[: next(n for n, command in enumerate(game.way) if command.startswith("move ")) + 1]


def _program(name: str) -> str:
    return (_PROGRAMS / name / "main.py").read_text(encoding="utf-8")
