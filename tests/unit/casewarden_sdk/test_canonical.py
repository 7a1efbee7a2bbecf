"""Canonical text tells types apart and is the same however a value was built."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casewarden_sdk.canonical import canonical, canonical_equal, digest_files, sha256_json

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=12,
)


@given(_JSON)
def test_the_text_reads_back_as_the_value_and_is_ascii(value):
    text = canonical(value)
    text.encode("ascii")
    assert canonical(json.loads(text)) == text


@given(st.dictionaries(st.text(), st.integers()))
def test_the_order_in_which_keys_were_put_in_does_not_count(value):
    items = list(value.items())
    random.Random(7).shuffle(items)
    assert sha256_json(dict(items)) == sha256_json(value)


def test_types_are_told_apart():
    assert not canonical_equal(True, 1)
    assert not canonical_equal(1, 1.0)
    assert canonical_equal({"a": [1]}, {"a": (1,)})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"a": [-float("inf")]}, {"a": object()}])
def test_what_json_cannot_hold_is_refused(value):
    with pytest.raises((ValueError, TypeError)):
        canonical(value)


def test_the_separators_are_pythons_own_since_other_programs_hash_the_same_text():
    assert canonical({"b": [1, 2], "a": "é"}) == '{"a": "\\u00e9", "b": [1, 2]}'


@given(st.lists(st.tuples(st.text(max_size=4), st.binary(max_size=4)), max_size=4))
def test_two_lists_of_files_have_one_digest_only_if_they_are_one(files):
    for other in ([("a", b"")], [*files, ("", b"")], files[1:]):
        assert (digest_files(files) == digest_files(other)) == (files == other)
