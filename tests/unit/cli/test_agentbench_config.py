"""AgentBench's configuration language, rule by rule."""

from __future__ import annotations

import json

import pytest
import yaml

from casewarden.cli.agentbench_config import Loader, merged
from casewarden.cli.failure import Failure


@pytest.fixture
def files(tmp_path):
    """Write files and return how they load."""

    def load(first, **contents):
        for name, content in contents.items():
            path = tmp_path / name.replace("__", "/").replace("_", ".")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(content) if path.suffix == ".json" else yaml.safe_dump(content))
        return Loader().load(tmp_path / first)

    return load


def test_a_merge_goes_key_by_key_adds_lists_up_and_else_takes_the_later():
    assert merged({"a": {"x": 1, "l": [1]}, "b": 1}, {"a": {"y": 2, "l": [2]}, "b": {"c": 3}}) == {
        "a": {"x": 1, "y": 2, "l": [1, 2]},
        "b": {"c": 3},
    }


def test_imports_are_merged_in_order_and_the_own_keys_over_them(files):
    got = files(
        "a.yaml",
        a_yaml={"import": ["b.yaml", "sub/c.json"], "x": 3, "l": [3]},
        b_yaml={"x": 1, "y": 1, "l": [1]},
        sub__c_json={"y": 2, "l": [2]},
    )
    assert got == {"x": 3, "y": 2, "l": [1, 2, 3]}


def test_an_import_may_stand_in_any_mapping_and_is_relative_to_its_file(files):
    got = files(
        "sub/a.yaml", sub__a_yaml={"deep": [{"import": "../b.yaml"}]}, b_yaml={"c": {"import": "sub/d.yaml"}},
        sub__d_yaml={"e": 1},
    )  # fmt: skip
    assert got == {"deep": [{"c": {"e": 1}}]}


def test_default_goes_below_and_overwrite_above_every_key_beside_them(files):
    got = files(
        "a.yaml",
        a_yaml={
            "default": {"m": "d", "p": {"x": 0, "y": 0}},
            "overwrite": {"p": {"x": 9}},
            "one": {"p": {"x": 1, "y": 1}},
            "two": {},
        },
    )
    assert got == {
        "one": {"m": "d", "p": {"x": 9, "y": 1}},
        "two": {"m": "d", "p": {"x": 9, "y": 0}},
    }


def test_both_act_within_their_own_file_before_it_is_imported(files):
    got = files(
        "a.yaml",
        a_yaml={"default": {"k": "a"}, "import": "b.yaml", "two": {}},
        b_yaml={"default": {"k": "b"}, "one": {}},
    )
    assert got == {"one": {"k": "b"}, "two": {"k": "a"}}


def test_a_file_that_is_imported_again_comes_before_its_own_default_was_applied(files):
    # Upstream's quirk: the default of the second one acts on whatever stands beside it in the importing file.
    once = {"import": "b.yaml", "two": {}}
    twice = {"import": ["b.yaml", "b.yaml"], "two": {}}
    imported = {"default": {"k": "b"}, "one": {"v": 1}}
    assert files("a.yaml", a_yaml=once, b_yaml=imported) == {"one": {"k": "b", "v": 1}, "two": {}}
    assert files("a.yaml", a_yaml=twice, b_yaml=imported) == {"one": {"k": "b", "v": 1}, "two": {"k": "b"}}


@pytest.mark.parametrize(
    ("contents", "told"),
    [
        ({"a_yaml": {"import": "a.yaml"}}, "imports itself: a.yaml -> a.yaml"),
        (
            {"a_yaml": {"import": "b.yaml"}, "b_yaml": {"x": {"import": "a.yaml"}}},
            "imports itself: a.yaml -> b.yaml -> a.yaml",
        ),
        ({"a_yaml": {"import": "none.yaml"}}, "none.yaml, which .*a.yaml imports: No such file"),
        ({"a_yaml": {"import": "b.toml"}}, "is neither .yaml, .yml nor .json"),
        ({"a_yaml": {"import": 3}}, "import is 3; give a file, or a list of files"),
    ],
)
def test_what_cannot_be_loaded_is_named(files, contents, told):
    with pytest.raises(Failure, match=told):
        files("a.yaml", **contents)
