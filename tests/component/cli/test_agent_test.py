"""``agent-test``: does the agent of a run answer, and if not, why?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from casewarden.cli.app import run

YES = (
    "import json, sys\nfor line in sys.stdin: print(json.dumps({'role': 'assistant', 'content': 'yes'}), flush=True)\n"
)


def tried(tmp_path: Path, capsys: pytest.CaptureFixture[str], program: str, *args: str) -> tuple[int, dict[str, Any]]:
    """Try a program of a run on durable-kv, whose task and seeds do not matter; the exit code and what was printed."""
    documents = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "agent"}, "data": {"main.py": program}},
        {
            "apiVersion": "casewarden.dev/v1alpha1",
            "kind": "EvalRun",
            "metadata": {"name": "mine"},
            "spec": {
                "task": {"name": "durable-kv"},
                "seeds": {"values": [17]},
                "candidate": {"program": {"workspace": {"configMap": "agent"}}},
            },
        },
    ]
    file = tmp_path / "run.yaml"
    file.write_text(yaml.safe_dump_all(documents))
    common = ["--local", "--out", str(tmp_path / "out"), "--output", "json"]
    code = run("casewarden", ["agent-test", "-f", str(file), *common, *args])
    return code, json.loads(capsys.readouterr().out)


def test_what_an_agent_answers_is_shown(tmp_path, capsys) -> None:
    code, told = tried(tmp_path, capsys, YES, "--message", "one", "--message", "two")
    assert (code, told["answered"]) == (0, True)
    assert [(item["role"], item["content"]) for item in told["history"]] == [
        ("user", "one"),
        ("agent", "yes"),
        ("user", "two"),
        ("agent", "yes"),
    ]


@pytest.mark.parametrize(
    ("program", "reason", "error"),
    [
        ("raise SystemExit('no key is set')\n", "Exited", "no key is set"),
        (YES.replace("'yes'", "''"), "Protocol", "a reply is empty"),
        ("print('hello')\n", "Protocol", "finite JSON"),
    ],
)
def test_why_an_agent_does_not_answer_is_said(tmp_path, capsys, program, reason, error) -> None:
    code, told = tried(tmp_path, capsys, program)
    assert (code, told["answered"], told["reason"]) == (1, False, reason)
    assert error in told["error"]
