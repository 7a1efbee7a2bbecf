"""A model server that speaks OpenAI's and Anthropic's dialect by a script. Standard library only: it runs in any pod.

The name of the model says how it behaves, ``/stats`` what it saw: ``python3 fake_models.py PORT [KEY]``. After a ``+``
comes how it answers: ``support+slow`` plays well and takes its time, ``support+flaky`` fails and throttles in between.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SECONDS_SLOW = 0.3


class Stats:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside = self.most = self.calls = self.answered = 0
        self.models: list[str] = []
        self.keys: list[str | None] = []
        self.bodies: list[Any] = []
        self.headers: list[dict[str, str]] = []
        self.seen: Counter[str] = Counter()
        self.times: list[float] = []

    def json(self) -> dict[str, Any]:
        with self.lock:
            return {
                "calls": self.calls, "answered": self.answered, "most": self.most, "inside": self.inside,
                "models": dict(self.seen), "times": self.times,
            }  # fmt: skip


def support_action(messages: list[dict[str, Any]], *, closes: bool = True) -> dict[str, Any] | None:
    """Play support-routing right: the next tool call by what the tools have answered so far, None to finish.

    Without ``closes`` it forgets to close what is resolved.
    """
    start = json.loads(next(item["content"] for item in messages if item["role"] == "user"))
    task = start["task"]
    ticket: Any = None
    done: dict[str, bool] = {}
    names = {}
    for item in messages:
        for call in item.get("tool_calls") or ():
            names[call["id"]] = call["function"]["name"]
        if item["role"] == "tool":
            result = json.loads(item["content"])["result"]
            name = names[item["tool_call_id"]]
            done[name] = result["ok"]
            if name == "get_ticket":
                ticket = result["ticket"]
    target = task["ticket_id"]
    if ticket is None:
        return {"name": "get_ticket", "arguments": {"ticket_id": target}}
    if not done.get("assign_queue"):
        queue = task["routing_rules"][ticket["category"]]
        return {"name": "assign_queue", "arguments": {"ticket_id": target, "queue": queue}}
    if not done.get("add_note"):
        note = {"ticket_id": target, "body": task["note"], "request_id": "note-1"}
        return {"name": "add_note", "arguments": note}
    if ticket["resolved"] and closes and not done.get("close_ticket"):
        return {"name": "close_ticket", "arguments": {"ticket_id": target}}
    return None


def puzzle_judge(messages: list[dict[str, Any]]) -> str:
    """Host lateral thinking puzzles by a script: a claim is true, and says what its words say."""
    asked = messages[-1]["content"]
    if asked.endswith('Question: "Was the man playing a game?"'):
        return "Yes"
    if asked.startswith("A new game."):
        claimed = 'Question: "Is this a part of what really happened'
        denied = 'Question: "Is it wrong that'
        return "Yes" if claimed in asked else "No." if denied in asked else "Irrelevant"
    if asked.startswith("Turn this question"):
        question = json.loads(asked.split("\nQuestion: ", 1)[1].split("\nStatement:")[0])
        return str(question.split(": ", 1)[-1].rstrip("?"))
    if asked.startswith("Write one sentence"):
        return "; ".join(line[2:] for line in asked.splitlines() if line.startswith("- "))
    statement, key = asked.split("\nStatement: ", 1)[1].split("\nKey: ", 1)
    wanted = set(re.findall(r"\w+", key.rsplit("\nAnswer:", 1)[0].lower()))
    return "Yes" if wanted <= set(re.findall(r"\w+", statement.lower())) else "No"


def game_player(messages: list[dict[str, Any]]) -> str:
    """Play Aquawar legally: guess the first kind that was not guessed last, and hit the first enemy."""
    asked = messages[-1]["content"]
    facts = dict(line.split(": ", 1) for line in asked.splitlines()[1:])
    if asked.startswith("Guess"):
        position = json.loads(facts["Enemy positions that are alive and not named"])[0]
        return f"I guess {json.dumps({'guess_type': 'eel', 'target_position': position})}."
    state = json.loads(facts["State"])
    move = {"pick_fish": state["You"][0]["ID"], "action": "normal", "target_position": state["Enemy"][0]["POSITION"]}
    return f"```json\n{json.dumps(move)}\n```"


def message_for(model: str, body: dict[str, Any]) -> dict[str, Any]:
    messages = body.get("messages") or []
    if model == "says":
        return {"role": "assistant", "content": body["say"]}
    if model == "puzzle-judge":
        return {"role": "assistant", "content": puzzle_judge(messages)}
    if model == "nonsense-judge":
        return {"role": "assistant", "content": "Perhaps."}
    if model == "game-player":
        return {"role": "assistant", "content": game_player(messages)}
    if model == "puzzle-player":
        return {"role": "assistant", "content": f"Is the answer to do with the number {len(messages)}?"}
    if model in ("support", "careless"):
        action = support_action(messages, closes=model == "support")
        if action is None:
            return {"role": "assistant", "content": "done"}
        called = {"name": action["name"], "arguments": json.dumps(action["arguments"])}
        number = sum(item["role"] == "assistant" for item in messages)
        call = {"id": f"call_{number}", "type": "function", "function": called}
        return {"role": "assistant", "content": None, "tool_calls": [call]}
    if body.get("tools") and model == "tools":
        called = {"name": body["tools"][0]["function"]["name"], "arguments": '{"city": "Bonn"}'}
        return {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call_1", "type": "function", "function": called}],
        }
    last = messages[-1]["content"] if messages else ""
    if model == "judge":
        return {"role": "assistant", "content": "yes" if last == "42" else "no"}
    return {"role": "assistant", "content": f"echo: {last}"}


def from_anthropic(messages: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Say in OpenAI's words what was said in Anthropic's."""
    for message in messages:
        content = message["content"]
        if isinstance(content, str):
            yield {"role": message["role"], "content": content}
            continue
        texts = [block["text"] for block in content if block["type"] == "text"]
        calls = [
            {"id": block["id"], "function": {"name": block["name"], "arguments": json.dumps(block["input"])}}
            for block in content
            if block["type"] == "tool_use"
        ]
        if texts or calls:
            yield {
                "role": message["role"],
                "content": "".join(texts) or None,
                **({"tool_calls": calls} if calls else {}),
            }
        for block in content:
            if block["type"] == "tool_result":
                said = block["content"]
                text = said if isinstance(said, str) else "".join(part["text"] for part in said)
                yield {"role": "tool", "tool_call_id": block["tool_use_id"], "content": text}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: FakeModels

    def log_message(self, *_: Any) -> None:
        return

    def do_GET(self) -> None:
        self.answer(200, self.server.stats.json())

    def do_POST(self) -> None:
        stats = self.server.stats
        data = self.rfile.read(int(self.headers["Content-Length"]))
        with stats.lock:
            stats.inside += 1
            stats.calls += 1
            stats.most = max(stats.most, stats.inside)
            stats.times.append(time.time())
        try:
            self.reply(data)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        finally:
            with stats.lock:
                stats.inside -= 1

    def reply(self, data: bytes) -> None:
        stats, body = self.server.stats, json.loads(data)
        model, _, how = body.get("model", "").partition("+")
        key = self.headers.get("x-api-key") or (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        with stats.lock:
            stats.models.append(model)
            stats.keys.append(key or None)
            stats.bodies.append(body)
            stats.headers.append(dict(self.headers))
            stats.seen[model] += 1
            count = stats.seen[model]
        if self.server.key and key != self.server.key:
            return self.answer(401, {"error": {"message": f"Incorrect API key provided: {key}"}})
        if model == "keyed":
            return self.answer(401, {"error": {"message": f"Incorrect API key provided: {key}"}})
        if model.startswith("busy") and count <= int(model[4:]):
            return self.answer(429, {"error": {"message": "slow down"}}, {"Retry-After": "0.2"})
        if model.startswith("failing") and count <= int(model[7:]):
            return self.answer(500, {"error": {"message": "oops"}})
        if how == "flaky" and count % 5 == 2:
            return self.answer(500, {"error": {"message": "oops"}})
        if how == "flaky" and count % 5 == 4:
            return self.answer(429, {"error": {"message": "slow down"}}, {"Retry-After": "0.2"})
        if model == "redirect":
            return self.answer(307, {}, {"Location": "http://169.254.169.254/latest"})
        if model == "unknown":
            return self.answer(404, {"error": {"message": "The model `unknown` does not exist"}})
        if model == "context":
            return self.answer(400, {"error": {"message": "This model's maximum context length is 10 tokens"}})
        if "frobnicate" in body:
            return self.answer(400, {"error": {"message": "Unrecognized request argument supplied: frobnicate"}})
        if model == "judge" and "unspeakable" in json.dumps(body.get("messages")):
            return self.answer(400, {"error": {"message": "refused", "code": "content_filter"}})
        if model == "bad-json":
            return self.raw(200, b'{"choices": [', "application/json")
        if model == "bomb":
            return self.raw(200, gzip.compress(b" " * (16 << 20)), "application/json", {"Content-Encoding": "gzip"})
        if model == "slow" or how:
            time.sleep(SECONDS_SLOW)
        if model == "stall":
            time.sleep(3.0)
        with stats.lock:
            stats.answered += 1
        if self.path.endswith("/messages"):
            return self.anthropic(model, body)
        return self.openai(model, body)

    def openai(self, model: str, body: dict[str, Any]) -> None:
        if not self.path.endswith("/chat/completions"):
            text = body["say"] if model == "says" else f"echo: {body['prompt']}"
            document = {"object": "text_completion", "choices": [{"index": 0, "text": text}]}
            return self.answer(200, {**document, "usage": {"prompt_tokens": 11, "completion_tokens": 7}})
        message = message_for(model, body)
        usage = {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18}
        if model == "false-usage":
            usage = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
        head = {"id": "chatcmpl-1", "created": 1, "model": model}
        reason = "tool_calls" if message.get("tool_calls") else "stop"
        if not body.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": reason}
            document = {**head, "object": "chat.completion", "choices": [choice]}
            return self.answer(200, document if model == "no-usage" else {**document, "usage": usage})
        head["object"] = "chat.completion.chunk"
        if message.get("tool_calls"):
            call = message["tool_calls"][0]
            half = len(call["function"]["arguments"]) // 2
            first = {
                **call,
                "index": 0,
                "function": {**call["function"], "arguments": call["function"]["arguments"][:half]},
            }
            second = {"index": 0, "function": {"arguments": call["function"]["arguments"][half:]}}
            deltas = [{"role": "assistant", "tool_calls": [first]}, {"tool_calls": [second]}]
        else:
            words = message["content"].split(" ")
            deltas = [{"content": word if at == 0 else f" {word}"} for at, word in enumerate(words)]
        events: list[Any] = [
            {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas
        ]
        events.append({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
        if (body.get("stream_options") or {}).get("include_usage"):
            events.append({**head, "choices": [], "usage": usage})
        return self.stream([f"data: {json.dumps(event)}\n\n" for event in events], cut=model == "cut")

    def anthropic(self, model: str, body: dict[str, Any]) -> None:
        message = message_for(model, {**body, "messages": list(from_anthropic(body.get("messages") or []))})
        calls = message.get("tool_calls") or ()
        blocks: list[dict[str, Any]] = [
            {"type": "tool_use", "id": call["id"], "name": call["function"]["name"],
             "input": json.loads(call["function"]["arguments"])}
            for call in calls
        ] or [{"type": "text", "text": message["content"]}]  # fmt: skip
        reason = "tool_use" if calls else "end_turn"
        head = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "stop_sequence": None}
        if not body.get("stream"):
            usage = {"input_tokens": 11, "output_tokens": 7}
            return self.answer(200, {**head, "stop_reason": reason, "content": blocks, "usage": usage})
        begun = {**head, "stop_reason": None, "content": [], "usage": {"input_tokens": 11, "output_tokens": 1}}
        events: list[dict[str, Any]] = [{"type": "message_start", "message": begun}]
        for index, block in enumerate(blocks):
            if block["type"] == "text":
                empty, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
            else:
                empty = {**block, "input": {}}
                delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            events += [
                {"type": "content_block_start", "index": index, "content_block": empty},
                {"type": "content_block_delta", "index": index, "delta": delta},
                {"type": "content_block_stop", "index": index},
            ]
        ended = {"stop_reason": reason, "stop_sequence": None}
        events += [{"type": "message_delta", "delta": ended, "usage": {"output_tokens": 7}}, {"type": "message_stop"}]
        return self.stream([f"event: {item['type']}\ndata: {json.dumps(item)}\n\n" for item in events], done=False)

    def stream(self, events: list[str], *, cut: bool = False, done: bool = True) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events[: 1 if cut else None] + ([] if cut or not done else ["data: [DONE]\n\n"]):
            data = event.encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()
            time.sleep(0.01)
        if cut:
            self.close_connection = True
            return
        self.wfile.write(b"0\r\n\r\n")

    def answer(self, status: int, document: Any, headers: dict[str, str] | None = None) -> None:
        self.raw(status, json.dumps(document).encode(), "application/json", headers)

    def raw(self, status: int, data: bytes, kind: str, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


class FakeModels(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def __init__(self, port: int = 0, key: str | None = None, host: str = "127.0.0.1") -> None:
        super().__init__((host, port), Handler)
        self.stats = Stats()
        self.key = key

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def __enter__(self) -> FakeModels:
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self.server_close()

    def handle_error(self, *_: Any) -> None:
        return


if __name__ == "__main__":
    FakeModels(int(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None, "0.0.0.0").serve_forever()
