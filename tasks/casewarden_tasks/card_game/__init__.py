"""card-game: a game of Aquawar against a baseline, in chat messages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from casewarden_sdk.contract import Case, Control, Limits, Pack, Verdict

from . import cases, driver, grader, planted

if TYPE_CHECKING:
    from casewarden_sdk.runtime import Runtime

__all__ = ["PACK", "CardGame"]

_HERE = Path(__file__).parent
_SOURCES = (
    "__init__.py", "baselines.py", "cases.py", "contract.md", "dialogue.py", "driver.py", "engine.py", "grader.py",
    "match.py", "table.py", "witness.py",
)  # fmt: skip


class CardGame:
    """The pack; its attributes and methods are those of ``casewarden_sdk.contract.Pack``."""

    id: str = "card-game"
    version: str = "1"
    description: str = "Win a game of Aquawar (AgentBench's digital card game) against a baseline"
    contract: str = (_HERE / "contract.md").read_text(encoding="utf-8")
    dimensions: Mapping[str, str] = {"win": "0.7", "guessing": "0.1", "protocol": "0.2"}
    protocol: str = "chat"
    candidates: tuple[str, ...] = ("program", "server", "model")
    aggregation: str = "weighted-dimensions/v1"
    limits: Limits = Limits(case_seconds=600, response_seconds=300, request_bytes=1 << 20)
    default_argv: tuple[str, ...] = ("{python}", "-I", "-B", "main.py")
    sources: tuple[str, ...] = tuple(str(_HERE / name) for name in _SOURCES)
    controls: Sequence[Control] = planted.controls()
    exclusions: Mapping[str, str] = {}

    def cases(self, seed: int, params: Mapping[str, Any]) -> Sequence[Case]:
        """Return the games of ``seed``, as many as ``params.testTime`` says."""
        return cases.generate(seed, params)

    async def drive(self, case: Case, runtime: Runtime) -> Any:
        """Play the game and return the record."""
        return await driver.drive(case, runtime)

    def grade(self, case: Case, record: Any) -> Verdict:
        """Play the record's game again and say who won it, and how the agent kept to the form."""
        return grader.grade(case, record)


PACK: Pack = CardGame()
