"""A manifest that cannot be run is refused with the field, the value and the cure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from support.kubectl import FINISHED, Kubectl, condition, message, reason
from support.refused import REFUSED, Refused, refused_by

LATE = refused_by("accepted", "plan")


def names(items: list[Refused]) -> list[str]:
    return [item.name for item in items]


def test_there_are_many() -> None:
    assert len(REFUSED) >= 25
    assert {item.where for item in REFUSED} == {"api", "accepted", "plan"}


@pytest.mark.parametrize("refused", refused_by("api"), ids=names(refused_by("api")))
def test_the_api_server_refuses_it_with_the_field_the_value_and_the_cure(
    kubectl: Kubectl, module_namespace: str, refused: Refused
) -> None:
    said = kubectl("create", "-n", module_namespace, "-f", "-", stdin=refused.text, check=False)
    assert "created" not in said
    # kubectl itself answers for a version that the API does not have.
    assert refused.field in said or refused.field == "apiVersion"
    assert refused.value.strip('"') in said
    assert refused.cluster in said


@pytest.fixture(scope="module")
def applied(kubectl: Kubectl, module_namespace: str) -> Iterator[str]:
    """A namespace with everything in it that the API server takes and the operator refuses, applied at once."""
    text = yaml.safe_dump_all([item.document for item in LATE])
    kubectl("create", "-n", module_namespace, "-f", "-", stdin=text)
    yield module_namespace
    kubectl("delete", "-n", module_namespace, "evalruns,auditruns", "--all", "--wait=false")


@pytest.mark.parametrize("refused", LATE, ids=names(LATE))
def test_the_operator_refuses_it_with_the_field_the_value_and_the_cure(
    kubectl: Kubectl, applied: str, refused: Refused
) -> None:
    kind = refused.document["kind"].lower()

    def finished() -> dict[str, Any] | None:
        status = kubectl.get(kind, applied, refused.name).get("status") or {}
        return status if condition(status, FINISHED) == "True" else None

    status = kubectl.until(finished, 120, lambda: json.dumps(kubectl.get(kind, applied, refused.name)))
    judged = "Accepted" if refused.where == "accepted" else "Planned"
    assert condition(status, judged) == "False"
    assert condition(status, "Failed") == "True"
    assert condition(status, "Passed") in ("Unknown", None)
    assert reason(status, "Failed") == reason(status, judged)
    said = message(status, judged)
    assert refused.field in said
    assert refused.value.strip('"') in said
    assert refused.cluster in said
    assert "score" not in status
    assert not kubectl.list(
        "pods", applied, f"casewarden.dev/run-uid={_uid(kubectl, kind, applied, refused)},casewarden.dev/role=case"
    )


def _uid(kubectl: Kubectl, kind: str, namespace: str, refused: Refused) -> str:
    return str(kubectl.get(kind, namespace, refused.name)["metadata"]["uid"])
