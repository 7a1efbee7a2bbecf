"""Web shopping as a task of AgentBench: a sample is a goal, its result the reward of what was bought."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from casewarden_sdk.agentbench import (
    AgentOutputStatus,
    ChatItem,
    SampleStatus,
    Session,
    Task,
    TaskOutput,
    TaskSampleExecutionResult,
)

from .goals import Goal
from .products import Catalogue
from .reward import reward
from .search import Search
from .site import Site

__all__ = ["Shopping", "parsed"]

# The bracket that closes first ends the argument, as in AgentBench.
_ACTION: Final = re.compile(r"[Aa]ction:\s*\n\s*((search|click)\[(.*?)\])", re.DOTALL)
_RULES: Final = """You are shopping on a web site. I tell you what to buy; every message of mine then shows the page
that you are on (Observation) and what can be done there (Available Actions). Where there is a search bar you can
search for words; otherwise you can click one of the clickables, exactly as it is written. Choose every
option that I ask for before you click buy now, which ends your visit.

Answer each message in this form, and with one action only:

Thought:
why you do it

Action:
search[words] or click[one of the clickables]"""
_NAMED: Final = 20
_ASKED: Final = "i need wool hiking socks in grey, and price lower than 20.00 dollars"
_ON_ITEM: Final = "['back to search', '< prev', 'description', 'features', 'reviews', 'buy now', 'brown', 'grey']"
_ITEM_PAGE: Final = (
    f"Instruction: [SEP] {_ASKED} [SEP] Back to Search [SEP] < Prev [SEP] color [SEP] brown [SEP] grey [SEP] "
    "Trailwise Wool Hiking Socks [SEP] Price: $14.5 [SEP] Rating: N.A. [SEP] Description [SEP] Features [SEP] Reviews "
    "[SEP] Buy Now"
)
_SHOWN: Final = (
    (
        f"WebShop [SEP] Instruction: [SEP] {_ASKED} [SEP] Search",
        "{'has_search_bar': True, 'clickables': ['search']}",
        "There is a search bar, so I search for what is wanted.",
        "search[wool hiking socks grey]",
    ),
    (
        f"Instruction: [SEP] {_ASKED} [SEP] Back to Search [SEP] Page 1 (Total results: 2) [SEP] B000000001 [SEP] "
        "Trailwise Wool Hiking Socks [SEP] $14.5 [SEP] B000000002 [SEP] Trailwise Cotton Sport Socks [SEP] $9.0",
        "{'has_search_bar': False, 'clickables': ['back to search', 'b000000001', 'b000000002']}",
        "The first is of wool and costs less than 20 dollars.",
        "click[b000000001]",
    ),
    (
        _ITEM_PAGE,
        f"{{'has_search_bar': False, 'clickables': {_ON_ITEM}}}",
        "Grey is asked for.",
        "click[grey]",
    ),
    (
        _ITEM_PAGE,
        f"{{'has_search_bar': False, 'clickables': {_ON_ITEM}}}",
        "Everything that was asked for is chosen.",
        "click[buy now]",
    ),
)


class Shopping(Task):
    """The goals of a run, over one catalogue that no case changes."""

    def __init__(self, catalogue: Catalogue, goals: Mapping[int, Goal], rounds: int) -> None:
        super().__init__(name="webshop")
        self.catalogue = catalogue
        self.goals = goals
        self.rounds = rounds

    def get_indices(self) -> list[Any]:
        """Return the places of the goals in their order."""
        return list(self.goals)

    async def start_sample(self, index: Any, session: Session) -> TaskSampleExecutionResult:
        """Play one visit."""
        goal = Goal.from_json(session.case.content["goal"])
        products = self.catalogue.products
        site = Site(goal.instruction, products, Search(products).find)
        session.inject(opening())
        history: list[dict[str, Any]] = []
        for _ in range(self.rounds):
            shown = {"observation": site.text(), "available_actions": _available(site)}
            output = await session.action({"role": "user", "content": _message(shown)})
            if output.status is AgentOutputStatus.CANCELLED:
                return TaskSampleExecutionResult(SampleStatus.UNKNOWN, _result(0.0, history))
            if output.status is AgentOutputStatus.AGENT_CONTEXT_LIMIT:
                return TaskSampleExecutionResult(SampleStatus.AGENT_CONTEXT_LIMIT, _result(0.0, history))
            response = output.content or ""
            action = parsed(response)
            if action is None:
                history.append({**shown, "response": response, "action": None, "reward": 0, "done": False})
                return TaskSampleExecutionResult(SampleStatus.AGENT_VALIDATION_FAILED, _result(0.0, history))
            gained = _act(site, action, goal, session)
            done = site.purchase is not None
            said = f"{action[0]}[{action[1]}]"
            history.append({**shown, "response": response, "action": said, "reward": gained, "done": done})
            if done:
                return TaskSampleExecutionResult(SampleStatus.COMPLETED, _result(gained, history))
        return TaskSampleExecutionResult(SampleStatus.TASK_LIMIT_REACHED, _result(0.0, history))

    def calculate_overall(self, results: list[TaskOutput]) -> Any:
        """Return the mean reward, where a visit without a result has none, and the rows that are no product."""
        total = sum(float(one.result["reward"]) for one in results if isinstance(one.result, Mapping))
        broken = [str(row) for row in self.catalogue.broken]
        return {
            "reward": total / len(results) if results else 0.0,
            "catalogue": {"products": len(self.catalogue.products), "broken": len(broken), "named": broken[:_NAMED]},
        }


def parsed(response: str) -> tuple[str, str] | None:
    """Return verb and argument of the first action in a reply, or None."""
    match = _ACTION.search(response)
    return None if match is None else (match.group(2), match.group(3))


def opening() -> list[ChatItem]:
    """Return the rules and one visit as an example."""
    items = [ChatItem("user", _RULES), ChatItem("agent", "Ok.")]
    for observation, available, thought, action in _SHOWN:
        items.append(ChatItem("user", _message({"observation": observation, "available_actions": available})))
        items.append(ChatItem("agent", f"Thought:\n{thought}\n\nAction:\n{action}"))
    return items


def _act(site: Site, action: tuple[str, str], goal: Goal, session: Session) -> float:
    verb, argument = action
    (site.search if verb == "search" else site.click)(argument)
    if site.purchase is None:
        return 0.0
    chosen: Sequence[str] = list(site.purchase.chosen.values())
    session.facts["purchase"] = {"product": site.purchase.product.to_json(), "chosen": dict(site.purchase.chosen)}
    return reward(site.purchase.product.to_json(), chosen, goal).total


def _available(site: Site) -> str:
    return str({"has_search_bar": site.has_search_bar, "clickables": site.clickables})


def _message(shown: Mapping[str, str]) -> str:
    return f"Observation:\n{shown['observation']}\n\nAvailable Actions:\n{shown['available_actions']}"


def _result(gained: float, history: list[dict[str, Any]]) -> dict[str, Any]:
    return {"reward": gained, "history": history}
