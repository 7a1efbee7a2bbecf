"""A whole task pack to copy: the candidate is given numbers and answers with their sum.

Everything that a pack needs is here: what it is (attributes), programs that prove its grader (``controls``), what is
asked (``cases``), how it is played (``drive``), and what it is worth (``grade``). ``docs/write-a-pack.md`` says how to
make another one of it.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from casewarden_sdk.canonical import canonical_equal
from casewarden_sdk.checks import holds
from casewarden_sdk.contract import Case, Control, Limits, Pack, Verdict
from casewarden_sdk.errors import CandidateError, ContractError

if TYPE_CHECKING:
    from casewarden_sdk.runtime import Runtime

__all__ = ["PACK", "Template"]

_HERE = Path(__file__).parent


def _program(name: str) -> str:
    return (_HERE / "controls" / name / "main.py").read_text(encoding="utf-8")


def _fault(name: str, target: str, right: str, wrong: str, collateral: tuple[str, ...] = ()) -> Control:
    """Return the reference with one passage replaced: a program that is wrong in one way."""
    reference = _program("reference")
    if reference.count(right) != 1:
        raise ContractError(f"fault {name!r}: {right!r} must be in the reference exactly once")
    return Control(name, "fault", {"main.py": reference.replace(right, wrong)}, target, collateral)


class Template:
    """The pack. Every attribute is explained at ``casewarden_sdk.contract.Pack``."""

    id: str = "template"
    version: str = "0.1.0"
    description: str = "Add numbers (a pack to copy)"
    contract: str = (_HERE / "contract.md").read_text(encoding="utf-8")
    dimensions: Mapping[str, str] = {"sums": "0.7", "edges": "0.3"}
    protocol: str = "jsonl"
    candidates: tuple[str, ...] = ("program",)
    aggregation: str = "weighted-dimensions/v1"
    limits: Limits = Limits(case_seconds=30, response_seconds=10)
    default_argv: tuple[str, ...] = ("{python}", "-I", "-B", "main.py")
    sources: tuple[str, ...] = tuple(str(_HERE / name) for name in ("__init__.py", "contract.md"))
    exclusions: Mapping[str, str] = {}
    grader_checks: Mapping[str, str] = {
        "sum": "the answer is the sum",
        "no-fault": "the candidate broke nothing",
    }
    controls: Sequence[Control] = (
        Control("reference", "reference", {"main.py": _program("reference")}),
        Control("null-agent", "null", {"main.py": _program("null-agent")}),
        Control("crashing-agent", "crash", {"main.py": _program("crashing-agent")}),
        _fault("forgets-the-last", "sums", "total = sum(numbers)", "total = sum(numbers[:-1])", ("edges",)),
        _fault("adds-in-floats", "edges", "total = sum(numbers)", "total = int(sum(map(float, numbers)))"),
    )

    def cases(self, seed: int, params: Mapping[str, Any]) -> Sequence[Case]:
        """Return the cases of ``seed``; whatever driver and grader read of a case is in its content."""
        for name in params:
            raise ContractError(f"spec.task.params.{name}: template has no parameters; remove it")
        draw = random.Random(seed)  # noqa: S311 - repeatable draws are the point
        asked: Mapping[str, tuple[str, list[int]]] = {
            "two-numbers": ("sums", [draw.randrange(1, 100) for _ in range(2)]),
            "many-numbers": ("sums", [draw.randrange(1, 1000) for _ in range(20)]),
            "below-zero": ("edges", [-draw.randrange(1, 100), -1]),
            "huge-numbers": ("edges", [10**18 + 2 * draw.randrange(1, 100), 1]),
        }
        return [
            Case(name, (dimension,), {"id": name, "numbers": numbers}) for name, (dimension, numbers) in asked.items()
        ]

    async def drive(self, case: Case, runtime: Runtime) -> Any:
        """Play the case; judge nothing, and record whatever the candidate said or broke."""
        answer: Any = None
        fault: CandidateError | None = None
        try:
            async with await runtime.start() as process:
                answer = await process.request({"numbers": case.content["numbers"]})
                await process.finish("eof")
        except CandidateError as error:
            fault = error
        return {"answer": answer, "candidate_error": fault and {"reason": fault.reason, "message": fault.message}}

    def grade(self, case: Case, record: Any) -> Verdict:
        """Judge the record; the answer in it may be any JSON value."""
        (dimension,) = case.dimensions
        broken = record["candidate_error"] or {"reason": "Protocol", "message": "it broke nothing"}
        if not holds("no-fault", record["candidate_error"] is None):
            return Verdict.agent_error(case, broken["reason"], broken["message"])
        right = {"sum": sum(case.content["numbers"])}
        if holds("sum", canonical_equal(record["answer"], right)):
            return Verdict.assessed(case, {dimension: True})
        return Verdict.assessed(case, {dimension: False}, error=f"expected {right}, got {str(record['answer'])[:100]}")


PACK: Pack = Template()
