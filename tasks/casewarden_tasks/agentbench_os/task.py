"""AgentBench's OS environment as a task: a problem, a shell, eight turns, and a judgement of answer or deeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from casewarden_sdk.agentbench import (
    AgentOutputStatus,
    SampleStatus,
    Session,
    Task,
    TaskOutput,
    TaskSampleExecutionResult,
)
from casewarden_sdk.environment import Environment
from casewarden_sdk.errors import EnvironmentFailure

from . import replies, sandbox
from .dialogue import opening
from .judging import compare, finding
from .shell import Shell

__all__ = ["ROUNDS", "OSInteraction"]

ROUNDS: Final = 8
_LONGEST_ANSWER: Final = 30_000  # characters: four bytes each, and it is an argument of check scripts


class OSInteraction(Task):
    """The samples of a data set, as ``samples.load`` returns them; ``declared`` says that their own images count."""

    def __init__(
        self, name: str, samples: Sequence[Mapping[str, Any]], round_limit: int = ROUNDS, declared: bool = False
    ) -> None:
        super().__init__(name=name, concurrency=1)
        self.round_limit = round_limit
        self.declared = declared
        self.samples = {str(sample["id"]): sample for sample in samples}

    def get_indices(self) -> list[int | str]:
        """Return the indices, sorted."""
        return list(self.samples)

    async def start_sample(self, index: int | str, session: Session) -> TaskSampleExecutionResult:
        """Prepare the containers, let the agent act, judge."""
        sample = session.case.content["sample"]
        box = await session.runtime.environment("sandbox")
        twin = await session.runtime.environment("twin") if needs_twin(sample) else None
        shell, other = await sandbox.prepare_both(box, twin, sample)
        before = await sandbox.watch(box)
        box.acts()
        session.inject(opening(sample["description"]))
        status, facts = await _play(session, shell, self.round_limit)
        facts["changed"] = sandbox.replaced(before, await sandbox.watch(box, agent=True))
        if facts.get("committed") and "steps" in sample:
            facts["steps"] = await _pipeline(sample["steps"], facts["answer"], box, twin)
            facts["changed"] = sandbox.replaced(before, await sandbox.watch(box, agent=True))
        for used in (shell, other):
            if used is not None:
                await used.close()
        session.facts.update(facts)
        result = {
            "result": finding(sample, facts) == "",
            "file": sample["file"],
            "index_in_file": sample["index_in_file"],
        }
        if status is SampleStatus.TASK_LIMIT_REACHED:
            result["reason"] = "round limit"
        return TaskSampleExecutionResult(status=status, result=result)

    def calculate_overall(self, results: list[TaskOutput]) -> dict[str, Any]:
        """Return AgentBench's figures: how many samples there were, how many passed, and their share."""
        passed = sum(isinstance(item.result, dict) and bool(item.result.get("result")) for item in results)
        total = len(results)
        return {
            "overall": {"total": total, "pass": passed, "wrong": total - passed, "acc": passed / total if total else 0}
        }


def needs_twin(sample: Mapping[str, Any]) -> bool:
    """Tell whether a sample has a reference command that runs in the sandbox's twin."""
    return any(step["where"] == "twin" for step in sample.get("steps", ()))


async def _play(session: Session, shell: Shell, rounds: int) -> tuple[SampleStatus, dict[str, Any]]:
    """Let the agent act until it commits; the answer is None where it finishes without one."""
    for _ in range(rounds):
        turn = await session.action()
        if turn.status is AgentOutputStatus.AGENT_CONTEXT_LIMIT:
            return SampleStatus.AGENT_CONTEXT_LIMIT, {"committed": False}
        if turn.status is not AgentOutputStatus.NORMAL:
            return SampleStatus.UNKNOWN, {"committed": False}
        action = replies.parse(turn.content or "")
        if action is None:
            return SampleStatus.AGENT_INVALID_ACTION, {"committed": False}
        if action.kind != replies.BASH:
            return SampleStatus.COMPLETED, {"committed": True, "answer": action.text}
        said = replies.cleaned(await shell.run(action.text or ""))
        session.inject({"role": "user", "content": replies.observation(said)})
    return SampleStatus.TASK_LIMIT_REACHED, {"committed": False}


async def _pipeline(
    steps: Sequence[Mapping[str, Any]], answer: str | None, box: Environment, twin: Environment | None
) -> list[dict[str, Any]]:
    """Make the checks, in order, until one fails; each is given the answer and what those before it said."""
    params = [str(answer)[:_LONGEST_ANSWER].replace("\0", "")]
    rows: list[dict[str, Any]] = []
    for step in steps:
        where, output = step["where"], ""
        if where == "grader":
            code: int | None = 0 if compare(step["program"], params) else 1
        else:
            place = twin if where == "twin" else box
            assert place is not None
            done = await sandbox.run_script(place, step, params, agent=where == "sandbox")
            if done.timed_out and where == "twin":
                raise EnvironmentFailure("EnvironmentFailed", "the reference command took too long in the twin")
            code, output = done.code, done.stdout.decode("utf-8", "replace").replace("\0", "")[: sandbox.OUTPUT // 4]
        rows.append({"where": where, "code": code, "output": output})
        if code != 0:
            break
        params.append(output)
    return rows
