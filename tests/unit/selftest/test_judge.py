"""The judge of hostile programs finds each way in which a fence can have failed."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

import pytest

from casewarden.selftest.judge import Played, Secrets, facts_of, judge, unmet
from casewarden.selftest.table import Program, load, manifests, run_name

PROGRAM = Program("p", "get out", "", status=("failed", "agent_error"), reasons=("Exited",))
SECRETS = Secrets("5f0c-uid", ["run-abc-1"], ["route-open-ticket"])
STATUS: dict[str, Any] = {
    "valid": True, "score": "0.45", "cases": {"total": 1, "environmentErrors": 0}, "attempts": {"total": 1},
    "failures": [{"error": "routing: wrong"}],
}  # fmt: skip


def played(status: dict[str, Any] | None = None, sealed: dict[str, Any] | None = None, text: str = "") -> Played:
    rows = [{"dir": "err", "text": "TRIED a door"}, {"dir": "err", "text": text}, {"dir": "in", "text": "GOT in"}]
    return Played({**STATUS, **(status or {})}, [sealed or {"status": "failed"}], [rows], SECRETS)


def test_nothing_is_wrong_where_every_fence_held() -> None:
    assert judge(PROGRAM, played()) == []
    assert judge(PROGRAM, played(sealed={"status": "agent_error", "reason": "Exited"})) == []


@pytest.mark.parametrize(
    ("status", "sealed", "text", "word"),
    [
        ({"valid": False}, None, "", "not valid"),
        ({"cases": {"total": 1, "environmentErrors": 1}}, None, "", "unassessed"),
        ({"attempts": {"total": 2}}, None, "", "rolled again"),
        ({"score": "0.46"}, None, "", "more than 0.45"),
        ({}, {"status": "passed"}, "", "came to passed"),
        ({}, {"status": "agent_error", "reason": "Protocol"}, "", "reason is Protocol"),
        ({}, None, "GOT the door", "GOT the door"),
        ({}, None, "uid 5f0c-uid", "UID"),
        ({}, None, "host run-abc-1", "name of its pod"),
        ({}, None, "case route-open-ticket", "id of its case"),
        ({}, None, "eyJhbGciOiJSUzI1NiJ9.eyJhdWQi", "a token"),
        ({}, None, "CASEWARDEN_ATTEMPT=1", "source"),
        ({"failures": [{"error": "a\x1b[2J"}]}, None, "", "U+001B"),
        ({"failures": [{"error": "a\u202e"}]}, None, "", "U+202E"),
        ({"failures": [{"error": "a" * 301}]}, None, "", "300 bytes"),
    ],
)
def test_each_failure_of_a_fence_is_told(
    status: dict[str, Any], sealed: dict[str, Any] | None, text: str, word: str
) -> None:
    (problem,) = judge(PROGRAM, played(status, sealed, text))
    assert word in problem


def test_a_program_that_did_not_get_to_its_attack_proves_nothing() -> None:
    silent = replace(played(), transcripts=[[{"dir": "err", "text": "Traceback"}]])
    assert judge(PROGRAM, silent) == ["the program did not get to what it tries"]
    assert "nothing was sealed" in judge(PROGRAM, replace(played(), sealed=[]))


def test_a_dimension_that_must_not_be_passed_is_looked_at() -> None:
    program = replace(PROGRAM, zero=("persistence",))
    assert judge(program, played({"dimensions": {"persistence": {"passed": 0}}})) == []
    assert judge(program, played({"dimensions": {"persistence": {"passed": 1}}})) == ["1 cases passed in persistence"]


def test_a_fence_that_the_kernel_has_not_is_named() -> None:
    facts = facts_of(["FACT landlock 4", "FACT kernel 6.1 x86_64", "noise", "FACT"])
    assert facts == {"landlock": "4", "kernel": "6.1 x86_64"}
    program = replace(PROGRAM, needs={"landlock": 6})
    assert unmet(program, facts) == ["landlock 6 (this kernel has 4)"]
    assert unmet(program, {"landlock": "7"}) == []
    assert unmet(program, {}) == ["landlock 6 (this kernel has 0)"]


@pytest.mark.parametrize("program", load(), ids=lambda program: program.name)
def test_every_program_can_be_run_and_says_what_it_tries(program: Program) -> None:
    ast.parse(program.source)
    assert "TRIED" in program.source.split("def finish", 1)[1] or "attempt(" in program.source.split("def finish", 1)[1]
    assert "agent_error" not in program.status or program.reasons
    config_map, run = manifests("selftest-abcdef", program, "ns", {"a": "b"})
    assert config_map["metadata"]["name"] == run["metadata"]["name"] == run_name("selftest-abcdef", program)
    assert len(run["metadata"]["name"]) <= 63
    assert run["spec"]["candidate"]["program"]["workspace"]["configMap"] == config_map["metadata"]["name"]


def test_every_program_is_in_the_table_once() -> None:
    names = [program.name for program in load()]
    assert len(names) == len(set(names))
    assert sum(program.kind == "facts" for program in load()) == 1
