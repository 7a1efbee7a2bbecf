"""Candidates with a model: unchanged clients at the gateway, a model that plays, a server that is talked to."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from support.models import ModelBench, model_bench
from support.ports import free_port
from support.recorder import Bench, recording

from casewarden_sdk.contract import Case
from casewarden_sdk.driver import Places, drive
from casewarden_sdk.termination import decode_termination
from casewarden_tasks.support_routing import PACK

CASE = Case("a-case", ("b", "a"), {"id": "a-case", "x": 1})
SUPPORT = PACK.cases(17, {})
CLIENT = """
import json, sys
from openai import OpenAI
client = OpenAI()
for line in sys.stdin:
    asked = json.loads(line)
    try:
        answer = client.chat.completions.create(**asked)
        if asked.get("stream"):
            said = ""
            for chunk in answer:
                for choice in chunk.choices:
                    said += choice.delta.content or ""
                    for call in choice.delta.tool_calls or ():
                        said += call.function.arguments
        else:
            message = answer.choices[0].message
            said = message.content or message.tool_calls[0].function.arguments
    except Exception as error:
        said = f"{type(error).__name__}: {error}"
    print(json.dumps(said), flush=True)
"""


@pytest.fixture
async def bench(scratch: Path) -> AsyncIterator[ModelBench]:
    async with model_bench(scratch, CASE.id) as made:
        yield made


def candidate(port: int, **more: object) -> dict[str, object]:
    return {
        "argv": [sys.executable, "-I", "-B", "{workspace}/main.py"], "default_argv": ["x"], "env": [],
        "network": f"loopback:{port}", **more,
    }  # fmt: skip


def using(bench: ModelBench, scratch: Path, name: str, **model: object):
    attempt = bench.attempt(name, **model)
    limits = {"response_seconds": 20, "processes": 128}
    return recording(CASE, scratch, candidate=candidate(bench.port), limits=limits, **attempt)


async def ask(recorder: Bench, session: int, **request: object) -> str:
    document = {"model": "what I like", "messages": [{"role": "user", "content": "hello there"}], **request}
    return json.loads(await recorder.say(session, json.dumps(document).encode(), 20))


async def test_the_unchanged_openai_client_works_through_the_gateway(bench: ModelBench, scratch: Path) -> None:
    tools = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
    async with using(bench, scratch, "tools", parameters={"temperature": 0}) as recorder:
        assert (await recorder.hello())["candidate"] == "program"
        session = await recorder.start(CLIENT)
        assert await ask(recorder, session) == "echo: hello there"
        assert await ask(recorder, session, stream=True) == "echo: hello there"
        assert await ask(recorder, session, tools=tools) == '{"city": "Bonn"}'
        assert await ask(recorder, session, tools=tools, stream=True) == '{"city": "Bonn"}'
        await recorder.finish(session)
        await recorder.seal()
    # The candidate chooses neither model nor parameters, and has no key.
    assert set(bench.models.stats.models) == {"tools"}
    assert {body["temperature"] for body in bench.models.stats.bodies} == {0}
    files = recorder.sink.files()
    rows = [json.loads(line) for line in files["transcript.jsonl"].splitlines()]
    assert sum(row["dir"] == "model-in" for row in rows) == sum(row["dir"] == "model-out" for row in rows) == 4
    assert b"sk-1" not in files["transcript.jsonl"]
    usage = json.loads(files["attempt.json"])["usage"]
    assert usage == {"prompt_tokens": 44, "completion_tokens": 28, "model_calls": 4, "source": "reported"}


async def test_a_runs_headers_go_with_every_call_and_the_key_is_the_relays(bench: ModelBench, scratch: Path) -> None:
    headers = {"anthropic-beta": "tools-2"}
    async with using(bench, scratch, "echo", headers=headers) as recorder:
        await recorder.hello()
        session = await recorder.start(CLIENT)
        assert await ask(recorder, session) == "echo: hello there"
    assert bench.models.stats.headers[0]["anthropic-beta"] == "tools-2"
    assert bench.models.stats.keys == ["sk-1"]


async def test_a_run_cannot_put_a_key_of_its_own_before_the_relays(bench: ModelBench, scratch: Path) -> None:
    async with using(bench, scratch, "echo", headers={"authorization": "Bearer mine"}) as recorder:
        await recorder.hello()
        session = await recorder.start(CLIENT)
        await recorder.ask("send", b'{"model": "x", "messages": []}', session=session)
        refusal = await recorder.refused("receive", session=session, seconds=20)
    assert (refusal.reason, bench.models.stats.calls) == ("BadRequest", 0)


async def test_the_program_reaches_nothing_but_the_gateway(bench: ModelBench, scratch: Path) -> None:
    program = f"""
import os, socket
gateway = int(os.environ["OPENAI_BASE_URL"].split(":")[2][:-3])
for line in open(0):
    for port in ({bench.models.server_port}, {bench.url.rpartition(":")[2]}, gateway):
        try:
            socket.create_connection(("127.0.0.1", port), 2).close()
            print("open", end=" ")
        except OSError as error:
            print(type(error).__name__, end=" ")
    print(os.environ["OPENAI_API_KEY"], flush=True)
