from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casewarden.api.endpoint import Price
from casewarden.relay.models.addresses import names_the_cluster, refused_address
from casewarden.relay.models.events import EventCutter, EventTooLarge, event_data
from casewarden.relay.models.usage import Budget, BudgetSpent, CallUsage, RunUsage, UsageReader, cost_of

COUNT = st.integers(0, 10**9)


@given(st.lists(st.tuples(COUNT, COUNT, st.sampled_from(["counted", "reported", "estimated"])), max_size=20))
def test_a_runs_usage_is_the_sum_of_its_calls_and_survives_being_kept(calls: list[tuple[int, int, str]]) -> None:
    run, price = RunUsage(), Price(prompt="0.5", completion="1.5")
    for prompt, completion, source in calls:
        run.add(CallUsage(prompt, completion, source), price)  # type: ignore[arg-type]
    assert run.prompt + run.completion == sum(prompt + completion for prompt, completion, _ in calls)
    assert run.calls == len(calls)
    said = {source for *_, source in calls}
    weakest = next((word for word in ("estimated", "reported", "counted") if word in said), "reported")
    assert run.source == weakest
    assert RunUsage.from_json(run.to_json()) == run


def test_what_a_tasks_own_model_uses_is_a_sum_of_its_own() -> None:
    run = RunUsage()
    run.of(None).add(CallUsage(1, 2, "reported"), None)
    run.of("judge").add(CallUsage(30, 40, "estimated"), None)
    run.of("user").reserve(Budget(), 5, None)
    assert (run.prompt, run.calls, run.source) == (1, 1, "reported")
    kept = run.to_json()
    assert kept["models"] == {
        "judge": {
            "prompt_tokens": 30, "completion_tokens": 40, "model_calls": 1, "source": "estimated", "cost": None
        }
    }  # fmt: skip
    assert RunUsage.from_json(kept).of("judge").prompt == 30


@given(st.lists(st.integers(1, 100), max_size=30), st.integers(0, 1000))
def test_calls_under_way_never_promise_more_than_the_budget(wanted: list[int], tokens: int) -> None:
    run, promised = RunUsage(), 0
    for amount in wanted:
        try:
            run.reserve(Budget(tokens=tokens), amount, None)
        except BudgetSpent:
            assert promised + amount > tokens
        else:
            promised += amount
    assert promised <= tokens


def test_money_without_a_price_is_no_budget_that_can_be_kept() -> None:
    with pytest.raises(BudgetSpent, match="has no price"):
        RunUsage().reserve(Budget(cost=Decimal(1)), 10, None)


def test_what_was_never_priced_has_no_cost() -> None:
    run = RunUsage()
    run.add(CallUsage(1, 1, "reported"), None)
    assert run.to_json()["cost"] is None
    assert cost_of(Price(prompt="2", completion="4"), 1_000_000, 500_000) == 4


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 5, "completion_tokens": 3}, CallUsage(5, 3, "reported")),
        ({"input_tokens": 2, "cache_read_input_tokens": 3, "output_tokens": 4}, CallUsage(5, 4, "reported")),
        ({"prompt_tokens": 0, "completion_tokens": 0}, CallUsage(10, 3, "estimated")),
        ({"prompt_tokens": -5, "completion_tokens": True}, CallUsage(10, 3, "estimated")),
        (None, CallUsage(10, 3, "estimated")),
    ],
)
def test_impossible_counts_give_way_to_an_estimate(usage: object, expected: CallUsage) -> None:
    reader = UsageReader(prompt_bytes=40)
    reader.read({"choices": [{"message": {"role": "assistant", "content": "twelve bytes"}}], "usage": usage})
    assert reader.usage() == expected


REQUEST = b'{"model": "m", "messages": [{"role": "user", "content": "one two three four"}]}'


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 9, "completion_tokens": 2}, CallUsage(9, 2, "reported")),
        ({"prompt_tokens": 3, "completion_tokens": 2}, CallUsage(4, 2, "reported")),
        ({"prompt_tokens": 9, "completion_tokens": 0}, CallUsage(9, 2, "reported")),
        (None, CallUsage(4, 2, "counted")),
    ],
)
def test_with_a_tokenizer_nothing_less_than_what_went_by_is_believed(usage: object, expected: CallUsage) -> None:
    reader = UsageReader(40, REQUEST, lambda text: len(text.split()))
    for piece in ("five ", "six"):
        reader.read({"choices": [{"delta": {"content": piece}}]})
    reader.read({"choices": [], "usage": usage})
    assert reader.usage() == expected


@given(st.lists(st.sampled_from([b"data: {}", b": note", b"event: x\ndata: 1"])), st.integers(1, 7))
def test_events_are_the_same_however_they_are_cut(events: list[bytes], size: int) -> None:
    whole, cutter, found = b"".join(event + b"\n\n" for event in events), EventCutter(), []
    for at in range(0, len(whole), size):
        found += cutter.feed(whole[at : at + size])
    assert found == [event + b"\n\n" for event in events]
    assert cutter.rest() == b""


def test_an_event_without_an_end_is_not_kept_for_ever() -> None:
    with pytest.raises(EventTooLarge):
        EventCutter(limit=10).feed(b"data: 0123456789")
    assert event_data(b": only a comment\n\n") is None


@pytest.mark.parametrize("address", ["169.254.169.254", "fe80::1", "::ffff:169.254.169.254", "224.0.0.1", "0.0.0.0"])
def test_some_addresses_are_never_called(address: str) -> None:
    assert refused_address(address, private_allowed=True)


@pytest.mark.parametrize("address", ["10.0.0.1", "127.0.0.1", "192.168.1.1", "fd00::1"])
def test_private_addresses_are_called_only_when_they_were_named(address: str) -> None:
    assert refused_address(address, private_allowed=False)
    assert refused_address(address, private_allowed=True) is None
    assert refused_address("93.184.216.34", private_allowed=False) is None


def test_names_of_the_cluster_are_told_from_names_of_the_world() -> None:
    assert all(map(names_the_cluster, ["models", "models.tools.svc", "models.tools.svc.cluster.local", "localhost"]))
    assert not any(map(names_the_cluster, ["api.example.com", "svc.example.com", "models.example.org"]))
