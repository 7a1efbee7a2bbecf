"""Whatever a candidate does, the case is assessed: it can lose, it cannot choose not to be judged."""

from __future__ import annotations

from dataclasses import replace

import pytest

from casewarden.api.reasons import AttemptReason
from casewarden_sdk.canonical import canonical
from casewarden_sdk.contract import AGENT_ERROR, FAILED
from casewarden_sdk.testing import Played, play
from casewarden_tasks.durable_kv import DurableKv


class Impatient(DurableKv):
    limits = replace(DurableKv.limits, response_seconds=1)


PACK = DurableKv()
CASES = {case.id: case for case in PACK.cases(17, {})}
FOR_EACH_LINE = "import json, os, sys, time\nfor line in sys.stdin:\n    "


def played(body: str, case: str = "read-write-delete") -> Played:
    result = play(PACK, CASES[case], {"main.py": FOR_EACH_LINE + body})
    canonical(result.record)  # what the driver does next with it
    assert canonical(PACK.grade(CASES[case], result.record).to_json()) == canonical(result.verdict.to_json())
    return result


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("print('{', flush=True)", "Protocol"),
        ("print('NaN', flush=True)", "Protocol"),
        ("print('1e999', flush=True)", "Protocol"),
        ("print('9' * 5000, flush=True)", "Protocol"),
        ("sys.stdout.buffer.write(b'\\xff\\n'); sys.stdout.flush()", "Protocol"),
        ("print('[' * 250 + ']' * 250, flush=True)", "Protocol"),
        ("print('[' * 960 + ']' * 960, flush=True)", "Protocol"),
        ("print('[' * 500000 + ']' * 500000, flush=True)", "Protocol"),
        ("print('a' * (1 << 21), flush=True)", "OutputLimit"),
        ("sys.exit(0)", "Exited"),
        ("sys.exit(127)", "Exited"),
        ("os.kill(os.getpid(), 9)", "Exited"),
        ("os.close(1)", "Exited"),
    ],
)
def test_a_break_is_the_agents_error_with_its_reason(body: str, reason: str) -> None:
    verdict = played(body).verdict
    assert (verdict.status, verdict.reason) == (AGENT_ERROR, AttemptReason(reason))


def test_silence_is_the_agents_error() -> None:
    result = play(Impatient(), CASES["read-write-delete"], {"main.py": FOR_EACH_LINE + "time.sleep(60)"})
    assert (result.verdict.status, result.verdict.reason) == (AGENT_ERROR, AttemptReason.TIME_LIMIT)


@pytest.mark.parametrize(
    "body",
    [
        "print(json.dumps({'ok': True, 'found': False, 'score': 1}), flush=True)",
        "print('[' * 200 + ']' * 200, flush=True)",
        "print(json.dumps('\\ud800\\x00\\x1b[2J<script>'), flush=True)",
        'print(\'{"a": 1, "a": 2}\', flush=True)',
        "print(json.dumps('x' * 500000), flush=True)",
        "print('null\\nnull', flush=True)",
        "print('2' * 4000, flush=True)",
    ],
)
def test_a_strange_answer_is_a_wrong_answer(body: str) -> None:
    verdict = played(body).verdict
    assert verdict.status == FAILED
    assert verdict.error is not None
    assert len(verdict.error) < 500
    assert verdict.error.isascii()
    assert verdict.error.isprintable()


def test_a_flood_on_standard_error_blocks_nobody() -> None:
    body = "sys.stderr.write('e' * 200000); print(json.dumps({'ok': True, 'found': False}), flush=True)"
    assert played(body).verdict.status == FAILED


@pytest.mark.parametrize(
    ("last_words", "reason"), [("print('bye')", "Protocol"), ("sys.exit(3)", "Exited"), ("os.abort()", "Exited")]
)
def test_a_right_program_that_does_not_end_well_fails_the_case(last_words: str, reason: str) -> None:
    (reference,) = (control for control in PACK.controls if control.kind == "reference")
    program = {"main.py": f"{reference.files['main.py']}\n{last_words}\n"}
    verdict = play(PACK, CASES["restart-preserves-transaction"], program).verdict
    assert (verdict.status, verdict.reason) == (AGENT_ERROR, reason)
