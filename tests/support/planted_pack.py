"""A pack with a bug planted in its grader, and the version in which it is mended: the line ``PLANTED`` tells which.

It imports the SDK alone, so that a test can hand it to a task image as it stands.
"""

from __future__ import annotations

from typing import Any, ClassVar

from casewarden_sdk.checks import holds
from casewarden_sdk.contract import Case, Control, Limits, Verdict
from casewarden_sdk.errors import CandidateError, ContractError, EnvironmentFailure

PLANTED = True

REFERENCE = """\
import json, sys
asked = json.loads(input())
print(json.dumps({"sum": sum(asked["numbers"]), "says": "thank you"}), flush=True)
sys.stdin.read()
"""
WRONG = REFERENCE.replace("sum(asked", "1 + sum(asked")
RUDE = REFERENCE.replace("thank you", "well")


class PlantedPack:
    """Wants a sum, and thanks for being asked."""

    id = "planted"
    version = "0.1.0" if PLANTED else "0.2.0"
    description = "Adds numbers, politely"
    contract = "Answer one object: sum, and says, which is thank you."
    dimensions: ClassVar = {"answer": "0.6", "manners": "0.4"}
    protocol = "jsonl"
    candidates = ("program",)
    aggregation = "weighted-dimensions/v1"
    limits = Limits(case_seconds=30, response_seconds=10)
    default_argv = ("{python}", "-I", "main.py")
    sources = (__file__,)
    exclusions: ClassVar[dict[str, str]] = {}
    grader_checks: ClassVar = {"sum": "the sum is right", "thanks": "it says thank you"}
    controls = (
        Control("reference", "reference", {"main.py": REFERENCE}),
        Control("wrong", "fault", {"main.py": WRONG}, target="answer"),
        Control("rude", "fault", {"main.py": RUDE}, target="manners"),
        # A fault that does nothing but break is itself a bug: it shows nothing of any dimension.
        *((Control("breaks", "fault", {"main.py": "raise SystemExit(1)"}, target="answer"),) if PLANTED else ()),
    )

    def cases(self, seed: int, params: dict[str, Any]) -> list[Case]:
        """One case; with the parameter ``trouble`` its environment never works."""
        if set(params) - {"trouble"}:
            raise ContractError(f"spec.task.params: {sorted(params)}: there is only trouble")
        content = {"id": "add", "numbers": [seed, 2], "trouble": bool(params.get("trouble"))}
        return [Case("add", ("answer", "manners"), content)]

    async def drive(self, case: Case, runtime: Any) -> Any:
        """Ask once."""
        if case.content["trouble"]:
            raise EnvironmentFailure("EnvironmentFailed", "what the agent would act upon is away")
        try:
            async with await runtime.start() as process:
                answer = await process.request({"numbers": case.content["numbers"]})
                await process.finish("eof")
        except CandidateError as error:
            return {"fault": {"reason": error.reason, "message": error.message}}
        return {"answer": answer}

    def grade(self, case: Case, record: Any) -> Verdict:
        """Compare; the planted bug is that nobody's manners are ever found wanting."""
        if "fault" in record:
            return Verdict.agent_error(case, record["fault"]["reason"], record["fault"]["message"])
        answer = record["answer"] if isinstance(record["answer"], dict) else {}
        checks = {
            "answer": holds("sum", answer.get("sum") == sum(case.content["numbers"])),
            "manners": PLANTED or holds("thanks", answer.get("says") == "thank you"),
        }
        return Verdict.assessed(case, checks)


PACK = PlantedPack()
