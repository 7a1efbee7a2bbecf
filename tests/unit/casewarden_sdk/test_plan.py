"""The plan: what is refused, with which words, and what its fingerprints cover."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.packs import CONTROLS, EchoPack

from casewarden_sdk.canonical import canonical, sha256_bytes, sha256_json
from casewarden_sdk.contract import Case, Control, Limits
from casewarden_sdk.errors import ContractError
from casewarden_sdk.fingerprint import grader_fingerprint
from casewarden_sdk.plan import PlanRefused, build_plan, plan_lines, read_plan_lines

OTHER_FAULT = Control("g", "fault", {"main.py": ""}, target="other")
FAULT = Control("f", "fault", {"main.py": ""}, target="echo")


def two_families(seed: int, params: object) -> list[Case]:
    return [
        Case("one", ("echo",), {"id": "one", "seed": seed}),
        Case("two", ("other",), {"id": "two"}),
    ]


def two() -> EchoPack:
    controls = (*CONTROLS, OTHER_FAULT)
    return EchoPack(dimensions={"echo": "0.25", "other": "0.75"}, controls=controls, make=two_families)


def test_a_plan_says_all_that_will_run():
    plan = build_plan(two(), [17, 5], {"size": 3})
    assert [(row["seed"], row["id"]) for row in plan["cases"]] == [(17, "one"), (17, "two"), (5, "one"), (5, "two")]
    assert plan["families"] == ["one", "two"]
    assert plan["dimensions"] == {"echo": "0.25", "other": "0.75"}
    assert plan["params"] == {"size": 3}
    assert plan["limits"]["output_bytes"] == 65536
    assert plan["contract"] == {"sha256": sha256_bytes(b"Answer every line with itself."), "bytes": 30}
    names = ["reference", "null-agent", "deaf", "g", "crashing-agent", "forger"]
    assert [control["name"] for control in plan["controls"]] == names


def test_the_cases_fingerprint_is_over_seed_and_content_of_every_planned_case():
    plan = build_plan(two(), [17], {})
    contents = [{"seed": 17, "id": "one"}, {"seed": 17, "id": "two"}]
    assert plan["fingerprints"]["cases"] == sha256_json(contents)


def test_excluded_cases_are_listed_with_their_reason_and_not_planned():
    plan = build_plan(
        replace(
            EchoPack(),
            make=lambda s, p: [*two_families(s, p)[:1], Case("bad", ("echo",), {"id": "bad"})],
            exclusions={"bad": "its answer is wrong"},
        ),
        [3],
        {},
    )
    assert plan["excluded"] == [{"seed": 3, "id": "bad", "reason": "its answer is wrong"}]
    assert [row["id"] for row in plan["cases"]] == ["one"]


def test_a_choice_of_families_is_planned_in_the_packs_order():
    pack = EchoPack(make=lambda s, p: [Case(n, ("echo",), {"id": n}) for n in ("c", "a", "b")])
    assert build_plan(pack, [1], {}, ["b", "c"])["families"] == ["c", "b"]


def asking(**models: str) -> EchoPack:
    pack = EchoPack()
    pack.models = models
    return pack


def test_the_models_that_a_driver_asks_are_in_its_plan():
    assert build_plan(asking(judge="says yes"), [1], {})["models"] == {"judge": "says yes"}
    assert "models" not in build_plan(EchoPack(), [1], {}), "plans of before stay the same bytes"


REFUSED = {
    "no seed": (EchoPack(), {"seeds": []}, "give one or more integers"),
    "a seed that is none": (EchoPack(), {"seeds": [True]}, "give one or more integers"),
    "a seed twice": (EchoPack(), {"seeds": [1, 1]}, "named twice"),
    "an unknown family": (EchoPack(), {"families": ["nope"]}, "no family 'nope'; there are say-it-again"),
    "families that leave a dimension": (two(), {"families": ["one"]}, "leave dimension 'other' without a check"),
    "an id": (EchoPack(id="Echo!"), {}, "id 'Echo!'"),
    "no version": (EchoPack(version=" "), {}, "version is ' '"),
    "no contract": (EchoPack(contract=""), {}, "contract is ''"),
    "a protocol": (EchoPack(protocol="http"), {}, "protocol 'http'"),
    "candidates": (EchoPack(candidates=("robot",)), {}, "candidates"),
    "an argv": (EchoPack(default_argv=()), {}, "default_argv"),
    "weights": (EchoPack(dimensions={"echo": "0.9"}), {}, "the weights sum to 0.9; they must sum to 1"),
    "a weight that is a number": (EchoPack(dimensions={"echo": 1}), {}, "give a decimal string"),  # type: ignore[dict-item]
    "a weight below 0": (EchoPack(dimensions={"echo": "-1", "b": "2"}), {}, "give a decimal string from 0 to 1"),
    "a weight that is none": (EchoPack(dimensions={"echo": "much"}), {}, "give a decimal string"),
    "a dimension's name": (EchoPack(dimensions={"e cho": "1"}), {}, "dimension 'e cho'"),
    "limits": (EchoPack(limits=Limits(case_seconds=0)), {}, "limits.case_seconds is 0"),
    "endless limits": (EchoPack(limits=Limits(response_seconds=float("inf"))), {}, "limits.response_seconds"),
    "half a byte": (EchoPack(limits=Limits(output_bytes=0.5)), {}, "positive integer"),  # type: ignore[arg-type]
    "no sources": (EchoPack(sources=()), {}, "sources is empty"),
    "a source that is missing": (EchoPack(sources=("/no/such/file",)), {}, "no file '/no/such/file'"),
    "a case twice": (
        EchoPack(make=lambda s, p: [Case("a", ("echo",), {"id": "a"})] * 2), {}, "the case id 'a' is there twice"),
    "a case in no dimension": (
        EchoPack(make=lambda s, p: [Case("a", ("x",), {"id": "a"})]), {}, "dimension 'x' is none of"),
    "a case of no kind": (
        EchoPack(make=lambda s, p: [Case("a", ("echo",), {"id": "a"}, "gpu")]), {}, "kind 'gpu'"),
    "a case that is no json": (
        EchoPack(make=lambda s, p: [Case("a", ("echo",), {"id": "a", "x": float("nan")})]), {}, "no plain JSON"),
    "another seed inside": (
        EchoPack(make=lambda s, p: [Case("a", ("echo",), {"id": "a", "seed": -1})]), {}, "content\\['seed'\\]"),
    "a dimension without a check": (
        EchoPack(dimensions={"echo": "1", "other": "0"}, controls=(*CONTROLS, OTHER_FAULT)),
        {}, "dimension 'other' has no check for seed 17"),
    "no fault": (EchoPack(controls=CONTROLS[:2]), {}, "no fault is declared"),
    "a dimension without a fault": (replace(two(), controls=CONTROLS), {}, "dimension 'other' has no fault control"),
    "a control twice": (EchoPack(controls=(FAULT, FAULT)), {}, "a name is there twice"),
    "a control's target": (EchoPack(controls=(replace(FAULT, target="x"),)), {}, "dimension 'x' is none of"),
    "a control's collateral": (EchoPack(controls=(replace(FAULT, collateral=("x",)),)), {}, "dimension 'x'"),
    "a control's folder": (EchoPack(controls=(replace(FAULT, files={"a/b": ""}),)), {}, "flat names"),
    "a control's size": (EchoPack(controls=(replace(FAULT, files={"a": "x" * 2**21}),)), {}, "over 1048576 bytes"),
    "a control's name": (EchoPack(controls=(replace(FAULT, name="A b"),)), {}, "control 'A b'"),
    "a model's role": (asking(model="x"), {}, "role 'model': use lower-case"),
    "a model without a purpose": (asking(judge=""), {}, "judge is ''; say in a text what the model is for"),
    "too many models": (asking(**dict.fromkeys("abcde", "x")), {}, "a pack asks at most 4"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_pack_or_choice_that_could_give_no_honest_score_is_refused(name):
    pack, choice, message = REFUSED[name]
    arguments = {"seeds": [17], "families": [], **choice}
    with pytest.raises(ContractError, match=message):
        build_plan(pack, arguments["seeds"], {}, arguments["families"])


def test_a_choice_that_is_refused_names_its_field():
    with pytest.raises(PlanRefused) as caught:
        build_plan(two(), [17], {}, ["one"])
    assert caught.value.field == "spec.select.families"


def test_a_dimension_may_go_without_a_fault_for_a_reason():
    pack = replace(two(), controls=CONTROLS)
    pack.unfaulted = {"other": "nothing can break it"}  # type: ignore[attr-defined]
    assert build_plan(pack, [17], {})["dimensions"]["other"] == "0.75"


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        ({"default": {"candidate": {"image": ""}}}, "give its image"),
        ({"default": {"candidate": None, "sidecar": {}}}, "nothing else"),
        ({"default": {"environments": [{"name": "db", "image": "x", "privileged": True}]}}, "profile, memory_mib"),
        ({"default": {"environments": [{"name": "db", "image": "x", "profile": "privileged"}]}}, "use one of"),
        ({"default": {"environments": [{"name": "D b", "image": "x"}]}}, "lower-case"),
        ({"default": {"environments": [{"name": "db", "image": "x", "memory_mib": 0}]}}, "positive integer"),
    ],
)
def test_a_container_that_asks_for_more_than_its_profile_is_refused(kinds, message):
    pack = EchoPack()
    pack.kinds = kinds  # type: ignore[attr-defined]
    with pytest.raises(PlanRefused, match=message):
        build_plan(pack, [17], {})


def test_cases_that_differ_from_call_to_call_are_refused():
    calls = iter(range(99))
    pack = EchoPack(make=lambda s, p: [Case("a", ("echo",), {"id": "a", "n": next(calls)})])
    with pytest.raises(PlanRefused, match="gave other cases when called again"):
        build_plan(pack, [17], {})


@given(st.integers(0, 9), st.lists(st.sampled_from(["2026-11-30 something else", "", "casewarden: note"]), max_size=3))
def test_a_plan_is_read_out_of_a_log_with_other_lines_in_it(seed, noise):
    plan = build_plan(EchoPack(), [seed], {"text": "x" * 9000})
    lines = plan_lines(plan)
    assert all(len(line) <= 4096 + 16 for line in lines)
    assert read_plan_lines([*noise, *lines, *noise]) == canonical(plan)


def test_a_cut_or_damaged_plan_is_noticed():
    lines = plan_lines(build_plan(EchoPack(), [1], {"noise": [str(i * i) for i in range(9000)]}))
    assert len(lines) > 2
    for log, message in (
        ([], "no plan"),
        (lines[:-1], "cut|damaged"),
        (lines[1:], "damaged"),
        (["casewarden-plan *"], "damaged"),
    ):
        with pytest.raises(ValueError, match=message):
            read_plan_lines(log)


def test_the_grader_fingerprint_does_not_depend_on_where_the_pack_lies(tmp_path):
    def install(folder: Path, text: str = "x = 1\n") -> tuple[str, ...]:
        (folder / "data").mkdir(parents=True)
        (folder / "grader.py").write_text(text)
        (folder / "data" / "words.txt").write_text("w")
        return (str(folder / "data" / "words.txt"), str(folder / "grader.py"))

    one = grader_fingerprint(install(tmp_path / "a"))
    assert one == grader_fingerprint(reversed(install(tmp_path / "b" / "c")))  # type: ignore[arg-type]
    assert one != grader_fingerprint(install(tmp_path / "d", "x = 2\n"))
    (tmp_path / "a" / "data" / "words.txt").rename(tmp_path / "a" / "words.txt")
    assert one != grader_fingerprint((str(tmp_path / "a" / "words.txt"), str(tmp_path / "a" / "grader.py")))


def test_the_plan_is_plain_json():
    plan = build_plan(two(), [17], {})
    assert json.loads(canonical(plan)) == plan
