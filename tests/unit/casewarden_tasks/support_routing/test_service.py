"""The ticket service keeps its promises, whatever it is called with."""

from __future__ import annotations

import copy
from typing import Any

import evalarc.support
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casewarden_sdk.canonical import canonical
from casewarden_tasks.support_routing.cases import generate
from casewarden_tasks.support_routing.service import TOOLS, TicketService

CASES = {case.id: case.content for case in generate(17)}
PLAIN, BEFORE, AFTER = (CASES[name] for name in ("route-open-ticket", "retry-before-commit", "retry-after-commit"))


def target_of(content: Any, service: TicketService) -> Any:
    return service.snapshot()[content["target"]]


def calls(content: Any) -> st.SearchStrategy[tuple[Any, Any]]:
    """Calls that are often valid: right names, and arguments from what the case has."""
    word = st.sampled_from(
        [*content["initial"], *content["routing_rules"].values(), "inbox", "", "n", "x" * 512, "x" * 513]
    )
    value = word | st.sampled_from([content["target"], 5])
    arguments = st.sampled_from(sorted(TOOLS)).flatmap(
        lambda tool: st.tuples(st.just(tool), st.fixed_dictionaries(dict.fromkeys(sorted(TOOLS[tool]), value)))
    )
    junk = st.none() | st.integers() | st.text(max_size=3) | st.lists(st.none(), max_size=1) | st.just("get_ticket")
    return arguments | st.tuples(junk, junk | st.dictionaries(st.sampled_from(["ticket_id", "queue", "z"]), word))


@settings(max_examples=300)
@given(st.sampled_from(sorted(CASES)), st.data())
def test_results_and_tickets_equal_the_peers_call_by_call(name: str, data: st.DataObject) -> None:
    content = CASES[name]
    ours = TicketService(content)
    (peer_case,) = [case for case in evalarc.support.generate_cases(17) if case.id == name]
    peer = evalarc.support.TicketEnvironment(peer_case)
    for tool, arguments in data.draw(st.lists(calls(content), max_size=12)):
        outcome = ours.call(tool, copy.deepcopy(arguments))
        result, source = peer.step({"tool": tool, "arguments": arguments})
        assert (canonical(outcome.result), outcome.error_source) == (canonical(result), source)
        assert canonical(ours.snapshot()) == canonical(peer.state)


@settings(max_examples=200)
@given(st.sampled_from(sorted(CASES)), st.data())
def test_changes_are_exactly_what_changed(name: str, data: st.DataObject) -> None:
    content = CASES[name]
    service = TicketService(content)
    for tool, arguments in data.draw(st.lists(calls(content), max_size=8)):
        before = service.snapshot()
        outcome = service.call(tool, arguments)
        rebuilt = {**before, **{ticket: change["after"] for ticket, change in outcome.changes.items()}}
        assert rebuilt == service.snapshot()
        assert all(before[ticket] == change["before"] for ticket, change in outcome.changes.items())
        assert outcome.error_source != "tool_validation" or not outcome.changes


def test_an_outage_before_the_write_leaves_the_ticket_and_the_repeated_call_writes() -> None:
    service = TicketService(BEFORE)
    arguments = {"ticket_id": BEFORE["target"], "queue": BEFORE["routing_rules"]["billing"]}
    first = service.call("assign_queue", arguments)
    assert (first.error_source, first.changes) == ("injected", {})
    assert first.result == {"ok": False, "error": {"code": "temporarily_unavailable", "retryable": True}}
    assert service.call("assign_queue", arguments).result == {"ok": True}
    assert target_of(BEFORE, service)["queue"] == arguments["queue"]


def test_an_outage_after_the_write_has_written_and_the_repeated_call_does_not_write_again() -> None:
    service = TicketService(AFTER)
    arguments = {"ticket_id": AFTER["target"], "body": "n", "request_id": "1"}
    assert service.call("add_note", arguments).error_source == "injected"
    assert service.call("add_note", arguments).result == {"ok": True, "replayed": True}
    assert target_of(AFTER, service)["notes"].count("n") == 1


def test_an_invalid_call_does_not_use_up_the_outage() -> None:
    service = TicketService(BEFORE)
    assert (
        service.call("assign_queue", {"ticket_id": BEFORE["target"], "queue": "nowhere"}).error_source
        == "tool_validation"
    )
    queue = BEFORE["routing_rules"]["account"]
    assert service.call("assign_queue", {"ticket_id": BEFORE["target"], "queue": queue}).error_source == "injected"


@pytest.mark.parametrize("part", ["status", "notes"])
def test_what_a_call_returns_is_detached_from_the_service(part: str) -> None:
    service = TicketService(PLAIN)
    ticket = service.call("get_ticket", {"ticket_id": PLAIN["target"]}).result["ticket"]
    ticket[part] = "mine"
    service.snapshot()[PLAIN["target"]][part] = "mine"
    assert service.snapshot() == PLAIN["initial"]
