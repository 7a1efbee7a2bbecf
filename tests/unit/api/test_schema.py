"""The CRDs: structural, documented, bounded, and equal to what is committed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from casewarden.api.generate import main, render
from casewarden.api.schema import CRDS

ROOT = Path(__file__).resolve().parents[3]
Node = dict[str, Any]


def nodes(path: str, node: Node) -> Iterator[tuple[str, Node]]:
    """Walk a schema with everything in it."""
    yield path, node
    for name, child in node.get("properties", {}).items():
        yield from nodes(f"{path}.{name}", child)
    for key in ("items", "additionalProperties"):
        if isinstance(node.get(key), dict):
            yield from nodes(f"{path}.{key}", node[key])


def part(plural: str, name: str) -> Node:
    schema = CRDS[plural]()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema["properties"][name]  # type: ignore[no-any-return]


EVERY = [
    pytest.param(path, node, id=f"{plural}:{path}")
    for plural in CRDS
    for name in ("spec", "status")
    for path, node in nodes(name, part(plural, name))
]


@pytest.mark.parametrize(("path", "node"), EVERY)
def test_every_node_is_structural(path: str, node: Node) -> None:
    assert node["type"] in ("object", "array", "string", "integer", "boolean"), path
    assert not {"$ref", "anyOf", "allOf", "oneOf", "nullable", "title", "const"} & set(node)
    if node["type"] == "array":
        assert "items" in node
    if node["type"] == "object":
        says_what_is_in_it = {"properties", "additionalProperties", "x-kubernetes-preserve-unknown-fields"} & set(node)
        assert len(says_what_is_in_it) == 1


@pytest.mark.parametrize(("path", "node"), [item for item in EVERY if item.values[0].startswith("spec")])  # type: ignore[union-attr]
def test_every_part_of_a_spec_has_a_bound(path: str, node: Node) -> None:
    bounds = {"string": ("maxLength", "enum"), "integer": ("maximum",), "array": ("maxItems",)}
    if node["type"] in bounds:
        assert any(key in node for key in bounds[node["type"]]), path
    if "additionalProperties" in node:
        assert "maxProperties" in node, path


@pytest.mark.parametrize("plural", CRDS)
def test_every_field_is_documented_in_whole_sentences(plural: str) -> None:
    for name in ("spec", "status"):
        for path, node in nodes(name, part(plural, name)):
            for field, child in node.get("properties", {}).items():
                description = child.get("description", "")
                assert description[:1].isupper() or description[:1].islower(), f"{path}.{field}"
                assert description.endswith((".", '"0.8".')), f"{path}.{field}: {description}"


def test_the_spec_is_fixed_but_for_what_says_how_to_go_on() -> None:
    spec = part("evalruns", "spec")
    fixed = {rule["fieldPath"][1:] for rule in spec["x-kubernetes-validations"] if "oldSelf" in rule["rule"]}
    assert set(spec["properties"]) - fixed == {"suspend", "parallelism", "priority", "ttlSecondsAfterFinished"}
    for rule in spec["x-kubernetes-validations"]:
        name = rule["fieldPath"][1:]
        assert rule["rule"].startswith(f"has(self.{name}) == has(oldSelf.{name})")


def test_conditions_are_a_map_by_type() -> None:
    conditions = part("evalruns", "status")["properties"]["conditions"]
    assert conditions["x-kubernetes-list-type"] == "map"
    assert conditions["x-kubernetes-list-map-keys"] == ["type"]


def test_nothing_a_later_version_brings_is_refused_by_a_rule() -> None:
    candidate = part("evalruns", "spec")["properties"]["candidate"]["properties"]
    assert {"server", "model"} <= set(candidate)
    assert {"baseline", "audit", "aggregation"} <= set(part("evalruns", "spec")["properties"])


def test_nested_defaults_reach_objects_that_are_left_out() -> None:
    spec = part("evalruns", "spec")["properties"]
    assert spec["retries"]["default"] == {}
    assert spec["retries"]["properties"]["environment"]["default"] == 2
    assert "default" not in spec["threshold"]
    assert "default" not in spec["ttlSecondsAfterFinished"]


def test_the_committed_files_are_those_that_the_models_give(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check", "--root", str(ROOT)]) == 0, capsys.readouterr().out


def test_a_stale_file_is_named_and_written_anew(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check", "--root", str(tmp_path)]) == 1
    assert "crds/evalruns.yaml: stale" in capsys.readouterr().out
    assert main(["--root", str(tmp_path)]) == 0
    assert main(["--check", "--root", str(tmp_path)]) == 0
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()} == set(render())