"""
    async with using(bench, scratch, "echo") as recorder:
        await recorder.hello()
        session = await recorder.start(program)
        assert await recorder.say(session, b"go") == b"PermissionError PermissionError open unused"


@pytest.mark.parametrize(
    ("name", "model", "party", "reason", "why"),
    [
        ("echo", {"tokens": 10}, "candidate", "TokenLimit", "used 18 tokens; the case has 10"),
        ("echo", {"budget": {"calls": 0}}, "environment", "BudgetSpent", "0 model calls"),
        ("failing99", {}, "environment", "ModelUnavailable", "500"),
        ("echo", {"endpoint": "gone"}, "environment", "ModelUnavailable", "no endpoint 'gone'"),
    ],
)
async def test_what_ends_the_case_is_told_whatever_the_program_makes_of_it(
    bench: ModelBench, scratch: Path, name: str, model: dict[str, object], party: str, reason: str, why: str
) -> None:
    async with using(bench, scratch, name, **model) as recorder:
        await recorder.hello()
        session = await recorder.start(CLIENT)
        await recorder.ask("send", b'{"model": "x", "messages": [{"role": "user", "content": "a"}]}', session=session)
        refusal = await recorder.refused("receive", session=session, seconds=20)
        assert (refusal.party, refusal.reason) == (party, reason)
        assert why in refusal.message


async def test_refusals_of_the_model_are_the_programs_to_deal_with(bench: ModelBench, scratch: Path) -> None:
    async with using(bench, scratch, "context") as recorder:
        await recorder.hello()
        session = await recorder.start(CLIENT)
        assert "maximum context length" in await ask(recorder, session)


async def played(case: Case, scratch: Path, recorder: Bench) -> dict[str, object]:
    places = Places(evidence=str(scratch / "s" / "t"), termination=str(scratch / "message"))
    assert await drive(PACK, json.dumps({"seed": 17, "case_id": case.id}), places) == 0
    return decode_termination((scratch / "message").read_text())


OWN = {"openai": {}, "anthropic": {"endpoint": "claude", "dialect": "anthropic"}}


@pytest.mark.parametrize("dialect", OWN)
@pytest.mark.parametrize("case", SUPPORT, ids=lambda case: case.id)
async def test_a_model_plays_support_routing_by_calling_functions(case: Case, scratch: Path, dialect: str) -> None:
    async with (
        model_bench(scratch, case.id) as bench,
        recording(
            case, scratch, real_shim=False, candidate=None, **bench.attempt("support", **OWN[dialect])
        ) as recorder,
    ):
        told = await played(case, scratch, recorder)
    assert (told["status"], told["checks"]) == ("passed", "11111")
    record = json.loads(recorder.sink.files()["record.json"])
    assert record["trace"][-1]["type"] == "finish"


@pytest.mark.parametrize(
    ("model", "reason"), [("context", "ContextLimit"), ("unknown", "BadRequest"), ("failing99", "ModelUnavailable")]
)
async def test_a_model_that_refuses_is_assessed_and_one_that_is_away_is_not(
    scratch: Path, model: str, reason: str
) -> None:
    case = SUPPORT[0]
    async with (
        model_bench(scratch, case.id) as bench,
        recording(case, scratch, real_shim=False, candidate=None, **bench.attempt(model)),
    ):
        places = Places(evidence=str(scratch / "s" / "t"), termination=str(scratch / "message"))
        code = await drive(PACK, json.dumps({"seed": 17, "case_id": case.id}), places)
    told = decode_termination((scratch / "message").read_text())
    assert told["reason"] == reason
    assert (code, told["status"]) == ((3, "environment_error") if model == "failing99" else (0, "agent_error"))


SERVER = (Path(__file__).parents[2] / "support" / "fake_models.py").read_text()


def server(port: int, source: str, scratch: Path) -> dict[str, object]:
    (scratch / "candidate").mkdir(exist_ok=True)
    (scratch / "candidate" / "main.py").write_text(source)
    argv = ["{python}", "-I", "-B", "{workspace}/main.py", str(port)]
    return {"argv": argv, "default_argv": ["x"], "env": [], "network": f"serve:{port}", "port": port}


async def test_a_server_plays_support_routing_to_the_same_verdict(scratch: Path) -> None:
    case, port = SUPPORT[3], free_port()
    source = SERVER.replace('body.get("model", "")', '"support"')
    async with recording(case, scratch, candidate=server(port, source, scratch)) as recorder:
        told = await played(case, scratch, recorder)
    assert (told["status"], told["checks"]) == ("passed", "11111")


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import time; time.sleep(60)", "NotReady"),
        ("raise SystemExit(3)", "NotReady"),
        (SERVER.replace('body.get("model", "")', '"failing99"'), "ServerError"),
        (SERVER.replace('body.get("model", "")', '"bad-json"'), "Protocol"),
        (SERVER.replace('body.get("model", "")', '__import__("os")._exit(3)'), "Exited"),
    ],
)
async def test_every_failure_of_a_server_is_its_own(scratch: Path, source: str, reason: str) -> None:
    case = SUPPORT[0]
    settings = {"candidate": server(free_port(), source, scratch), "limits": {"start_seconds": 2}}
    async with recording(case, scratch, **settings) as recorder:
        told = await played(case, scratch, recorder)
    assert (told["status"], told["reason"]) == ("agent_error", reason)


AGENT = """
import http.server as h, json, sys
COUNT = [0]
class H(h.BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        COUNT[0] += 1
        status, answer = play(COUNT[0], self.path, self.headers, asked)
        data = json.dumps(answer).encode()
        self.send_response(status); self.send_header("Content-Length", str(len(data))); self.end_headers()
        self.wfile.write(data)
    def log_message(self, *_): pass
def main(): h.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), H).serve_forever()
"""


async def say(recorder: Bench, *messages: dict[str, object]) -> dict[str, object]:
    session = (await recorder.ask("start", argv=None))[0]["session"]
    payload = json.dumps({"messages": list(messages)}).encode()
    return json.loads((await recorder.ask("action", payload, session=session))[1])


def http_agent(play: str, scratch: Path, **interface: object) -> dict[str, object]:
    own = server(free_port(), f"{AGENT}{play}\nmain()\n", scratch)
    prompter = {"name": "role_content_dict", "args": {}}
    own["agent"] = {
        "path": "/", "headers": {}, "body": {}, "prompter": prompter, "return_format": "{response}", **interface,
    }  # fmt: skip
    return own


async def test_a_server_with_agentbenchs_interface_is_asked_in_its_words(scratch: Path) -> None:
    play = "def play(n, path, headers, asked): return 200, {'said': [path, headers['X-Team'], asked]}"
    agent = http_agent(
        play, scratch, path="/act?now", headers={"X-Team": "blue"}, body={"mode": "fast"},
        prompter={"name": "prompt_string", "args": {"suffix": "ME:"}}, return_format="<{response[said]}>",
    )  # fmt: skip
    async with recording(CASE, scratch, candidate=agent) as recorder:
        assert (await recorder.hello())["candidate"] == "server"
        answer = await say(recorder, {"role": "user", "content": "hi"}, {"role": "assistant", "content": "ho"})
    asked = {"mode": "fast", "prompt": "USER: hi\n\nAGENT: ho\n\nME:"}
    assert answer == {"role": "assistant", "content": f"<{['/act?now', 'blue', asked]}>"}


@pytest.mark.parametrize(
    ("play", "reason"),
    [
        ("return (500, 'oops') if n < 3 else (200, 'third')", None),
        ("return 500, 'oops'", "ServerError"),
        ("return 500, 'the Prompt is too Long'", "ContextLimit"),
        ("return 200, {'other': 1}", "Protocol"),
    ],
)
async def test_an_http_agent_is_asked_three_times_and_its_context_limit_is_known_by_its_words(
    scratch: Path, monkeypatch: pytest.MonkeyPatch, play: str, reason: str | None
) -> None:
    monkeypatch.setattr("casewarden.casepod.chat._AGENT_PAUSES", (0.0, 0.0))
    form = "{response[text]}" if reason == "Protocol" else "{response}"
    agent = http_agent(f"def play(n, path, headers, asked): {play}", scratch, return_format=form)
    async with recording(CASE, scratch, candidate=agent) as recorder:
        await recorder.hello()
        if reason is None:
            assert (await say(recorder, {"role": "user", "content": "hi"}))["content"] == "third"
            return
        session = (await recorder.ask("start", argv=None))[0]["session"]
        payload = b'{"messages": [{"role": "user", "content": "hi"}]}'
        refusal = await recorder.refused("action", payload, session=session)
    assert (refusal.party, refusal.reason) == ("candidate", reason)


@pytest.mark.parametrize(
    ("prompter", "asked", "answer"),
    [
        ({"name": "claude", "args": {}}, {"prompt": "Human: hi\n\nAssistant:"}, "echo: Human: hi\n\nAssistant:"),
        (
            {"name": "role_content_dict", "args": {"agent_role": "assistant"}},
            {"messages": [{"role": "user", "content": "hi"}]}, "echo: hi",
        ),
        ({"name": "openai-chat", "args": {}}, {"messages": [{"role": "user", "content": "hi"}]}, "echo: hi"),
    ],
)  # fmt: skip
async def test_a_model_is_asked_by_its_prompter(
    scratch: Path, prompter: dict[str, object], asked: dict[str, object], answer: str
) -> None:
    async with (
        model_bench(scratch, CASE.id) as bench,
        recording(CASE, scratch, real_shim=False, candidate=None, **bench.attempt("x", prompter=prompter)) as recorder,
    ):
        await recorder.hello()
        assert (await say(recorder, {"role": "user", "content": "hi"}))["content"] == answer
    assert bench.models.stats.bodies == [{**asked, "model": "x"}]
