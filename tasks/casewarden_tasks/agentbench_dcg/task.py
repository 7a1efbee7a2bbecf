"""The card game as a task of AgentBench: a sample is a game, and the score is made of all of them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from casewarden_sdk.agentbench import (
    AgentOutputStatus,
    ChatItem,
    SampleStatus,
    Session,
    Task,
    TaskOutput,
    TaskSampleExecutionResult,
)

from . import games
from .dialogue import INVALID
from .engine import FULL_HP, KINDS
from .match import Match

__all__ = ["WHOLE", "CardGame"]

WHOLE = FULL_HP * len(KINDS)
"""Hit points of a side at the start: the most damage that there is."""


class _NoReply(Exception):
    """The agent's part is over before the game is."""

    def __init__(self, status: AgentOutputStatus) -> None:
        super().__init__(status.value)
        self.status = status


class CardGame(Task):
    """The games of one seed."""

    def __init__(self, seed: int, test_time: int, compat: bool) -> None:
        super().__init__(name="CardGame")
        self._seed = seed
        self._test_time = test_time
        self._compat = compat

    def get_indices(self) -> list[Any]:
        """Return 0 and upwards, four times ``test_time``."""
        return list(range(games.count(self._test_time)))

    def deal(self, index: int) -> dict[str, Any]:
        """Return the game of an index."""
        return games.deal(self._seed, index, self._test_time, self._compat)

    async def start_sample(self, index: Any, session: Session) -> TaskSampleExecutionResult:
        """Play a game. The result has its replay, and AgentBench's own figures under ``meta``."""

        async def ask(messages: Sequence[Mapping[str, str]]) -> str:
            session.history = [ChatItem(message["role"], message["content"]) for message in messages]
            output = await session.action()
            if output.status is not AgentOutputStatus.NORMAL:
                raise _NoReply(output.status)
            return output.content or ""

        match = Match(session.case.content, ask, time.monotonic)
        try:
            await match.play()
            status = _status(match)
        except _NoReply as over:
            limit = over.status is AgentOutputStatus.AGENT_CONTEXT_LIMIT
            status = SampleStatus.AGENT_CONTEXT_LIMIT if limit else SampleStatus.UNKNOWN
        result = match.record()
        await session.runtime.note("table", result["picture"])
        return TaskSampleExecutionResult(status, {**result, "meta": _meta(match)})

    def calculate_overall(self, results: list[TaskOutput]) -> Any:
        """Return AgentBench's figures. A sample without a game counts as lost, with no damage done.

        With ``compat`` it counts for the damage rate only, as in v0.2; and where there is no game at all, v0.2's -1 is
        0 here, since no score is below it.
        """
        metas = [result.result["meta"] for result in results if isinstance(result.result, Mapping)]
        total = len(metas) if self._compat else len(results)
        wins = sum(meta["win_round"] for meta in metas)
        win_rate = wins / total if total else 0.0
        damage_rate = sum(meta["damage"] for meta in metas) / (WHOLE * len(results)) if results else 0.0
        return {
            "win_round": wins,
            "total_round": total,
            "win_rate": win_rate,
            "damage_rate": damage_rate,
            "score": 0.7 * win_rate + min(0.3, 0.3 * damage_rate),
        }


def _status(match: Match) -> SampleStatus:
    if match.game.ended == "late" and match.game.winner != match.seat:
        return SampleStatus.TASK_LIMIT_REACHED
    if match.code is None:
        return SampleStatus.COMPLETED
    return SampleStatus.AGENT_INVALID_ACTION if match.code == INVALID else SampleStatus.AGENT_VALIDATION_FAILED


def _meta(match: Match) -> dict[str, int]:
    """Return what AgentBench keeps of a game, for the agent's side."""
    enemies = match.game.sides[1 - match.seat]
    return {
        "full_play": int(match.game.winner is not None and match.code is None),
        "try_times": match.tries,
        "takedown": sum(fish.dead for fish in enemies),
        "damage": sum(FULL_HP - fish.hp for fish in enemies),
        "win_round": int(match.game.winner == match.seat),
        "round_num": 1,
        "test_times": 1,
    }
