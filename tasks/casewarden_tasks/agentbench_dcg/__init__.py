"""agentbench-dcg: AgentBench's digital card game, Aquawar, against its baselines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from casewarden_sdk.agentbench import (
    SOURCES,
    AgentBenchPack,
    TaskOutput,
    chosen_split,
    keeps_to_v0_2,
    open_dataset,
    refuse_unknown,
    whole_number,
)
from casewarden_sdk.contract import Case, Control, Limits

from . import planted
from .grader import Judged
from .task import CardGame

__all__ = ["PACK", "CardGamePack"]

_HERE = Path(__file__).parent
_FILES = (
    "__init__.py", "baselines.py", "contract.md", "dialogue.py", "engine.py", "games.py", "grader.py", "match.py",
    "table.py", "task.py", "witness.py",
)  # fmt: skip
_COMPAT = "v0.2"
_TEST_TIMES = {"dev": 3, "std": 5}
_MOST = 50


class CardGamePack(AgentBenchPack):
    """The pack; see ``AgentBenchPack``. The games are generated: a seed has its own."""

    id = "agentbench-dcg"
    version = "1.0.0"
    description = "AgentBench, digital card game: win a game of Aquawar against a baseline"
    contract = (_HERE / "contract.md").read_text(encoding="utf-8")
    score = "score"
    passes = "the agent's side won, every question for a guess got a legal one, and no turn was lost for its form"
    dimensions: Mapping[str, str] = {"win": "0.7", "guessing": "0.1", "protocol": "0.2"}
    limits = Limits(case_seconds=600, response_seconds=300, output_bytes=1 << 20, request_bytes=1 << 20)
    sources = (*SOURCES, *(str(_HERE / name) for name in _FILES))
    controls: Sequence[Control] = planted.controls()
    seeded = True

    def task(self, params: Mapping[str, Any], seed: int) -> CardGame:
        """Make the task of a seed. A data set is looked for and not read: AgentBench has none for this environment."""
        known = ("compat", "dataset", "datasetDigest", "split", "test_time")
        refuse_unknown(params, known, self.id)
        open_dataset(params)
        compat, split = keeps_to_v0_2(params), chosen_split(params, _TEST_TIMES)
        copies = whole_number(params, "test_time", _TEST_TIMES[split], _MOST)
        return CardGame(seed, copies, compat)

    def content(self, task: Any, index: Any) -> Mapping[str, Any]:
        """Return the game as it is dealt."""
        dealt: Mapping[str, Any] = task.deal(index)
        return dealt

    def checks(self, case: Case, output: TaskOutput, facts: Mapping[str, Any]) -> Mapping[str, bool]:
        """Play the record's game again and judge who won it, and how the agent kept to the form."""
        return Judged(case.content, output.result).checks()

    def metrics(self, case: Case, output: TaskOutput, facts: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return win, damage, score and how much was said."""
        return Judged(case.content, output.result).metrics()

    def explain(self, case: Case, output: TaskOutput, facts: Mapping[str, Any]) -> str | None:
        """Say what does not hold."""
        return Judged(case.content, output.result).explain()


PACK = CardGamePack()
