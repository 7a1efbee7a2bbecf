"""The verdict follows from the tickets at the end and from nothing that the candidate says."""

from __future__ import annotations

import copy
from typing import Any

import evalarc.support
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from casewarden_sdk.contract import AGENT_ERROR, FAILED, PASSED, Case
from casewarden_tasks.support_routing.cases import DIMENSIONS, generate
from casewarden_tasks.support_routing.grader import grade

ENDED = {"code": 0, "signal": None, "output_bytes": 10, "stderr_tail": "", "unsolicited": 0}
FAULT = {"reason": "TimeLimit", "message": "no answer in time"}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)
any_case = st.integers(0, 1 << 32).flatmap(lambda seed: st.sampled_from(generate(seed)))


def right_record(case: Case) -> dict[str, Any]:
    content = case.content
    final = copy.deepcopy(content["initial"])
    ticket = final[content["target"]]
    ticket["queue"] = content["routing_rules"][ticket["category"]]
    ticket["notes"].append(content["note"])
    ticket["status"] = "closed" if ticket["resolved"] else "open"
    return {
        "initial": content["initial"], "final": final, "trace": [], "finished": True, "exit": dict(ENDED),
        "candidate_error": None,
    }  # fmt: skip


@given(any_case)
def test_tickets_as_they_must_be_pass(case: Case) -> None:
    verdict = grade(case, right_record(case))
    assert (verdict.status, dict(verdict.checks)) == (PASSED, dict.fromkeys(DIMENSIONS, True))


def test_each_damage_fails_its_own_dimension_and_no_other() -> None:
    damages: dict[str, tuple[str, Any]] = {
        "another queue": ("routing", lambda final, target, _: final[target].update(queue="inbox")),
        "no note": ("notes", lambda final, target, _: final[target]["notes"].pop()),
        "the note twice": ("notes", lambda final, target, _: final[target]["notes"].append(final[target]["notes"][-1])),
        "an old note gone": ("notes", lambda final, target, _: final[target]["notes"].pop(0)),
        "the other status": ("closure", lambda final, target, _: final[target].update(
            status="open" if final[target]["status"] == "closed" else "closed")),
        "a third status": ("closure", lambda final, target, _: final[target].update(status="pending")),
        "bystander moved": ("scope", lambda final, _, other: final[other].update(queue="queue-0-0")),
        "bystander noted": ("scope", lambda final, _, other: final[other]["notes"].append("hello")),
        "bystander gone": ("scope", lambda final, _, other: final.pop(other)),
        "a ticket more": ("scope", lambda final, _, other: final.update(new=dict(final[other]))),
        "another category": ("scope", lambda final, target, _: final[target].update(category="none")),
        "resolved by itself": ("scope", lambda final, target, _: final[target].update(
            resolved=not final[target]["resolved"])),
        "resolved as a number": ("scope", lambda final, target, _: final[target].update(
            resolved=int(final[target]["resolved"]))),
    }  # fmt: skip
    for case in generate(17):
        for name, (dimension, damage) in damages.items():
            record = right_record(case)
            target, other = case.content["initial"]
            damage(record["final"], target, other)
            verdict = grade(case, record)
            assert verdict.status == FAILED, name
            assert [wrong for wrong, right in verdict.checks.items() if not right] == [dimension], name
            assert (verdict.error or "").startswith(f"{dimension}: "), name


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        ({"candidate_error": FAULT, "finished": False, "exit": None}, "TimeLimit"),
        ({"exit": {**ENDED, "code": 3}}, "Exited"),
        ({"exit": {**ENDED, "code": None, "signal": 9}}, "Exited"),
        ({"exit": {**ENDED, "unsolicited": 4}}, "Protocol"),
    ],
)
def test_a_candidate_that_breaks_fails_protocol_and_is_judged_by_what_it_left(damage: Any, reason: str) -> None:
    for case in generate(17):
        verdict = grade(case, {**right_record(case), **damage})
        assert (verdict.status, verdict.reason) == (AGENT_ERROR, reason)
        assert [name for name, right in verdict.checks.items() if not right] == ["protocol"]


def test_not_finishing_fails_protocol_even_without_a_fault() -> None:
    (case, *_) = generate(17)
    verdict = grade(case, {**right_record(case), "finished": False})
    assert (verdict.status, verdict.checks["protocol"]) == (FAILED, False)


ticket = st.fixed_dictionaries(
    {
        "category": st.sampled_from(["billing", "technical", "account"]),
        "queue": st.sampled_from(["inbox", "queue-0-0"]),
        "resolved": st.booleans(),
        "status": st.sampled_from(["open", "closed"]),
        "notes": st.lists(st.sampled_from(["Customer contacted support.", "x"]), max_size=2),
    }
)


@settings(max_examples=300)
@given(st.data(), st.booleans())
def test_the_checks_of_any_end_equal_the_peers(data: st.DataObject, finished: bool) -> None:
    seed, number = data.draw(st.integers(0, 50)), data.draw(st.integers(0, 3))
    case, peer_case = generate(seed)[number], evalarc.support.generate_cases(seed)[number]
    final = right_record(case)["final"]
    for name in final:
        if data.draw(st.booleans()):
            final[name] = data.draw(ticket)
        elif data.draw(st.booleans()):
            final[name].update(data.draw(st.fixed_dictionaries({}, optional={"queue": st.sampled_from(["inbox"])})))
    record = {**right_record(case), "final": final, "finished": finished}
    assert grade(case, record).checks == evalarc.support.verify(peer_case, final, finished)


@settings(max_examples=300)
@given(any_case, JSON | st.fixed_dictionaries({"final": JSON, "finished": JSON, "exit": JSON, "candidate_error": JSON}))
def test_no_record_makes_the_grader_raise_or_pass_by_chance(case: Case, record: Any) -> None:
    verdict = grade(case, record)
    assert not verdict.passed
    assert verdict.to_json() == grade(case, record).to_json()


@given(any_case, st.data())
def test_no_ticket_of_any_shape_makes_the_grader_raise(case: Case, data: st.DataObject) -> None:
    record = right_record(case)
    for name in case.content["initial"]:
        record["final"][name] = data.draw(JSON | st.fixed_dictionaries({"queue": JSON, "notes": JSON, "status": JSON}))
    assert not grade(case, record).passed


@given(any_case)
def test_grading_leaves_case_and_record_as_they_are(case: Case) -> None:
    record = right_record(case)
    before = copy.deepcopy((dict(case.content), record))
    grade(case, record)
    assert (dict(case.content), record) == before
