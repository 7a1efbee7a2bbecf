"""House-holding as a task of AgentBench: a sample is a game, its result whether it was won."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from casewarden_sdk.agentbench import (
    AgentOutputStatus,
    ChatItem,
    SampleStatus,
    Session,
    Task,
    TaskOutput,
    TaskSampleExecutionResult,
)
from casewarden_sdk.errors import EnvironmentFailure

from .engine import Engine, EngineFailed, State
from .games import Games
from .likeness import nearest

__all__ = ["House"]

_ACTION: Final = re.compile(r"ACTION:[ \t]*(.*)")
_OFFERED: Final = "AVAILABLE ACTIONS"
_REPEATS: Final = 3
_NAMED: Final = 20
_RULES: Final = """You are in a house and do a chore there, step by step. Every message of mine says what you see and
ends with the actions that are possible now, one on each line. Reply in this form, with one action and nothing after it:

THOUGHT: why
ACTION: go to shelf 1

Use an action exactly as it is written. "Nothing happens" means that it did not work. When the chore is done, we are."""
_EXAMPLE: Final = (
    ("You are in the middle of a room. Looking quickly around you, you see a bed 1, a drawer 1, and a shelf 1.\n\n"
     "Your task is to: put some pen on shelf. AVAILABLE ACTIONS: go to bed 1\ngo to drawer 1\ngo to shelf 1",
     "THOUGHT: A pen may be in the drawer.\nACTION: go to drawer 1"),
    ("The drawer 1 is closed. AVAILABLE ACTIONS: go to bed 1\ngo to shelf 1\nopen drawer 1",
     "THOUGHT: I open it.\nACTION: open drawer 1"),
    ("You open the drawer 1. The drawer 1 is open. In it, you see a pen 1. AVAILABLE ACTIONS: close drawer 1\n"
     "go to bed 1\ngo to shelf 1\ntake pen 1 from drawer 1",
     "THOUGHT: There it is.\nACTION: take pen 1 from drawer 1"),
    ("You pick up the pen 1 from the drawer 1. AVAILABLE ACTIONS: go to bed 1\ngo to shelf 1\nmove pen 1 to drawer 1",
     "THOUGHT: Now to the shelf.\nACTION: go to shelf 1"),
    ("On the shelf 1, you see nothing. AVAILABLE ACTIONS: go to bed 1\ngo to drawer 1\nmove pen 1 to shelf 1",
     "THOUGHT: I put it down.\nACTION: move pen 1 to shelf 1"),
)  # fmt: skip


class House(Task):
    """The games of a run."""

    def __init__(self, games: Games, indices: Sequence[int], rounds: int) -> None:
        super().__init__(name="alfworld")
        self.games = games
        self.indices = indices
        self.rounds = rounds

    def get_indices(self) -> list[Any]:
        """Return the places of the games in their list."""
        return list(self.indices)

    async def start_sample(self, index: Any, session: Session) -> TaskSampleExecutionResult:
        """Play one game."""
        game = self.games.by_index[index]
        try:
            engine = await asyncio.to_thread(Engine, game.document)
        except EngineFailed as error:
            # A second of work for each game, which is why the plan does not do it for all of them.
            raise EnvironmentFailure("TaskFailed", f"game {index}, {game.path}: {error}") from None
        state = engine.opening
        session.inject(_opening())
        first = state.text
        told = f"Here is your task. {_shown(state)}"
        log: list[dict[str, Any]] = []
        for turn in range(self.rounds):
            output = await session.action({"role": "user", "content": told})
            if output.status is AgentOutputStatus.CANCELLED:
                return TaskSampleExecutionResult(SampleStatus.UNKNOWN, _result(log, first, 0))
            if output.status is AgentOutputStatus.AGENT_CONTEXT_LIMIT:
                return TaskSampleExecutionResult(SampleStatus.AGENT_CONTEXT_LIMIT, _result(log, first, 0))
            said = output.content or ""
            # What was possible before need not be read again.
            session.history[-2] = ChatItem("user", told.split(f" {_OFFERED}")[0])
            match = _ACTION.search(said)
            if match is None:
                log.append(_row(turn, said, None, state, "", False))
                return TaskSampleExecutionResult(SampleStatus.AGENT_INVALID_ACTION, _result(log, first, 0))
            action = nearest(match.group(1).strip().lower(), state.commands)
            after = await asyncio.to_thread(engine.step, action)
            log.append(_row(turn, said, action, state, after.text, after.won))
            state = after
            if state.won:
                return TaskSampleExecutionResult(SampleStatus.COMPLETED, _result(log, first, 1))
            if len(log) > _REPEATS and len({row["output"] for row in log[-_REPEATS:]}) == 1:
                return TaskSampleExecutionResult(SampleStatus.AGENT_INVALID_ACTION, _result(log, first, 0))
            told = _shown(state)
        return TaskSampleExecutionResult(SampleStatus.TASK_LIMIT_REACHED, _result(log, first, 0))

    def calculate_overall(self, results: list[TaskOutput]) -> Any:
        """Return how many games were won, and the games that could not be played."""
        won = sum(isinstance(one.result, Mapping) and one.result["result"] == 1 for one in results)
        total = len(results)
        return {
            "overall": {
                "total": total, "pass": won, "wrong": total - won, "success_rate": won / total if total else 0.0,
            },
            "excluded": [self.games.broken[index] for index in sorted(self.games.broken)][:_NAMED],
        }  # fmt: skip


def _opening() -> list[ChatItem]:
    items = [ChatItem("user", _RULES), ChatItem("agent", "I understand. What is the chore?")]
    for number, (told, said) in enumerate(_EXAMPLE):
        lead = "Here is one example. " if number == 0 else ""
        items += [ChatItem("user", lead + told), ChatItem("agent", said)]
    return items


def _shown(state: State) -> str:
    return f"{state.text} {_OFFERED}: " + "\n".join(state.commands)


def _row(turn: int, said: str, action: str | None, before: State, observation: str, done: bool) -> dict[str, Any]:
    return {
        "round": turn,
        "output": said,
        "action": action,
        "admissible_commands": list(before.commands),
        "observation": observation,
        "done": done,
    }


def _result(log: list[dict[str, Any]], first: str, result: int) -> dict[str, Any]:
    return {"log": log, "init_prompt": first, "result": result}
