"""agentbench-webshop: AgentBench's web shopping, over WebShop's products or a shop of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from casewarden_sdk.agentbench import (
    SOURCES,
    AgentBenchPack,
    Dataset,
    TaskOutput,
    chosen_indices,
    keeps_to_v0_2,
    open_dataset,
    refuse_unknown,
    whole_number,
)
from casewarden_sdk.contract import Case, Control, Limits
from casewarden_sdk.errors import ContractError

from . import planted
from .goals import NO_LIMIT, Goal, order, read_goals
from .own import own_catalogue, own_goals
from .products import attributes_of, read_products
from .reward import Reward, reward
from .task import Shopping

__all__ = ["PACK", "ShopPack"]

_HERE: Final = Path(__file__).parent
_FILES: Final = (
    "__init__.py", "contract.md", "goals.py", "own.py", "products.py", "reward.py", "search.py", "site.py", "task.py",
)  # fmt: skip
_SPLITS: Final = {"dev": range(200, 280), "std": range(200)}
_ROUNDS, _MOST_ROUNDS = 10, 100
_KNOWN: Final = ("compat", "dataset", "datasetDigest", "indices", "round", "split")


class ShopPack(AgentBenchPack):
    """The pack; see ``AgentBenchPack``."""

    id = "agentbench-webshop"
    version = "1.0.0"
    description = "AgentBench, web shopping: find and buy what was asked for, with its options, below its price"
    contract = (_HERE / "contract.md").read_text(encoding="utf-8")
    score = "reward"
    passes = (
        "the reward is 1: the right sort of thing, with every attribute and option that was asked for, at the price"
    )
    dimensions: Mapping[str, str] = {"kind": "0.3", "attributes": "0.25", "options": "0.25", "price": "0.2"}
    limits = Limits(case_seconds=900, response_seconds=240, output_bytes=1 << 20, request_bytes=1 << 20)
    sources = (*SOURCES, *(str(_HERE / name) for name in _FILES))
    controls: Sequence[Control] = planted.controls()

    def task(self, params: Mapping[str, Any], seed: int) -> Shopping:
        """Make the task: our own shop, or WebShop's files in a data set."""
        refuse_unknown(params, _KNOWN, self.id)
        compat = keeps_to_v0_2(params)
        rounds = whole_number(params, "round", _ROUNDS, _MOST_ROUNDS)
        dataset = open_dataset(params)
        if dataset is not None:
            shop = _webshop(dataset, params.get("split", "std"), compat, rounds)
            return Shopping(shop.catalogue, _chosen(shop.goals, params), rounds)
        if "split" in params:
            raise ContractError("spec.task.params.split: says what of a data set is played; give dataset too")
        return Shopping(own_catalogue(), _chosen(dict(enumerate(own_goals())), params), rounds)

    def content(self, task: Any, index: Any) -> Mapping[str, Any]:
        """Return the goal."""
        return {"goal": task.goals[index].to_json()}

    def dimensions_of(self, task: Any, index: Any) -> tuple[str, ...]:
        """Return what was asked for: a goal may have no option and no limit of its price."""
        goal: Goal = task.goals[index]
        asked = {"options": bool(goal.options), "price": goal.price_upper < NO_LIMIT}
        return tuple(name for name in self.dimensions if asked.get(name, True))

    def checks(self, case: Case, output: TaskOutput, facts: Mapping[str, Any]) -> Mapping[str, bool]:
        """Judge what was bought, each part for itself."""
        found = _judged(case, facts)
        all_of = {"kind": False, "attributes": False, "options": False, "price": False}
        if found is not None:
            all_of = {
                "kind": found.kind == 1,
                "attributes": found.attributes == found.attributes_of,
                "options": found.options == found.options_of,
                "price": found.price,
            }
        return {name: all_of[name] for name in case.dimensions}

    def metrics(self, case: Case, output: TaskOutput, facts: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the reward and how many turns it took."""
        found = _judged(case, facts)
        turns = len((output.result or {}).get("history", ()))
        return {"reward": 0.0 if found is None else found.total, "turns": turns}

    def explain(self, case: Case, output: TaskOutput, facts: Mapping[str, Any]) -> str | None:
        """Say what was not as asked."""
        found = _judged(case, facts)
        if found is None:
            return "nothing was bought"
        goal = Goal.from_json(case.content["goal"])
        told = []
        if found.kind < 1:
            told.append(f"kind: {facts['purchase']['product']['title']!r} is not the sort of thing that was asked for")
        if found.attributes < found.attributes_of:
            told.append(f"attributes: {found.attributes} of {found.attributes_of} ({', '.join(goal.attributes)})")
        if found.options < found.options_of:
            chosen = ", ".join(facts["purchase"]["chosen"].values()) or "none"
            told.append(f"options: {found.options} of {found.options_of} ({', '.join(goal.options)}); chosen: {chosen}")
        if not found.price:
            told.append(f"price: {facts['purchase']['product']['price']:.2f} is over {goal.price_upper:.2f}")
        return "; ".join(told) or None


def _chosen(goals: Mapping[int, Goal], params: Mapping[str, Any]) -> dict[int, Goal]:
    """Return the goals that a run plays, by their numbers: all, unless it names some by their places in the split."""
    numbers = list(goals)
    return {numbers[place]: goals[numbers[place]] for place in chosen_indices(params, len(numbers))}


def _judged(case: Case, facts: Mapping[str, Any]) -> Reward | None:
    bought = facts.get("purchase")
    if bought is None:
        return None
    return reward(bought["product"], list(bought["chosen"].values()), Goal.from_json(case.content["goal"]))


def _webshop(dataset: Dataset, split: Any, compat: bool, rounds: int) -> Shopping:
    if split not in _SPLITS:
        raise ContractError(f"spec.task.params.split is {split!r}; give one of {', '.join(_SPLITS)}")
    items, traits, human = (
        _file(dataset, pattern) for pattern in ("items_shuffle*.json", "items_ins_v2*.json", "items_human_ins.json")
    )
    catalogue = read_products(dataset.text(items), attributes_of(dataset.text(traits), traits), items)
    goals = order(read_goals(dataset.text(human), catalogue, human, compat))
    chosen = {number: goals[number] for number in _SPLITS[split] if number < len(goals)}
    if not chosen:
        first = _SPLITS[split].start
        raise ContractError(
            f"spec.task.params.split: {split} starts at goal {first}, and the data set has {len(goals)}; give another"
        )
    return Shopping(catalogue, chosen, rounds)


def _file(dataset: Dataset, pattern: str) -> str:
    found = dataset.names(f"*{pattern}")
    # The smaller set has the longer name (`…_1000`), and is what AgentBench's own copy points at.
    if not found:
        raise ContractError(
            f"spec.task.params.dataset: data set {dataset.name!r} has no {pattern}; it is one of WebShop's"
        )
    return max(found, key=lambda name: (len(name), name))


PACK = ShopPack()
