"""agentbench-alfworld: AgentBench's house-holding, over ALFWorld's games or 24 of its own, by ALFWorld's engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from casewarden_sdk.agentbench import (
    SOURCES,
    AgentBenchPack,
    TaskOutput,
    chosen_indices,
    chosen_split,
    open_dataset,
    refuse_unknown,
    whole_number,
)
from casewarden_sdk.canonical import sha256_json
from casewarden_sdk.contract import Case, Control, Limits
from casewarden_sdk.errors import ContractError

from . import planted
from .games import Games, own, read_games
from .task import House

__all__ = ["PACK", "HousePack"]

_HERE: Final = Path(__file__).parent
_FILES: Final = (
    "__init__.py", "contract.md", "engine.py", "games.py", "likeness.py", "own.py", "task.py",
)  # fmt: skip
_SPLITS: Final = {"dev": "dev", "std": "standard"}
_ROUNDS, _MOST_ROUNDS = 35, 50
_KNOWN: Final = ("dataset", "datasetDigest", "indices", "max_step", "split")


class HousePack(AgentBenchPack):
    """The pack; see ``AgentBenchPack``."""

    id = "agentbench-alfworld"
    version = "1.0.0"
    description = "AgentBench, house-holding: find things in a room, treat them, and put them where they belong"
    contract = (_HERE / "contract.md").read_text(encoding="utf-8")
    score = "overall.success_rate"
    passes = "the game was won: what is to be so in the room is so"
    dimensions: Mapping[str, str] = {"goal": "0.8", "form": "0.2"}
    limits = Limits(case_seconds=900, response_seconds=240, output_bytes=4 << 20, request_bytes=1 << 20)
    sources = (*SOURCES, *(str(_HERE / name) for name in _FILES))
    controls: Sequence[Control] = planted.controls()

    def task(self, params: Mapping[str, Any], seed: int) -> House:
        """Make the task: our own games, or ALFWorld's in a data set."""
        refuse_unknown(params, _KNOWN, self.id)
        rounds = whole_number(params, "max_step", _ROUNDS, _MOST_ROUNDS)
        games = _games(params)
        wanted = chosen_indices(params, len(games.by_index) + len(games.broken))
        indices = [index for index in wanted if index in games.by_index]
        if not indices:
            raise ContractError(f"spec.task.params.indices: {games.broken[wanted[0]]}; name games that can be played")
        return House(games, indices, rounds)

    def content(self, task: Any, index: Any) -> Mapping[str, Any]:
        """Return which game it is, with its digest: the game itself is read again where it is played."""
        game = task.games.by_index[index]
        return {"kind": game.kind, "path": game.path, "game_sha256": sha256_json(dict(game.document))}

    def checks(self, case: Case, output: TaskOutput, facts: Mapping[str, Any]) -> Mapping[str, bool]:
        """Judge the end of the game, and whether every reply had an action."""
        log = (output.result or {}).get("log", ())
        formed = bool(log) and all(row["action"] is not None for row in log)
        return {"goal": (output.result or {}).get("result") == 1, "form": formed}

    def metrics(self, case: Case, output: TaskOutput, facts: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return whether the game was won, and in how many turns."""
        result = output.result or {}
        return {"won": int(result.get("result") == 1), "turns": len(result.get("log", ()))}

    def explain(self, case: Case, output: TaskOutput, facts: Mapping[str, Any]) -> str | None:
        """Say what was reached last."""
        log = (output.result or {}).get("log", ())
        if not log:
            return "nothing was done"
        if log[-1]["action"] is None:
            return "form: a reply has no ACTION"
        return f"goal: not reached in {len(log)} turns; the last: {log[-1]['action']!r}"


def _games(params: Mapping[str, Any]) -> Games:
    dataset = open_dataset(params)
    if dataset is None:
        if "split" in params:
            raise ContractError("spec.task.params.split: says what of a data set is played; give dataset too")
        return own()
    split = chosen_split(params, _SPLITS)
    return read_games(dataset, _SPLITS[split])


PACK = HousePack()
