"""AgentBench's OS environment: problems that are solved in the shell of a Linux system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from casewarden_sdk.agentbench import SOURCES, AgentBenchPack, Dataset, TaskOutput, open_dataset
from casewarden_sdk.agentbench.task import Task
from casewarden_sdk.contract import Case, Control, Limits
from casewarden_sdk.errors import ContractError

from . import judging, planted, samples
from .task import ROUNDS, OSInteraction, needs_twin

__all__ = ["PACK", "AgentBenchOs"]

_HERE = Path(__file__).parent
_OWN = Dataset("own", str(_HERE / "own"))
_SPARE = Dataset("spare", str(_HERE / "spare"))
_PARAMS = ("dataset", "datasetDigest", "split", "indices", "images", "round_limit")
_MODULES = ("__init__", "checks", "dialogue", "judging", "replies", "samples", "sandbox", "shell", "task")
_TWIN = "-and-twin"
_MOST_ROUNDS = 100


def own_samples() -> list[dict[str, Any]]:
    """Return the samples of the pack's own data set."""
    return samples.load(_OWN, [samples.Source("data/own.json", "scripts", "own-")])


def _environment(name: str, image: str, memory_mib: int) -> dict[str, Any]:
    return {"name": name, "image": f"os-{image}", "profile": "baseline", "memory_mib": memory_mib}


def _kinds() -> dict[str, Any]:
    """Return the classes of cases: an image of the sandbox, alone or with a twin."""
    kinds = {}
    for image in samples.IMAGES:
        containers = [_environment("sandbox", image, 256), _environment("twin", image, 128)]
        kinds[image] = {"candidate": {"image": "python"}, "environments": containers[:1]}
        kinds[image + _TWIN] = {"candidate": {"image": "python"}, "environments": containers}
    return kinds


class AgentBenchOs(AgentBenchPack):
    """The pack; its attributes and methods are those of ``AgentBenchPack``."""

    id: str = "agentbench-os"
    version: str = "0.1.0"
    description: str = "Solve problems in the shell of a Linux system (AgentBench's OS interaction)"
    contract: str = (_HERE / "contract.md").read_text(encoding="utf-8")
    score: str = "overall.acc"
    passes: str = "the answer is right, or, where something was to be done, every check finds it done"
    limits: Limits = Limits(
        case_seconds=900, response_seconds=240, start_seconds=120, output_bytes=1 << 20, request_bytes=1 << 20
    )
    sources: tuple[str, ...] = (
        *SOURCES,
        *(str(_HERE / f"{name}.py") for name in _MODULES),
        str(_HERE / "contract.md"),
        *(str(path) for folder in ("own", "spare") for path in sorted((_HERE / folder).rglob("*")) if path.is_file()),
    )
    kinds: Mapping[str, Any] = _kinds()
    controls: Sequence[Control] = planted.controls(own_samples())

    def controls_for(self, params: Mapping[str, Any]) -> Sequence[Control]:
        """Return the controls for the samples that a run plays."""
        task = self.task(params, 0)
        assert isinstance(task, OSInteraction)
        return planted.controls(task.samples.values())

    def task(self, params: Mapping[str, Any], seed: int) -> Task:
        """Read the samples: of the data set that ``params`` names, else the pack's own."""
        for name in params:
            if name not in _PARAMS:
                known = ", ".join(_PARAMS)
                raise ContractError(f"spec.task.params.{name}: {self.id} has {known} and nothing else; remove it")
        if params.get("images", "default") not in ("default", "declared"):
            raise ContractError(
                f"spec.task.params.images is {params['images']!r}; give default (every sample runs in that image, as "
                "AgentBench v0.2 has it) or declared (the one that its create.local names)"
            )
        rounds = params.get("round_limit", ROUNDS)
        if not isinstance(rounds, int) or isinstance(rounds, bool) or not 1 <= rounds <= _MOST_ROUNDS:
            raise ContractError(f"spec.task.params.round_limit is {rounds!r}; give a whole number, 1 to {_MOST_ROUNDS}")
        declared = params.get("images") == "declared"
        return OSInteraction(self.id, _chosen(self._samples(params), params.get("indices")), rounds, declared)

    def _samples(self, params: Mapping[str, Any]) -> list[dict[str, Any]]:
        dataset = open_dataset(params)
        if dataset is None:
            if "split" in params:
                raise ContractError("spec.task.params.split: the pack's own data set has no splits; remove it")
            return own_samples()
        split = params.get("split", "dev")
        if split not in samples.SPLITS:
            raise ContractError(f"spec.task.params.split is {split!r}; give one of {', '.join(samples.SPLITS)}")
        return samples.load(dataset, samples.SPLITS[split], _SPARE)

    def content(self, task: Task, index: int | str) -> Mapping[str, Any]:
        """Return the sample."""
        return {"sample": _sample(task, index)}

    def kind_of(self, task: Task, index: int | str) -> str:
        """Return the image, with or without a twin."""
        sample = _sample(task, index)
        assert isinstance(task, OSInteraction)
        return (sample["image"] if task.declared else "default") + (_TWIN if needs_twin(sample) else "")

    def passed(self, case: Case, output: TaskOutput, facts: Mapping[str, Any]) -> bool:
        """Tell whether the answer is right, or the deed done."""
        return judging.finding(case.content["sample"], facts) == ""

    def explain(self, case: Case, output: TaskOutput, facts: Mapping[str, Any]) -> str | None:
        """Say what is wrong."""
        return (judging.finding(case.content["sample"], facts) or None) if facts.get("committed") is True else None

    def metrics(self, case: Case, output: TaskOutput, facts: Mapping[str, Any]) -> Mapping[str, Any]:
        """Count the programs of the sandbox that the agent replaced."""
        changed = facts.get("changed")
        return {"replaced_programs": len(changed) if isinstance(changed, list) else 0}


def _chosen(found: list[dict[str, Any]], indices: Any) -> list[dict[str, Any]]:
    """Return the samples of these indices, all of them where that is None."""
    if indices is None:
        return found
    if not isinstance(indices, list) or not indices or not all(isinstance(index, str) for index in indices):
        raise ContractError(f"spec.task.params.indices is {indices!r:.80}; give a list of indices, as texts")
    known = {sample["id"] for sample in found}
    for index in indices:
        if index not in known:
            raise ContractError(
                f"spec.task.params.indices: there is no sample {index!r}; they go from {min(known)} to {max(known)}"
            )
    return [sample for sample in found if sample["id"] in indices]


def _sample(task: Task, index: int | str) -> Mapping[str, Any]:
    assert isinstance(task, OSInteraction)
    return task.samples[str(index)]


PACK = AgentBenchOs()
