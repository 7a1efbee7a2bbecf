"""What is exported is read back by those whose formats they are."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from support.reports import HOSTILE, case, rows, run

from casewarden.reporting.inspectlog import to_inspect
from casewarden.reporting.junit import to_junit
from casewarden.reporting.run import ReportedRun

ROOT = Path(__file__).resolve().parents[3]
# In an environment of its own: it brings eighty packages.
INSPECT = "inspect-ai==0.3.285"
JUNIT_READER = "junitparser==4.0.2"
READ = """
import json, sys
from inspect_ai.log import read_eval_log
found = []
for path in sys.argv[1:]:
    log = read_eval_log(path)
    found.append({
        "status": log.status, "task": log.eval.task, "model": log.eval.model,
        "evidence": log.eval.metadata["casewarden"]["evidence"], "error": log.error and log.error.message,
        "usage": {name: [u.input_tokens, u.output_tokens, u.total_tokens, u.total_cost]
                  for name, u in log.stats.model_usage.items()},
        "scores": {s.name: [s.scored_samples, s.unscored_samples, {n: m.value for n, m in s.metrics.items()}]
                   for s in log.results.scores},
        "samples": [[s.id, s.epoch, {n: v.value for n, v in (s.scores or {}).items()}, s.error and s.error.message,
                     s.limit and s.limit.type, [m.text for m in s.messages]] for s in log.samples],
    })
print(json.dumps(found))
"""
pytestmark = pytest.mark.timeout(900)


JUNIT = """
import json, sys
from junitparser import Error, Failure, JUnitXml
found = JUnitXml.fromfile(sys.argv[1])
print(json.dumps({
    "totals": [found.tests, found.failures, found.errors, found.skipped],
    "suites": [[suite.name, suite.tests, suite.failures, suite.errors, {p.name: p.value for p in suite.properties()},
                [[case.name, case.classname, case.time, [[type(r).__name__, r.message, r.type] for r in case.result]]
                 for case in suite]] for suite in found],
}))
"""


def read(package: str, script: str, *files: str) -> Any:
    """Run a script in an environment of its own, with the format's own library."""
    words = ["run", "--no-project", "--python", "3.11", "--with", package, "python", "-c", script, *files]
    done = subprocess.run([str(ROOT / "dev" / "uv"), *words], capture_output=True, text=True, timeout=800, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_junitparser_reads_junit_and_tells_a_rejection_from_what_was_not_assessed(tmp_path: Path) -> None:
    cases = [
        case("good"),
        case("bad", "failed", error=HOSTILE[0]),
        case("broke", "agent_error", reason="TimeLimit", error=HOSTILE[3]),
        case("lost", "environment_error", reason="Evicted"),
    ]
    file = tmp_path / "junit.xml"
    file.write_bytes(to_junit([run(cases), run(cases[:1], name="two")]))
    found = read(JUNIT_READER, JUNIT, str(file))
    assert found["totals"][:3] == [5, 2, 1]
    (name, *counts, properties, results), two = found["suites"]
    assert (name, counts, two[1]) == ("evals/one", [4, 2, 1], 1)
    assert (properties["valid"], properties["task"]) == ("false", "small@0.1.0")
    kinds = {row[0]: row[3] for row in results}
    assert kinds["good[seed=17]"] == []
    assert kinds["bad[seed=17]"] == [["Failure", HOSTILE[0], "failed"]]
    assert kinds["broke[seed=17]"][0][0] == "Failure"
    assert kinds["lost[seed=17]"][0][::2] == ["Error", "Evicted"]


def test_inspect_reads_its_log(tmp_path: Path) -> None:
    cases = [
        case("good"),
        case("bad", "failed", error="expected 3"),
        case("broke", "agent_error", reason="TimeLimit"),
        case("lost", "environment_error", reason="Evicted"),
    ]
    files: list[str] = []

    def write(name: str, found: ReportedRun) -> None:
        file = tmp_path / f"{name}.eval"
        file.write_bytes(to_inspect(found, lambda item: ({"id": item.key.case_id}, rows(*HOSTILE))))
        files.append(str(file))

    used = {"prompt_tokens": 900, "completion_tokens": 100, "model_calls": 7, "source": "reported", "cost": "0.25"}
    spec = {"repeats": 1, "candidate": {"model": {"endpoint": "team", "name": "qwen3"}}}
    write("valid", run(cases[:3], usage=used, spec=spec))
    write("invalid", run(cases))
    valid, invalid = read(INSPECT, READ, *files)
    assert (valid["status"], valid["task"], valid["evidence"]) == ("success", "small", "sha256:" + "0" * 64)
    assert valid["scores"]["casewarden"][2] == {"score": 0.3333}
    assert (valid["model"], valid["usage"]) == ("qwen3", {"qwen3": [900, 100, 1000, None]})
    assert invalid["usage"] == {}
    assert invalid["status"] == "error"
    assert "1 of 4 cases" in invalid["error"]
    assert invalid["scores"]["basic"] == [3, 1, {}]
    by_id = {sample[0]: sample[1:] for sample in invalid["samples"]}
    assert by_id["good-17"][1] == {"basic": 1, "crash": 1}
    assert by_id["broke-17"][3] == "time"
    assert by_id["lost-17"][1:3] == [{}, "Evicted: the case could not be assessed"]
    assert by_id["good-17"][4] == list(HOSTILE)
