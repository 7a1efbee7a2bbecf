"""What model calls used: read from answers, held against what can be counted, summed up by run.

Where an endpoint has a tokenizer, the text that went by is counted: a report of that many tokens or more is taken as
``reported`` (a model sees more than the text, and may think unseen), of less gives way to what was ``counted``. Where
it has none, a report is taken when it is possible for the text, else the text is ``estimated`` at four bytes a token.
What is unknown is never 0.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any, Literal

from casewarden.api.endpoint import Price

from .tokens import Count

__all__ = ["Budget", "BudgetSpent", "CallUsage", "RunUsage", "UsageReader", "estimated_tokens", "said_bytes"]

Source = Literal["counted", "reported", "estimated"]
# Of several, the one that says least.
_ORDER: tuple[Source, ...] = ("counted", "reported", "estimated")
_BYTES_PER_TOKEN = 4
# No tokenizer in use packs more text than this into its average token: less than that is a false report.
_MOST_BYTES_PER_TOKEN = 16
_SAID = frozenset({"content", "text", "arguments", "reasoning_content", "reasoning", "partial_json", "thinking",
                   "prompt", "input", "refusal"})  # fmt: skip


@dataclass(frozen=True, slots=True)
class CallUsage:
    """Tokens of one answered call."""

    prompt: int
    completion: int
    source: Source

    @property
    def total(self) -> int:
        """Both together."""
        return self.prompt + self.completion


class BudgetSpent(Exception):
    """The run's budget has no room for the call; the message says which part of it."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What a run may use in all; None is no bound."""

    tokens: int | None = None
    calls: int | None = None
    cost: Decimal | None = None


@dataclass(slots=True)
class RunUsage:
    """One run's sum: of its candidate's model, and in ``models`` of each of the task's own, by role.

    ``cost`` is None where the endpoint has no price.
    """

    prompt: int = 0
    completion: int = 0
    calls: int = 0
    source: Source = "reported"
    cost: Decimal | None = None
    models: dict[str, RunUsage] = field(default_factory=dict)
    reserved_tokens: int = field(default=0, compare=False)
    reserved_calls: int = field(default=0, compare=False)
    reserved_cost: Decimal = field(default=Decimal(0), compare=False)

    def of(self, role: str | None) -> RunUsage:
        """Return the sum that a call counts into; None is the candidate's model."""
        return self if role is None else self.models.setdefault(role, RunUsage())

    def reserve(self, budget: Budget, tokens: int, cost: Decimal | None) -> None:
        """Take room for one call, or raise ``BudgetSpent``; a call under way counts as what it reserved."""
        if budget.calls is not None and self.calls + self.reserved_calls + 1 > budget.calls:
            raise BudgetSpent(f"the run's {budget.calls} model calls are used up")
        used = self.prompt + self.completion
        if budget.tokens is not None and used + self.reserved_tokens + tokens > budget.tokens:
            raise BudgetSpent(f"the run's {budget.tokens} tokens are used up ({used} used)")
        if budget.cost is not None:
            if cost is None:
                raise BudgetSpent("the run has a budget of money and its endpoint has no price: ask for one")
            if (self.cost or Decimal(0)) + self.reserved_cost + cost > budget.cost:
                raise BudgetSpent(f"the run's {budget.cost} of money are used up ({self.cost or 0} used)")
        self.reserved_tokens += tokens
        self.reserved_calls += 1
        self.reserved_cost += cost or Decimal(0)

    def release(self, tokens: int, cost: Decimal | None) -> None:
        """Give back what ``reserve`` took."""
        self.reserved_tokens -= tokens
        self.reserved_calls -= 1
        self.reserved_cost -= cost or Decimal(0)

    def add(self, usage: CallUsage, price: Price | None) -> None:
        """Count an answered call."""
        self.prompt += usage.prompt
        self.completion += usage.completion
        self.calls += 1
        self.source = usage.source if self.calls == 1 else _weaker(self.source, usage.source)
        if price is not None:
            self.cost = (self.cost or Decimal(0)) + cost_of(price, usage.prompt, usage.completion)

    def to_json(self) -> dict[str, Any]:
        """Return the document that is kept; ``from_json`` reads it."""
        models = {role: usage._sums() for role, usage in self.models.items() if usage.calls}
        return {"v": 1, **self._sums(), **({"models": models} if models else {})}

    def _sums(self) -> dict[str, Any]:
        return {
            "prompt_tokens": self.prompt,
            "completion_tokens": self.completion,
            "model_calls": self.calls,
            "source": self.source,
            "cost": None if self.cost is None else format(self.cost.normalize(), "f"),
        }

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> RunUsage:
        """Read ``to_json`` back."""
        cost = document.get("cost")
        return cls(
            prompt=int(document["prompt_tokens"]),
            completion=int(document["completion_tokens"]),
            calls=int(document["model_calls"]),
            source=document["source"] if document["source"] in _ORDER else "estimated",
            cost=None if cost is None else Decimal(cost),
            models={role: cls.from_json(item) for role, item in (document.get("models") or {}).items()},
        )


