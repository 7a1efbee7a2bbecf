"""A small pack for tests of what is around packs: whole, changeable, and with no meaning of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from casewarden_sdk.contract import Case, Control, Limits, Verdict

REFERENCE = "import sys\nfor line in sys.stdin:\n    print(line, end='', flush=True)\n"
LIMITS = Limits(case_seconds=20, response_seconds=5, output_bytes=65536)
CONTROLS = (
    Control("reference", "reference", {"main.py": REFERENCE}),
    Control("null-agent", "null", {"main.py": ""}),
    Control("deaf", "fault", {"main.py": "for line in __import__('sys').stdin: print(0, flush=True)\n"}, target="echo"),
)


def cases(seed: int, params: Mapping[str, Any] | None = None) -> list[Case]:
    """One case that wants its requests echoed."""
    return [Case("say-it-again", ("echo",), {"id": "say-it-again", "requests": [seed, {"a": [1, None]}]})]


@dataclass
class EchoPack:
    """Wants every request back. Every attribute can be replaced."""

    id: str = "echo"
    version: str = "0.1.0"
    description: str = "Says it again"
    contract: str = "Answer every line with itself."
    dimensions: Mapping[str, str] = field(default_factory=lambda: {"echo": "1"})
    protocol: str = "jsonl"
    candidates: tuple[str, ...] = ("program",)
    aggregation: str = "weighted-dimensions/v1"
    limits: Limits = LIMITS
    default_argv: tuple[str, ...] = ("{python}", "-I", "-B", "main.py")
    sources: tuple[str, ...] = (__file__,)
    controls: Sequence[Control] = CONTROLS
    exclusions: Mapping[str, str] = field(default_factory=dict)
    grader_checks: Mapping[str, str] = field(default_factory=lambda: {"same": "it says the same", "ended": "it ended"})
    make: Any = cases

    def cases(self, seed: int, params: Mapping[str, Any]) -> Sequence[Case]:
        """What ``make`` returns."""
        made: Sequence[Case] = self.make(seed, params)
        return made

    async def drive(self, case: Case, runtime: Any) -> Any:
        """Ask everything in one session."""
        async with await runtime.start() as process:
            answers = [await process.request(request) for request in case.content["requests"]]
            await runtime.note("answers", answers)
            ended = await process.finish("eof")
        return {"answers": answers, "exit": ended.to_json()}

    def grade(self, case: Case, record: Any) -> Verdict:
        """Compare."""
        same = record["answers"] == case.content["requests"]
        checks = dict.fromkeys(case.dimensions, same)
        return Verdict.assessed(case, checks, None if same else f"got {record['answers']!r}")


PACK = EchoPack()
# Text hashes differ from process to process, so that no two plans of this pack are equal.
UNSTABLE = EchoPack(make=lambda seed, params: [Case("a", ("echo",), {"id": "a", "requests": [hash("x")]})])
