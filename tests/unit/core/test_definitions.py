"""What the API server publishes of the CRDs, held against this version's resources."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from casewarden.api.schema import CRDS
from casewarden.core.definitions import complaint


def published() -> dict[str, Any]:
    schemas = {}
    for make in CRDS.values():
        crd = make()
        schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        schemas[f"dev.casewarden.v1alpha1.{crd['spec']['names']['kind']}"] = deepcopy(schema)
    return {"components": {"schemas": schemas}}


def of(document: dict[str, Any], kind: str, *path: str) -> dict[str, Any]:
    node = document["components"]["schemas"][f"dev.casewarden.v1alpha1.{kind}"]
    for name in path:
        node = node["properties"][name]
    return node  # type: ignore[no-any-return]


def test_the_crds_of_this_version_are_fine() -> None:
    assert complaint(published()) is None


def test_a_newer_crd_is_fine() -> None:
    document = published()
    of(document, "EvalRun", "status")["properties"]["mood"] = {"type": "string"}
    assert complaint(document) is None


@pytest.mark.parametrize("document", [None, {}, {"components": {"schemas": {}}}])
def test_crds_that_are_not_there_are_named_with_the_cure(document: dict[str, Any] | None) -> None:
    said = complaint(document)
    assert said is not None
    assert said.startswith("the API server has no CRD evalruns.casewarden.dev: apply crds/ of this version")
    assert "crds.install=true" in said


def test_one_crd_of_two_is_not_enough() -> None:
    document = published()
    del document["components"]["schemas"]["dev.casewarden.v1alpha1.AuditRun"]
    assert "no CRD auditruns.casewarden.dev" in str(complaint(document))


def test_fields_that_an_older_crd_would_drop_are_named_the_first_three_of_them() -> None:
    document = published()
    for name in ("progress", "score", "valid", "usage"):
        del of(document, "EvalRun", "status")["properties"][name]
    said = str(complaint(document))
    assert "the CRD evalruns.casewarden.dev is older than this operator and does not know status." in said
    assert "and 1 more, which the API server would drop" in said


def test_a_field_deep_in_a_list_or_a_map_is_missed_too() -> None:
    document = published()
    del of(document, "EvalRun", "status", "failures")["items"]["properties"]["reason"]
    assert "status.failures[].reason" in str(complaint(document))
    document = published()
    del of(document, "EvalRun", "status", "dimensions")["additionalProperties"]["properties"]["weight"]
    assert "status.dimensions.*.weight" in str(complaint(document))
