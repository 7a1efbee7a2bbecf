"""The model answers as the contract says: beside a brute-force replay that shares no code with it."""

from __future__ import annotations

import json
from typing import Any

import evalarc.task
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casewarden_sdk.canonical import canonical
from casewarden_tasks.durable_kv.model import INVALID, Model

KEYS = st.sampled_from(["", "a", "雪", "\ud800"])
VALUES = st.sampled_from([None, True, False, 0, 1, 1.0, -0.0, "", "1", [], [1], [True], {}, {"b": 1, "a": 2}])
PLAIN = st.one_of(
    st.fixed_dictionaries({"op": st.just("put"), "key": KEYS, "value": VALUES}),
    st.fixed_dictionaries({"op": st.just("delete"), "key": KEYS}),
    st.fixed_dictionaries({"op": st.just("get"), "key": KEYS}),
    st.fixed_dictionaries({"op": st.just("cas"), "key": KEYS, "expected": VALUES, "value": VALUES}),
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
BROKEN = st.one_of(
    JSON,
    st.dictionaries(
        st.sampled_from(["op", "key", "value", "expected", "operations"]),
        st.sampled_from(["put", "get", "delete", "cas", "batch", [], [{}], 5, None, "a"]),
    ),
)
REQUESTS = st.one_of(
    PLAIN,
    st.fixed_dictionaries({"op": st.just("batch"), "operations": st.lists(PLAIN | BROKEN, max_size=3)}),
    BROKEN,
)


def brute_force(history: list[Any]) -> Any:
    """Answer the last request by looking for each key's last write in everything that was asked before."""

    def valid(item: Any, allowed: tuple[str, ...]) -> bool:
        needs = {"put": {"value"}, "get": set(), "delete": set(), "cas": {"expected", "value"}}
        return (
            isinstance(item, dict)
            and isinstance(item.get("op"), str)
            and item["op"] in allowed
            and isinstance(item.get("key"), str)
            and needs[item["op"]] <= set(item)
        )

    def whole(item: Any) -> bool:
        if isinstance(item, dict) and item.get("op") == "batch":
            parts = item.get("operations")
            return isinstance(parts, list) and all(valid(part, ("put", "delete")) for part in parts)
        return valid(item, ("put", "get", "delete", "cas"))

    def held(key: str, before: int) -> list[Any]:
        """Return ``[value]`` or ``[]``: what the key holds before request number ``before``."""
        for number in range(before - 1, -1, -1):
            item = history[number]
            if not whole(item):
                continue
            parts = item["operations"] if item["op"] == "batch" else [item]
            for part in reversed(parts):
                if part["key"] != key or part["op"] == "get":
                    continue
                if part["op"] == "cas":
                    now = held(key, number)
                    if not now or canonical(now[0]) != canonical(part["expected"]):
                        continue
                return [] if part["op"] == "delete" else [part["value"]]
        return []

    last, position = history[-1], len(history) - 1
    if not whole(last):
        return {"ok": False, "error": "invalid_request"}
    if last["op"] == "get":
        now = held(last["key"], position)
        return {"ok": True, "found": True, "value": now[0]} if now else {"ok": True, "found": False}
    if last["op"] == "cas":
        now = held(last["key"], position)
        return {"ok": True, "swapped": bool(now) and canonical(now[0]) == canonical(last["expected"])}
    return {"ok": True}


@settings(max_examples=300)
@given(st.lists(REQUESTS, min_size=1, max_size=12))
def test_the_model_equals_a_search_through_the_history(history: list[Any]) -> None:
    model = Model()
    answers = [model.answer(request) for request in history]
    for position, answer in enumerate(answers):
        assert canonical(answer) == canonical(brute_force(history[: position + 1]))


@settings(max_examples=200)
@given(st.lists(REQUESTS, max_size=12))
def test_the_model_equals_the_peers_oracle(history: list[Any]) -> None:
    model, state = Model(), dict[str, Any]()
    for request in history:
        if isinstance(request, dict) and isinstance(request.get("op"), (list, dict)):
            continue  # the peer's membership test is no part of the contract
        assert canonical(model.answer(request)) == canonical(evalarc.task.oracle(state, request))


@pytest.mark.parametrize(
    "request_",
    [
        None, [], 5, "put", {}, {"op": None}, {"op": []}, {"op": {}}, {"op": "wat", "key": "a"}, {"op": "get"},
        {"op": "get", "key": 5}, {"op": "put", "key": "a"}, {"op": "cas", "key": "a", "value": 1},
        {"op": "cas", "key": "a", "expected": 1}, {"op": "batch"}, {"op": "batch", "operations": "[]"},
        {"op": "batch", "operations": {}}, {"op": "batch", "operations": [{"op": "get", "key": "a"}]},
        {"op": "batch", "operations": [{"op": "batch", "operations": []}]},
        {"op": "batch", "operations": [{"op": "delete", "key": "a"}, {"op": "put", "key": "a"}]},
    ],
    ids=json.dumps,
)  # fmt: skip
def test_an_invalid_request_is_refused_and_changes_nothing(request_: Any) -> None:
    model = Model()
    model.answer({"op": "put", "key": "a", "value": 1})
    assert model.answer(request_) == INVALID
    assert model.answer({"op": "get", "key": "a"}) == {"ok": True, "found": True, "value": 1}


def test_fields_that_the_contract_does_not_name_are_ignored() -> None:
    assert Model().answer({"op": "get", "key": "a", "value": 5, "note": []}) == {"ok": True, "found": False}


def test_an_answer_is_no_door_into_the_store() -> None:
    model = Model()
    value = {"list": [1]}
    model.answer({"op": "put", "key": "a", "value": value})
    value["list"].append(2)
    model.answer({"op": "get", "key": "a"})["value"]["list"].append(3)
    assert model.answer({"op": "get", "key": "a"})["value"] == {"list": [1]}
