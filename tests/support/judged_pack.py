"""A pack whose driver asks a judge of its own: a program says a number, and a model says whether it is right.

It imports the SDK alone, so that a test can hand it to a task image as it stands.
"""

from __future__ import annotations

from typing import Any, ClassVar

from casewarden_sdk.contract import Case, Control, Limits, Verdict

REFERENCE = "for line in open(0): print(42, flush=True)\n"
UNSPEAKABLE = "for line in open(0): print('\"unspeakable\"', flush=True)\n"
FAULT = "for line in open(0): print(41, flush=True)\n"


class JudgedPack:
    """Wants 42, by the word of its judge."""

    id = "judged"
    version = "0.1.0"
    description = "Is judged"
    contract = "You are sent a line. Answer with the JSON number that the judge likes."
    dimensions: ClassVar = {"right": "1"}
    protocol = "jsonl"
    candidates = ("program",)
    aggregation = "weighted-dimensions/v1"
    limits = Limits(case_seconds=30, response_seconds=10)
    default_argv = ("{python}", "-I", "main.py")
    sources = (__file__,)
    exclusions: ClassVar[dict[str, str]] = {}
    controls = (
        Control("reference", "reference", {"main.py": REFERENCE}),
        Control("off-by-one", "fault", {"main.py": FAULT}, target="right"),
    )
    models: ClassVar = {"judge": "says yes or no"}

    def cases(self, seed: int, params: Any) -> list[Case]:
        """One case."""
        return [Case("forty-two", ("right",), {"id": "forty-two"})]

    async def drive(self, case: Case, runtime: Any) -> Any:
        """Take a number and have it judged."""
        async with await runtime.start() as process:
            said = await process.request("go")
            question = [{"role": "system", "content": "Is it 42?"}, {"role": "user", "content": str(said)[:100]}]
            control = [question[0], {"role": "user", "content": "42"}]
            answer = await runtime.ask_model("judge", question, parameters={"temperature": 0}, control=control)
            await process.finish("kill")
        return {"said": said, "judged": answer["content"]}

    def grade(self, case: Case, record: Any) -> Verdict:
        """Believe the judge."""
        right = record["judged"].startswith("yes")
        return Verdict.assessed(case, {"right": right}, None if right else f"the judge said {record['judged']!r}")


PACK = JudgedPack()
