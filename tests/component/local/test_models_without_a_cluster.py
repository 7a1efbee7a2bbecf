"""Models, servers and judges in local runs: the relay's own limits, counts and evidence on this machine."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.fake_models import FakeModels
from support.judged_pack import UNSPEAKABLE
from support.ports import free_port

from casewarden.adapters.stores.zstd import decompress
from casewarden.core.policies import retry
from casewarden.core.verification import compare_status
from casewarden.core.verify import verify_run
from casewarden_sdk.bundle import unpack_bundle

ONE = {"families": ["close-resolved-ticket"]}


@pytest.fixture(autouse=True)
def _no_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "FIRST_DELAY_SECONDS", 0.05)


@pytest.fixture
def models() -> Iterator[FakeModels]:
    with FakeModels(key="sk-local") as found:
        yield found


def verify(result: Any) -> Any:
    def read(path: str) -> bytes | None:
        file = result.folder / path
        return file.read_bytes() if file.is_file() else None

    paths = [str(path.relative_to(result.folder)) for path in result.folder.rglob("*") if path.is_file()]
    return verify_run(read, paths, decompress, status_digest=result.status["evidence"]["digest"])


def transcript(result: Any) -> list[Any]:
    bundle = next(result.folder.rglob("*.tar.zst")).read_bytes()
    return [json.loads(line) for line in unpack_bundle(bundle, decompress)["transcript.jsonl"].splitlines()]


def reason(result: Any, name: str) -> tuple[str, str]:
    found = next(item for item in result.status["conditions"] if item["type"] == name)
    return found["reason"], found["message"]


async def support(run: Any, models: FakeModels, candidate: dict[str, Any], **more: Any) -> Any:
    return await run(
        pack="casewarden_tasks.support_routing:PACK", task={"name": "support-routing"}, candidate=candidate,
        endpoints={"team": models.url}, keys={"team": "sk-local"}, **more,
    )  # fmt: skip


async def test_a_model_plays_and_what_it_used_is_in_the_status(run: Any, models: FakeModels) -> None:
    result = await support(run, models, {"model": {"endpoint": "team", "name": "support"}})
    assert (result.status["score"], result.status["cases"]["passed"]) == ("1", 4)
    usage = result.status["usage"]
    assert usage["modelCalls"] == models.stats.calls
    assert usage["promptTokens"] > 0
    assert usage["source"] in ("reported", "estimated")
    assert "cost" not in usage, "the endpoint has no price, and unknown is not 0"
    assert set(models.stats.keys) == {"sk-local"}
    found = verify(result)
    assert (found.findings, found.authenticated, found.notes) == ([], True, [])
    assert (found.calls_in_bundles, found.usage["model_calls"]) == (models.stats.calls, models.stats.calls)
    compare_status(found, result.status)
    assert found.findings == []
    run_file = result.folder / "run.json"
    run_file.write_bytes(run_file.read_bytes().replace(b'"model_calls": %d' % models.stats.calls, b'"model_calls": 1'))
    problems = [finding.problem for finding in verify(result).findings]
    assert any("its bundles come to" in problem for problem in problems), problems


async def test_a_server_plays_with_a_folder_in_the_place_of_its_image(run: Any, models: FakeModels) -> None:
    source = Path(sys.modules["support.fake_models"].__file__ or "").read_text()
    port = free_port()
    server = {"image": "not/here", "argv": ["{python}", "main.py", str(port)], "port": port}
    source = source.replace('body.get("model", "")', '"support"')
    result = await support(run, models, {"server": server}, select=ONE, files={"main.py": source})
    assert (result.status["score"], models.stats.calls) == ("1", 0), result.logs


async def test_a_program_finds_its_model_at_the_gateway(run: Any, models: FakeModels) -> None:
    program = (
        "import json, os, urllib.request as u\n"
        "for line in open(0):\n"
        "    body = json.dumps({'messages': [{'role': 'user', 'content': 'x'}]}).encode()\n"
        "    r = u.urlopen(u.Request(os.environ['OPENAI_BASE_URL'] + '/chat/completions', body))\n"
        "    assert json.load(r)['choices']\n"
        "    print(json.loads(line), flush=True)\n"
    )
    candidate = {
        "program": {"workspace": {"configMap": "agent"}}, "model": {"endpoint": "team", "name": "echo"}
    }  # fmt: skip
    result = await run(
        files={"main.py": program}, candidate=candidate, endpoints={"team": models.url}, keys={"team": "sk-local"}
    )
    assert result.status["usage"]["modelCalls"] == models.stats.calls > 0


@pytest.mark.parametrize(("control", "score"), [("reference", "1"), ("off-by-one", "0")])
async def test_a_judge_is_asked_metered_apart_and_in_the_evidence(
    run: Any, models: FakeModels, control: str, score: str
) -> None:
    result = await run(
        pack="support.judged_pack:PACK",
        task={"name": "judged", "models": {"judge": {"endpoint": "team", "name": "judge"}}},
        candidate={"control": control}, endpoints={"team": models.url}, keys={"team": "sk-local"},
    )  # fmt: skip
    assert result.status["score"] == score, result.logs
    usage = result.status["usage"]
    assert (usage["modelCalls"], usage["models"]["judge"]["modelCalls"]) == (0, 1)
    said = {row["dir"]: json.loads(row["text"]) for row in transcript(result) if row["dir"].startswith("judge-")}
    assert said["judge-in"]["temperature"] == 0
    assert said["judge-out"]["choices"][0]["message"]["content"] == ("yes" if score == "1" else "no")


@pytest.mark.parametrize("model", ["failing99", "unknown", "context", "bad-json"])
async def test_whatever_is_wrong_with_a_judge_is_nobodys_fault_but_its_own(
    run: Any, models: FakeModels, model: str
) -> None:
    result = await run(
        pack="support.judged_pack:PACK", retries={"environment": 0},
        task={"name": "judged", "models": {"judge": {"endpoint": "team", "name": model}}},
        endpoints={"team": models.url}, keys={"team": "sk-local"},
    )  # fmt: skip
    assert ("score" in result.status, result.status["valid"]) == (False, False)
    (failure,) = result.status["failures"]
    assert (failure["status"], failure["reason"]) == ("environment_error", "ModelUnavailable")
    assert failure["error"].startswith("judge: ")


async def test_what_a_judge_refuses_for_the_candidates_words_is_the_candidates(run: Any, models: FakeModels) -> None:
    result = await run(
        pack="support.judged_pack:PACK", retries={"environment": 0}, files={"main.py": UNSPEAKABLE},
        candidate={"program": {"workspace": {"configMap": "agent"}}},
        task={"name": "judged", "models": {"judge": {"endpoint": "team", "name": "judge"}}},
        endpoints={"team": models.url}, keys={"team": "sk-local"},
    )  # fmt: skip
    assert (result.status["valid"], result.status["score"]) == (True, "0"), result.logs
    (failure,) = result.status["failures"]
    assert (failure["status"], failure["reason"]) == ("agent_error", "Refused")
    assert [row["dir"] for row in transcript(result) if row["dir"].startswith("judge-")] == [
        "judge-in", "judge-out", "judge-in", "judge-out",
    ], "what it refused, and the same without the candidate's words"  # fmt: skip


@pytest.mark.parametrize(
    ("task", "endpoints", "condition", "why", "said"),
    [
        ({}, {}, "Planned", "PlanRefused", "spec.task.models.judge: the task asks a model (says yes or no)"),
        (
            {"models": {"jury": {"endpoint": "team", "name": "x"}, "judge": {"endpoint": "team", "name": "x"}}},
            {"team": "http://localhost:9/v1"}, "Planned", "PlanRefused", "asks no model of that role (it has judge)",
        ),
        (
            {"models": {"judge": {"endpoint": "team", "name": "x"}}},
            {"other": "http://localhost:9/v1"}, "Accepted", "UnknownEndpoint", "--endpoint",
        ),
    ],
)  # fmt: skip
async def test_a_run_must_name_the_models_that_its_task_asks_and_no_others(
    run: Any, task: dict[str, Any], endpoints: dict[str, str], condition: str, why: str, said: str
) -> None:
    result = await run(pack="support.judged_pack:PACK", task={"name": "judged", **task}, endpoints=endpoints)
    found, message = reason(result, condition)
    assert found == why
    assert said in message


async def test_a_server_whose_port_is_taken_is_refused_before_a_stranger_is_asked(run: Any, models: FakeModels) -> None:
    server = {"image": "x", "argv": ["x"], "port": models.server_port}
    result = await support(run, models, {"server": server})
    assert reason(result, "Accepted")[0] == "InvalidSpec"
    assert models.stats.calls == 0
