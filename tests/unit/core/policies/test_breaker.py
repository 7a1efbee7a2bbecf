"""When the first attempts of a run say that none will do better."""

from __future__ import annotations

import pytest
from support.pod_json import attempt

from casewarden.core.model import LedgerRow
from casewarden.core.policies.breaker import common_cause

REASONS = {"TaskFailed", "EvidenceFailed", "Unknown"}


def rows(*reasons: str | None) -> list[LedgerRow]:
    """Rows in the order in which they ended; None is a verdict, Deleted an interruption."""
    kinds = {None: "verdict", "Deleted": "interruption"}
    return [
        LedgerRow(attempt(number), kinds.get(reason, "environment"), "", "", reason, "why", ended_at=number)  # type: ignore[arg-type]
        for number, reason in enumerate(reasons)
    ]


@pytest.mark.parametrize(
    ("parallelism", "reasons", "trips"),
    [
        pytest.param(20, ["TaskFailed"] * 5, True, id="five of one reason"),
        pytest.param(20, ["TaskFailed"] * 4, False, id="one too few"),
        pytest.param(4, ["TaskFailed"] * 4, True, id="as many as run at once"),
        pytest.param(1, ["TaskFailed"] * 2, False, id="a retry budget is not taken by a failure or two"),
        pytest.param(1, ["TaskFailed"] * 3, True, id="three are enough"),
        pytest.param(3, ["TaskFailed", "EvidenceFailed", "TaskFailed"], False, id="two reasons"),
        pytest.param(3, ["Evicted"] * 3, False, id="a reason that is the cluster's"),
        pytest.param(3, ["TaskFailed", "TaskFailed", "TaskFailed", None], False, id="a verdict shows that it can work"),
        pytest.param(3, ["TaskFailed", "Deleted", "TaskFailed", "TaskFailed"], True, id="a deleted one says nothing"),
        pytest.param(3, ["TaskFailed", "TaskFailed", "TaskFailed", "Unknown"], True, id="later ones do not help"),
        pytest.param(3, ["Unknown", "TaskFailed", "TaskFailed", "TaskFailed"], False, id="it is the first that count"),
    ],
)
def test_the_first_attempts_decide(parallelism, reasons, trips):
    found = common_cause(reversed(rows(*reasons)), parallelism, REASONS)
    assert (found is not None) is trips
    if found is not None:
        assert (found.complete, found.reason) == (False, "CircuitBreaker")
        assert "TaskFailed: why" in found.message
