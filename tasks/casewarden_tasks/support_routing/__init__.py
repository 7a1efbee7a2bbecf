"""support-routing: a policy acts on tickets of a simulated service, tool call by tool call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from casewarden_sdk.contract import Case, Control, Limits, Pack, Verdict
from casewarden_sdk.errors import ContractError

from . import cases, driver, grader, planted

if TYPE_CHECKING:
    from casewarden_sdk.runtime import Runtime

__all__ = ["PACK", "SupportRouting"]

_HERE = Path(__file__).parent


class SupportRouting:
    """The pack; its attributes and methods are those of ``casewarden_sdk.contract.Pack``."""

    id: str = "support-routing"
    version: str = "0.1.0"
    description: str = "Route, annotate and close tickets through the tools of a simulated service"
    contract: str = (_HERE / "contract.md").read_text(encoding="utf-8")
    dimensions: Mapping[str, str] = {
        "routing": "0.30",
        "notes": "0.25",
        "closure": "0.20",
        "scope": "0.15",
        "protocol": "0.10",
    }
    protocol: str = "jsonl"
    candidates: tuple[str, ...] = ("program", "server", "model")
    aggregation: str = "weighted-dimensions/v1"
    limits: Limits = Limits(
        case_seconds=120, response_seconds=20, actions=driver.ACTIONS, output_bytes=1 << 20, request_bytes=8192
    )
    default_argv: tuple[str, ...] = ("{python}", "-I", "-B", "main.py")
    sources: tuple[str, ...] = tuple(
        str(_HERE / name) for name in ("__init__.py", "cases.py", "contract.md", "driver.py", "grader.py", "service.py")
    )
    controls: Sequence[Control] = planted.controls()
    exclusions: Mapping[str, str] = {}
    grader_checks: Mapping[str, str] = grader.CHECKS

    def cases(self, seed: int, params: Mapping[str, Any]) -> Sequence[Case]:
        """Return the four cases of ``seed``; this pack has no parameters."""
        for name in params:
            raise ContractError(f"spec.task.params.{name}: support-routing has no parameters; remove it")
        return cases.generate(seed)

    async def drive(self, case: Case, runtime: Runtime) -> Any:
        """Play the episode and return the record."""
        return await driver.drive(case, runtime)

    def grade(self, case: Case, record: Any) -> Verdict:
        """Compare the tickets at the end with those of the case."""
        return grader.grade(case, record)


PACK: Pack = SupportRouting()
