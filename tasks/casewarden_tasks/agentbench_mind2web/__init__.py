"""agentbench-mind2web: AgentBench's web browsing, over Mind2Web's records or twenty tasks of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from casewarden_sdk.agentbench import (
    SOURCES,
    AgentBenchPack,
    TaskOutput,
    chosen_indices,
    chosen_split,
    keeps_to_v0_2,
    open_dataset,
    refuse_unknown,
)
from casewarden_sdk.contract import Case, Control, Limits
from casewarden_sdk.errors import ContractError

from . import planted
from .own import own_tasks
from .records import Operation, Records, Sample, read_records, samples_of
from .rounds import action_f1
from .task import Browsing

__all__ = ["PACK", "BrowsingPack"]

_HERE: Final = Path(__file__).parent
_FILES: Final = (
    "__init__.py", "contract.md", "own.py", "page.py", "ranking.py", "records.py", "rounds.py", "task.py",
)  # fmt: skip
# v0.2 plays the indices from 0 to 99, whatever there is.
_V0_2_INDICES: Final = 100
_SPLITS: Final = ("dev", "std")
_KNOWN: Final = ("compat", "dataset", "datasetDigest", "indices", "split")


class BrowsingPack(AgentBenchPack):
    """The pack; see ``AgentBenchPack``."""

    id = "agentbench-mind2web"
    version = "1.0.0"
    description = "AgentBench, web browsing: choose the element of a recorded page that the next action is on"
    contract = (_HERE / "contract.md").read_text(encoding="utf-8")
    score = "main"
    passes = "the step is right: one of the right elements, and exactly the operation with its value"
    dimensions: Mapping[str, str] = {"element": "0.5", "operation": "0.25", "value": "0.25"}
    limits = Limits(case_seconds=900, response_seconds=240, output_bytes=1 << 20, request_bytes=1 << 20)
    sources = (*SOURCES, *(str(_HERE / name) for name in _FILES))
    controls: Sequence[Control] = planted.controls()

    def task(self, params: Mapping[str, Any], seed: int) -> Browsing:
        """Make the task: our own records, or Mind2Web's in a data set."""
        refuse_unknown(params, _KNOWN, self.id)
        compat = keeps_to_v0_2(params)
        records = _records(params)
        wanted = chosen_indices(params, len(records.samples))
        if compat:
            wanted = [index for index in wanted if index < _V0_2_INDICES]
        return Browsing(records, wanted, compat)

    def content(self, task: Any, index: Any) -> Mapping[str, Any]:
        """Return the action to be found, without its page."""
        return {"action": task.records.samples[index].to_json()}

    def dimensions_of(self, task: Any, index: Any) -> tuple[str, ...]:
        """Return what there is to get right: a click has no value."""
        valued = bool(task.records.samples[index].operation.value)
        return tuple(name for name in self.dimensions if valued or name != "value")

    def checks(self, case: Case, output: TaskOutput, facts: Mapping[str, Any]) -> Mapping[str, bool]:
        """Judge the step, each part for itself; all of them are right just where the step is."""
        element, said, wanted = _judged(case, output)
        op, _, value = said.partition(" ")
        made = Operation(op, value)
        all_of = {
            "element": element,
            "operation": made.op == wanted.op and (bool(wanted.value) or not made.value),
            "value": set(made.value.split()) == set(wanted.value.split()),
        }
        return {name: all_of[name] for name in case.dimensions}

    def metrics(self, case: Case, output: TaskOutput, facts: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return AgentBench's three of this step, and how many rounds it took."""
        element, said, wanted = _judged(case, output)
        f1 = action_f1(said, wanted.words)
        return {
            "element_acc": int(element),
            "action_f1": f1,
            "step_sr": int(element and f1 >= 1),
            "rounds": facts.get("rounds", 0),
        }

    def explain(self, case: Case, output: TaskOutput, facts: Mapping[str, Any]) -> str | None:
        """Say which part is not right."""
        element, said, wanted = _judged(case, output)
        if not case.content["action"]["positives"]:
            return "the ranks bring no right element among the candidates: no agent can find it"
        told = [] if element else ["element: another one was chosen" if said else "element: none was chosen"]
        if said != wanted.words:
            told.append(f"operation: {said or 'none'!r} and not {wanted.words!r}")
        return "; ".join(told) or None


def _judged(case: Case, output: TaskOutput) -> tuple[bool, str, Operation]:
    action = case.content["action"]
    node, said = output.result["final_prediction"] if isinstance(output.result, Mapping) else ("", "")
    return node in action["positives"], said, Operation(**action["operation"])


def _records(params: Mapping[str, Any]) -> Records:
    dataset = open_dataset(params)
    if dataset is None:
        if "split" in params:
            raise ContractError("spec.task.params.split: says what of a data set is played; give dataset too")
        own = [sample for task in own_tasks() for sample in samples_of(task, None) if isinstance(sample, Sample)]
        return Records(dict(enumerate(own)), ())
    split = chosen_split(params, _SPLITS)
    return read_records(dataset, split)


PACK = BrowsingPack()
