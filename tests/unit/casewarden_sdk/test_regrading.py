"""Recorded runs, graded again in one go, by a grader and by its mutants."""

from __future__ import annotations

import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest
from support.packs import EchoPack

from casewarden_sdk.canonical import canonical, sha256_bytes
from casewarden_sdk.checks import holds, mutants_of, mutated, mutated_fingerprint
from casewarden_sdk.contract import Case, Verdict
from casewarden_sdk.errors import ContractError
from casewarden_sdk.fingerprint import grader_fingerprint
from casewarden_sdk.plan import unpack_lines
from casewarden_sdk.regrading import GRADE_PREFIX, regrade_file
from casewarden_sdk.verbs import grade
from casewarden_tasks import durable_kv, support_routing


class Asking(EchoPack):
    """Asks two checks by name; the second never decides."""

    def grade(self, case: Case, record: Any) -> Verdict:
        same = holds("same", record["answers"] == case.content["requests"])
        return Verdict.assessed(case, {"echo": same and (holds("ended", True) or same)})


def records(folder: Path, *answers: Any) -> str:
    path = folder / "records.jsonl.gz"
    with gzip.open(path, "wt") as out:
        for number, answer in enumerate(answers):
            row = {"run": "uid", "seed": 17, "case_id": f"case-{number}", "repeat": 0, "digest": "ab" * 32}
            case = {"id": f"case-{number}", "requests": [1]}
            row |= {"dimensions": ["echo"], "kind": "default", "case": case, "record": answer}
            out.write(canonical(row) + "\n")
    return str(path)


RIGHT, WRONG = {"answers": [1]}, {"answers": [2]}


def test_a_check_holds_as_it_is_unless_it_is_the_one_that_is_mutated() -> None:
    with mutated("one", "dropped"):
        assert [holds("one", False), holds("one", True), holds("two", False)] == [True, True, False]
    with mutated("one", "inverted"):
        assert [holds("one", False), holds("one", True), holds("two", True)] == [True, False, True]
    assert [holds("one", False), holds("one", True)] == [False, True]
    with pytest.raises(ContractError, match="dropped, inverted"), mutated("one", "gone"):
        pass


def test_every_mutant_has_a_fingerprint_of_its_own() -> None:
    prints = {mutated_fingerprint("ab" * 32, check, how) for check, how in mutants_of(["one", "two"])}
    assert len(prints | {"ab" * 32, mutated_fingerprint("cd" * 32, "one", "dropped")}) == 6


def test_the_answer_has_every_verdict_and_what_each_mutant_judges_otherwise(tmp_path: Path) -> None:
    document = regrade_file(Asking(), records(tmp_path, RIGHT, WRONG), mutants=True)
    assert document["grader"] == grader_fingerprint(Asking().sources)
    assert [row["status"] for row in document["verdicts"]] == ["passed", "failed"]
    assert {row["digest"] for row in document["verdicts"]} == {"ab" * 32}
    changed = {
        (item["check"], item["mutation"]): [(row["case_id"], row["status"], row["checks"]) for row in item["changes"]]
        for item in document["mutants"]
    }
    assert changed == {
        ("same", "dropped"): [("case-1", "passed", "1")],
        ("same", "inverted"): [("case-0", "failed", "0"), ("case-1", "passed", "1")],
        ("ended", "dropped"): [],
        ("ended", "inverted"): [],
    }


def test_a_mutant_that_cannot_grade_leaves_the_record_unassessed(tmp_path: Path) -> None:
    class Breaking(EchoPack):
        def grade(self, case: Case, record: Any) -> Verdict:
            return Verdict.assessed(
                case, {"echo": holds("same", record["answers"] == [1]) and record["answers"][0] > 0}
            )

    document = regrade_file(Breaking(), records(tmp_path, {"answers": []}), mutants=True)
    dropped = document["mutants"][0]["changes"]
    assert [(row["status"], row["checks"]) for row in dropped] == [("environment_error", "-")]


def test_a_record_that_the_grader_cannot_grade_is_named(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="the record of uid/17/case-1/0 cannot be graded: KeyError"):
        regrade_file(Asking(), records(tmp_path, RIGHT, {}))


def test_a_pack_without_checks_cannot_be_mutated(tmp_path: Path) -> None:
    with pytest.raises(ContractError, match="echo lists no checks"):
        regrade_file(EchoPack(grader_checks={}), records(tmp_path, RIGHT), mutants=True)


def test_the_verb_answers_a_file_as_the_plan_is_answered(tmp_path: Path) -> None:
    told, out = tmp_path / "message", io.StringIO()
    asked = json.dumps({"records": records(tmp_path, RIGHT), "mutants": False})
    variables = {"CASEWARDEN_GRADE": asked, "CASEWARDEN_TERMINATION_LOG": str(told)}
    assert grade(Asking(), [], out, variables) == 0
    text = unpack_lines(GRADE_PREFIX, ["noise", *out.getvalue().splitlines()], "grading")
    assert json.loads(told.read_text()) == {"v": 1, "sha256": sha256_bytes(text.encode()), "bytes": len(text)}
    assert json.loads(text)["verdicts"][0]["passed"] is True
    assert grade(Asking(), [], io.StringIO(), variables | {"CASEWARDEN_GRADE": '{"records": "/none"}'}) == 2
    assert "FileNotFoundError" in json.loads(told.read_text())["error"]


@pytest.mark.parametrize("pack", [durable_kv.PACK, support_routing.PACK], ids=["durable-kv", "support-routing"])
def test_a_grader_asks_exactly_the_checks_that_its_pack_lists(pack: Any) -> None:
    source = Path(__import__(pack.__module__, fromlist=["x"]).__file__).with_name("grader.py").read_text()
    for check in pack.grader_checks:
        assert f'"{check}"' in source.split("CHECKS", 2)[2]
    import re

    asked = re.findall(r'(?:holds|_differs)\(\s*"([a-z-]+)"', source)
    assert sorted(asked) == sorted(pack.grader_checks)
