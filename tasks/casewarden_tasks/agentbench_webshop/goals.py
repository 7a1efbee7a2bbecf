"""What a shopper is asked to find: goals, drawn from their own seeds, and AgentBench's order of them."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from casewarden_sdk.errors import ContractError

from .products import Catalogue, Product

__all__ = ["NO_LIMIT", "Goal", "order", "price_limit", "read_goals"]

NO_LIMIT: Final = 1_000_000.0
_STEPS: Final = tuple(10.0 * number for number in range(1, 100))
# AgentBench shuffles the goals once, with this seed; its samples are places in that order.
_ORDER: Final = 233


@dataclass(frozen=True)
class Goal:
    """The product that was thought of, and what of it was asked for. ``options`` are values without their names."""

    asin: str
    instruction: str
    title: str
    query: str
    category: str
    attributes: tuple[str, ...]
    options: tuple[str, ...] = ()
    price_upper: float = NO_LIMIT

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON, for a case."""
        return {**asdict(self), "attributes": list(self.attributes), "options": list(self.options)}

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Goal:
        """Read ``to_json`` back."""
        lists = {name: tuple(document[name]) for name in ("attributes", "options")}
        return cls(**{**document, **lists})


def read_goals(text: str, catalogue: Catalogue, where: str, compat: bool) -> list[Goal]:
    """Read WebShop's file of people's instructions, one list per asin, for the products that there are.

    An instruction without attributes is no goal. Where the price has a limit, it is drawn from the goal's own seed;
    with ``compat`` from one stream for all goals in their order, which is how far v0.2 can be followed: there it came
    from a generator without a seed.
    """
    try:
        instructions = json.loads(text)
    except ValueError as error:
        raise ContractError(f"spec.task.params.dataset: {where} is no JSON: {error}") from None
    if not isinstance(instructions, Mapping):
        raise ContractError(f"spec.task.params.dataset: {where} is no object of lists of instructions by asin")
    stream = random.Random(_ORDER) if compat else None  # noqa: S311 - repeatable draws are the point
    found = []
    for product in catalogue.products.values():
        for number, row in enumerate(instructions.get(product.asin) or ()):
            attributes = row.get("instruction_attributes") if isinstance(row, Mapping) else None
            if attributes:
                draw = stream or random.Random(f"goal {number} of {product.asin}")  # noqa: S311 - repeatable draws are the point
                found.append(_goal(product, row, tuple(attributes), draw))
    if not found:
        raise ContractError(f"spec.task.params.dataset: {where} has no instruction for any product of the catalogue")
    return found


def price_limit(price: float, draw: random.Random) -> float:
    """Return the upper limit of a price: the upper of two of the next four steps of ten dollars above it."""
    above = [step for step in _STEPS if step > price][:4]
    return max(draw.sample(above, 2)) if len(above) >= 2 else NO_LIMIT


def order(goals: Sequence[Goal]) -> list[Goal]:
    """Return the goals in the order in which AgentBench numbers them."""
    shuffled = list(goals)
    random.Random(_ORDER).shuffle(shuffled)  # noqa: S311 - repeatable draws are the point
    return shuffled


def _goal(product: Product, row: Mapping[str, Any], attributes: tuple[str, ...], draw: random.Random) -> Goal:
    limit = price_limit(product.price, draw)
    said = str(row.get("instruction") or "").strip(".")
    options = row.get("instruction_options") or ()
    return Goal(
        asin=product.asin,
        instruction=said + ("" if limit == NO_LIMIT else f", and price lower than {limit:.2f} dollars"),
        title=product.title,
        query=product.query,
        category=product.category,
        attributes=attributes,
        options=tuple(str(value) for value in (options.values() if isinstance(options, Mapping) else options)),
        price_upper=limit,
    )
