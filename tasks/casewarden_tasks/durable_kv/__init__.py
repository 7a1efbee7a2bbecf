"""durable-kv: a persistent key-value service, written by the candidate and asked through a protocol."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from casewarden_sdk.contract import Case, Control, Limits, Pack, Verdict
from casewarden_sdk.errors import ContractError

from . import cases, driver, grader, planted

if TYPE_CHECKING:
    from casewarden_sdk.runtime import Runtime

__all__ = ["PACK", "DurableKv"]

_HERE = Path(__file__).parent


class DurableKv:
    """The pack; its attributes and methods are those of ``casewarden_sdk.contract.Pack``."""

    id: str = "durable-kv"
    version: str = "0.1.0"
    description: str = "A persistent key-value service on standard input and output"
    contract: str = (_HERE / "contract.md").read_text(encoding="utf-8")
    dimensions: Mapping[str, str] = {
        "basic": "0.25",
        "validation": "0.15",
        "transactions": "0.20",
        "compare_swap": "0.15",
        "persistence": "0.15",
        "crash_recovery": "0.10",
    }
    protocol: str = "jsonl"
    candidates: tuple[str, ...] = ("program",)
    aggregation: str = "weighted-dimensions/v1"
    limits: Limits = Limits(case_seconds=120, response_seconds=20, output_bytes=1 << 20, request_bytes=8192)
    default_argv: tuple[str, ...] = ("{python}", "-I", "-B", "main.py", "{state}/store.db")
    sources: tuple[str, ...] = tuple(
        str(_HERE / name) for name in ("__init__.py", "cases.py", "contract.md", "driver.py", "grader.py", "model.py")
    )
    controls: Sequence[Control] = planted.controls()
    exclusions: Mapping[str, str] = {}
    grader_checks: Mapping[str, str] = grader.CHECKS

    def cases(self, seed: int, params: Mapping[str, Any]) -> Sequence[Case]:
        """Return the fifteen cases of ``seed``; this pack has no parameters."""
        for name in params:
            raise ContractError(f"spec.task.params.{name}: durable-kv has no parameters; remove it")
        return cases.generate(seed)

    async def drive(self, case: Case, runtime: Runtime) -> Any:
        """Play the case's sessions and return the record."""
        return await driver.drive(case, runtime)

    def grade(self, case: Case, record: Any) -> Verdict:
        """Compare the record with the model's answers."""
        return grader.grade(case, record)


PACK: Pack = DurableKv()
