"""The verbs of a task image: lines in, lines out, and a termination message for who started it."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from support.packs import CONTROLS, EchoPack, cases

from casewarden_sdk.canonical import sha256_bytes
from casewarden_sdk.errors import ContractError
from casewarden_sdk.plan import read_plan_lines
from casewarden_sdk.verbs import aggregate, grade, plan


def refuses(seed: int, params: dict) -> list:
    raise ContractError("spec.task.params.size: 'x' is no number; give one from 1 to 9")


def breaks(seed: int, params: dict) -> list:
    raise KeyError("size")


def planned(pack: EchoPack, tmp_path: Path, asked: dict) -> tuple[int, str, dict]:
    out, message = io.StringIO(), tmp_path / "message"
    variables = {"CASEWARDEN_PLAN": json.dumps(asked), "CASEWARDEN_TERMINATION_LOG": str(message)}
    return plan(pack, out, variables), out.getvalue(), json.loads(message.read_text())


def test_a_plan_goes_to_the_log_and_its_digest_to_the_message(tmp_path):
    code, out, message = planned(EchoPack(), tmp_path, {"seeds": [17, 18]})
    text = read_plan_lines(out.splitlines()).encode()
    assert code == 0
    assert message == {"v": 1, "sha256": sha256_bytes(text), "bytes": len(text)}
    assert [row["seed"] for row in json.loads(text)["cases"]] == [17, 18]


@pytest.mark.parametrize(
    ("pack", "asked", "field", "words"),
    [
        (EchoPack(make=refuses), {"seeds": [17]}, "spec.task.params.size", "is no number"),
        (EchoPack(), {"seeds": [17], "families": ["x"]}, "spec.select.families", "no family 'x'"),
        (EchoPack(), {}, "spec.seeds", "one or more integers"),
        (EchoPack(controls=CONTROLS[:1]), {"seeds": [17]}, None, "no fault is declared"),
        (EchoPack(make=breaks), {"seeds": [17]}, None, "KeyError: 'size'"),
    ],
)
def test_a_refusal_names_its_field_and_exits_2(tmp_path, pack, asked, field, words):
    code, out, message = planned(pack, tmp_path, asked)
    assert (code, out) == (2, "")
    assert (message["v"], message["field"]) == (1, field)
    assert words in message["error"]


def test_a_refusal_fits_into_a_termination_message(tmp_path):
    pack = EchoPack(version="", description="é" * 9000, contract="")
    pack.version = "é" * 9000 + " "
    pack.dimensions = {"é" * 9000: "1"}
    code, _, message = planned(pack, tmp_path, {"seeds": [17]})
    assert code == 2
    assert len(json.dumps(message, ensure_ascii=False).encode()) < 1024


def test_only_a_pack_with_a_rule_of_its_own_aggregates():
    assert aggregate(EchoPack(), ["{}"], io.StringIO()) == 2
    pack, out = EchoPack(), io.StringIO()
    pack.aggregate = lambda verdicts: {"score": len(verdicts)}  # type: ignore[attr-defined]
    assert aggregate(pack, ["{}\n", "{}\n"], out) == 0
    assert json.loads(out.getvalue()) == {"score": 2}


def test_a_grader_that_judges_another_case_or_other_dimensions_is_found_out():
    case = cases(17)[0]
    row = json.dumps({"case": dict(case.content), "dimensions": ["other"], "record": {"answers": []}})

    class Careless(EchoPack):
        def grade(self, graded, record):
            return super().grade(case, record)

    out = io.StringIO()
    assert grade(Careless(), [row], out) == 1
    assert "its dimensions are ['other']" in json.loads(out.getvalue())["error"]
