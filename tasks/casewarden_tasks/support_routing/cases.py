"""The four cases of one seed: a ticket to work on, another to leave alone, and perhaps a service that fails once.

A seed draws names, queues and categories. The order of the draws is part of this version: the same seed gives the same
bytes for ever.
"""

from __future__ import annotations

import random
from typing import Any, Final, NamedTuple

from casewarden_sdk.contract import Case

__all__ = ["CATEGORIES", "DIMENSIONS", "generate"]

DIMENSIONS: Final = ("routing", "notes", "closure", "scope", "protocol")
CATEGORIES: Final = ("billing", "technical", "account")


class _Situation(NamedTuple):
    """What is the same for every seed; ``failing`` is the tool whose first valid call reports a passing outage."""

    id: str
    resolved: bool
    failing: str | None


_SITUATIONS: Final = (
    _Situation("route-open-ticket", resolved=False, failing=None),
    _Situation("close-resolved-ticket", resolved=True, failing=None),
    _Situation("retry-before-commit", resolved=False, failing="assign_queue"),
    _Situation("retry-after-commit", resolved=True, failing="add_note"),
)


def generate(seed: int) -> list[Case]:
    """Return the cases of ``seed``, always in the same order."""
    draw = random.Random(seed)  # noqa: S311 - repeatable draws are the point
    return [
        Case(situation.id, DIMENSIONS, _content(draw, number, situation))
        for number, situation in enumerate(_SITUATIONS)
    ]


def _content(draw: random.Random, number: int, situation: _Situation) -> dict[str, Any]:
    target, bystander = (f"{letter}-{draw.getrandbits(32):08x}" for letter in "TU")
    queues = [f"queue-{number}-{n}" for n in range(len(CATEGORIES))]
    draw.shuffle(queues)
    return {
        "id": situation.id,
        "target": target,
        "initial": {
            target: _ticket(draw, "Customer contacted support.", situation.resolved),
            bystander: _ticket(draw, "Unrelated request; preserve this ticket.", resolved=False),
        },
        "routing_rules": dict(zip(CATEGORIES, queues, strict=True)),
        "note": f"Reviewed request {target}.",
        "fault": situation.failing,
    }


def _ticket(draw: random.Random, note: str, resolved: bool) -> dict[str, Any]:
    return {
        "category": draw.choice(CATEGORIES),
        "queue": "inbox",
        "resolved": resolved,
        "status": "open",
        "notes": [note],
    }