def cost_of(price: Price, prompt: int, completion: int) -> Decimal:
    """Return the price of so many tokens, to 8 places."""
    exact = (Decimal(price.prompt) * prompt + Decimal(price.completion) * completion) / 1_000_000
    return exact.quantize(Decimal("0.00000001"), ROUND_HALF_EVEN)


def _said(value: Any, counts: bool) -> Iterator[str]:
    if isinstance(value, str):
        if counts:
            yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _said(item, counts=key in _SAID or (counts and key not in ("type", "role", "id")))
    elif isinstance(value, list):
        for item in value:
            yield from _said(item, counts)


def said_bytes(document: Any) -> int:
    """Count the bytes of what a request or an answer says, without the words of its format."""
    return sum(len(text.encode("utf-8", "replace")) for text in _said(document, counts=False))


def estimated_tokens(text_bytes: int) -> int:
    """Return how many tokens so much text may be."""
    return math.ceil(text_bytes / _BYTES_PER_TOKEN)


class UsageReader:
    """Collects the counts of one answer, whole or event by event.

    With ``count`` the texts of request and answer are kept and counted when they are asked for.
    """

    def __init__(self, prompt_bytes: int, request: bytes = b"", count: Count | None = None) -> None:
        self._prompt_bytes = prompt_bytes
        self._request = request
        self._count = count
        self._texts: list[str] = []
        self._said = 0
        self._made: CallUsage | None = None
        self._prompt: int | None = None
        self._completion: int | None = None

    def read(self, document: Any) -> None:
        """Take an answer's document, or the data of one of its events."""
        if not isinstance(document, Mapping):
            return
        self._made = None
        said = {name: item for name, item in document.items() if name != "usage"}
        self._said += said_bytes(said)
        if self._count is not None:
            self._texts += _said(said, counts=False)
        for holder in (document, document.get("message"), document.get("response")):
            usage = holder.get("usage") if isinstance(holder, Mapping) else None
            if isinstance(usage, Mapping):
                read = ("prompt_tokens", "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
                self._prompt = _larger(self._prompt, _sum(usage, read))
                self._completion = _larger(self._completion, _sum(usage, ("completion_tokens", "output_tokens")))

    def usage(self) -> CallUsage:
        """Return what the call used; counted once, however often it is asked for."""
        if self._made is None:
            self._made = self._counted()
        return self._made

    def _counted(self) -> CallUsage:
        if self._count is not None:
            asked = "\n".join(_said(json.loads(self._request), counts=False))
            prompt, of_prompt = _held_against_count(self._prompt, self._count(asked))
            completion, of_answer = _held_against_count(self._completion, self._count("".join(self._texts)))
        else:
            prompt, of_prompt = _held_against(self._prompt, self._prompt_bytes)
            completion, of_answer = _held_against(self._completion, self._said)
        return CallUsage(prompt, completion, _weaker(of_prompt, of_answer))


def _sum(usage: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    counts = [usage[name] for name in names if type(usage.get(name)) is int]
    return sum(counts) if counts and min(counts) >= 0 and sum(counts) < 1 << 40 else None


def _larger(first: int | None, second: int | None) -> int | None:
    return second if first is None else first if second is None else max(first, second)


def _held_against(reported: int | None, text_bytes: int) -> tuple[int, Source]:
    if reported is None or reported * _MOST_BYTES_PER_TOKEN < text_bytes:
        return estimated_tokens(text_bytes), "estimated"
    return reported, "reported"


def _held_against_count(reported: int | None, counted: int) -> tuple[int, Source]:
    if reported is None or reported < counted:
        return counted, "counted"
    return reported, "reported"


def _weaker(one: Source, other: Source) -> Source:
    return max(one, other, key=_ORDER.index)
