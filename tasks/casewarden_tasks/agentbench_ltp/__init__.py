"""agentbench-ltp: AgentBench's lateral thinking puzzles, hosted by a judge model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from casewarden_sdk.agentbench import (
    SOURCES,
    AgentBenchPack,
    TaskOutput,
    chosen_indices,
    chosen_split,
    keeps_to_v0_2,
    open_dataset,
    refuse_unknown,
    whole_number,
)
from casewarden_sdk.contract import Case, Control, Limits
from casewarden_sdk.errors import ContractError

from . import planted
from .puzzles import Puzzle, own_puzzles, sheet_puzzles
from .task import ROLE, Puzzles

__all__ = ["PACK", "PuzzlePack"]

_HERE = Path(__file__).parent
_FILES = (
    "__init__.py", "contract.md", "host.py", "judge.py", "likeness.py", "puzzles.json", "puzzles.py", "task.py",
)  # fmt: skip
_COMPAT = "v0.2"
_SPLITS = {"dev": "data/lateralthinkingpuzzle/dev.xlsx", "std": "data/lateralthinkingpuzzle/standard.xlsx"}
_ROUNDS, _MOST_ROUNDS = 25, 100
_MOST_REPEATS = 9
_CONDUCT = ("empty", "gave up", "restated", "repeated")


class PuzzlePack(AgentBenchPack):
    """The pack; see ``AgentBenchPack``."""

    id = "agentbench-ltp"
    version = "1.0.0"
    description = "AgentBench, lateral thinking puzzles: find the truth behind a story by asking yes-or-no questions"
    contract = (_HERE / "contract.md").read_text(encoding="utf-8")
    score = "main"
    passes = "every part of the truth was found, and every reply was a question that moves the game on"
    dimensions: Mapping[str, str] = {"solved": "0.8", "conduct": "0.2"}
    limits = Limits(case_seconds=1800, response_seconds=240, output_bytes=1 << 20, request_bytes=1 << 20)
    sources = (*SOURCES, *(str(_HERE / name) for name in _FILES))
    controls: Sequence[Control] = planted.controls(own_puzzles())
    models: Mapping[str, str] = {
        ROLE: "hosts the game: knows the truth, answers questions with yes, no or irrelevant, and says what was found"
    }

    def controls_for(self, params: Mapping[str, Any]) -> Sequence[Control]:
        """Return the controls for the puzzles of a run."""
        return planted.controls(_puzzles(params, params.get("compat") == _COMPAT))

    def task(self, params: Mapping[str, Any], seed: int) -> Puzzles:
        """Make the task: our own puzzles, or those of a data set."""
        known = ("compat", "dataset", "datasetDigest", "filepath", "indices", "judgeRepeats", "round", "split")
        refuse_unknown(params, known, self.id)
        compat = keeps_to_v0_2(params)
        puzzles = _puzzles(params, compat)
        rounds = whole_number(params, "round", _ROUNDS, _MOST_ROUNDS)
        repeats = whole_number(params, "judgeRepeats", 1, _MOST_REPEATS)
        return Puzzles(puzzles, chosen_indices(params, len(puzzles)), rounds, repeats, compat)

    def content(self, task: Any, index: Any) -> Mapping[str, Any]:
        """Return the puzzle."""
        return {"puzzle": task.puzzles[index].to_json()}

    def checks(self, case: Case, output: TaskOutput, facts: Mapping[str, Any]) -> Mapping[str, bool]:
        """Judge a result: all keys hit, and no reply that was no question."""
        result = output.result or {}
        history = result.get("history", ())
        return {
            "solved": bool(result.get("finished")),
            "conduct": bool(history) and not any(row["outcome"] in _CONDUCT for row in history),
        }

    def metrics(self, case: Case, output: TaskOutput, facts: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return AgentBench's figures, and how far the judge agreed with itself."""
        result = output.result
        if result is None:
            return {}
        judge = result["judge"]
        figures = {name: result[name] for name in ("progress", "accuracy", "efficiency", "relevance", "finish_round")}
        return {
            **figures,
            "rounds": len(result["history"]),
            "judge_calls": judge["calls"],
            "judge_judgements": judge["judgements"],
            "judge_flips": judge["flipped"],
            "judge_unclear": judge["unclear"],
        }

    def explain(self, case: Case, output: TaskOutput, facts: Mapping[str, Any]) -> str | None:
        """Say which parts were not found and which replies were no question."""
        result = output.result
        if result is None:
            return "the game was not played to its end"
        keys = case.content["puzzle"]["answer_keys"]
        told = []
        if not result["finished"]:
            told.append(f"solved: {len(result['hit_keys'])} of {len(keys)} parts of the truth were found")
        wrong = [f"round {row['round']} {row['outcome']}" for row in result["history"] if row["outcome"] in _CONDUCT]
        if wrong:
            told.append(f"conduct: {', '.join(wrong[:5])}")
        return "; ".join(told) or None


def _puzzles(params: Mapping[str, Any], compat: bool) -> list[Puzzle]:
    dataset = open_dataset(params)
    if dataset is None:
        for name in ("filepath", "split"):
            if name in params:
                raise ContractError(f"spec.task.params.{name}: says what of a data set is played; give dataset too")
        return own_puzzles()
    split = chosen_split(params, _SPLITS)
    name = params.get("filepath", _SPLITS[split])
    if not isinstance(name, str):
        raise ContractError(f"spec.task.params.filepath is {name!r}; give the path of an xlsx file in the data set")
    return sheet_puzzles(dataset.read(name), name, empty_lines=compat)


PACK = PuzzlePack()
