"""Programs that play support-routing by a model, each through another client as its maker ships it.

The task's own protocol is on standard input and output, the gateway is where the client's own variables say.
"""

from __future__ import annotations

__all__ = ["ANTHROPIC", "CURL", "LANGCHAIN", "OPENAI", "SERVER"]

_LOOP = """
import json, sys
NAMES = {"get_ticket": 1, "assign_queue": 2, "add_note": 3, "close_ticket": 1}
def play(decide):
    asked = None
    for number, line in enumerate(sys.stdin):
        call = decide(line, asked, number)
        if call is None:
            print(json.dumps({"finish": True}), flush=True)
            break
        asked, name, arguments = call
        print(json.dumps({"tool": name, "arguments": arguments}), flush=True)
"""

# Every second answer is streamed.
OPENAI = f"""{_LOOP}
from openai import OpenAI
client, messages = OpenAI(), []
TOOLS = [{{"type": "function", "function": {{"name": name, "parameters": {{"type": "object"}}}}}} for name in NAMES]
def streamed(asked):
    calls, said = {{}}, ""
    for chunk in client.chat.completions.create(**asked, stream=True, stream_options={{"include_usage": True}}):
        for choice in chunk.choices:
            said += choice.delta.content or ""
            for part in choice.delta.tool_calls or ():
                call = calls.setdefault(part.index, {{"id": part.id, "name": part.function.name, "arguments": ""}})
                call["arguments"] += part.function.arguments
    function = lambda call: {{"name": call["name"], "arguments": call["arguments"]}}
    made = [{{"id": call["id"], "type": "function", "function": function(call)}} for call in calls.values()]
    return {{"role": "assistant", "content": said or None, **({{"tool_calls": made}} if made else {{}})}}
def decide(line, asked, number):
    heard = {{"role": "tool", "tool_call_id": asked}} if asked else {{"role": "user"}}
    messages.append({{**heard, "content": line}})
    request = {{"model": "anything", "messages": messages, "tools": TOOLS}}
    if number % 2:
        message = streamed(request)
    else:
        message = client.chat.completions.create(**request).choices[0].message.model_dump(exclude_none=True)
    messages.append(message)
    calls = message.get("tool_calls")
    return calls and (calls[0]["id"], calls[0]["function"]["name"], json.loads(calls[0]["function"]["arguments"]))
play(decide)
"""

ANTHROPIC = f"""{_LOOP}
import os
from anthropic import Anthropic
client, messages = Anthropic(), []
TOOLS = [{{"name": name, "input_schema": {{"type": "object"}}}} for name in NAMES]
def decide(line, asked, number):
    heard = [{{"type": "tool_result", "tool_use_id": asked, "content": line}}] if asked else line
    messages.append({{"role": "user", "content": heard}})
    request = {{"model": os.environ["CASEWARDEN_MODEL"], "max_tokens": 500, "messages": messages, "tools": TOOLS}}
    if number % 2:
        with client.messages.stream(**request) as stream:
            message = stream.get_final_message()
    else:
        message = client.messages.create(**request)
    content = [block.model_dump(include={{"type", "text", "id", "name", "input"}}) for block in message.content]
    messages.append({{"role": "assistant", "content": content}})
    call = next((block for block in content if block["type"] == "tool_use"), None)
    return call and (call["id"], call["name"], call["input"])
play(decide)
"""

# The agent's loop is LangChain's own; its tools are the task's.
LANGCHAIN = """
import json, os
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
def act(tool, **arguments):
    print(json.dumps({"tool": tool, "arguments": arguments}), flush=True)
    return input()
def get_ticket(ticket_id: str) -> str:
    "Read a ticket."
    return act("get_ticket", ticket_id=ticket_id)
def assign_queue(ticket_id: str, queue: str) -> str:
    "Put a ticket into a queue."
    return act("assign_queue", ticket_id=ticket_id, queue=queue)
def add_note(ticket_id: str, body: str, request_id: str) -> str:
    "Append a note."
    return act("add_note", ticket_id=ticket_id, body=body, request_id=request_id)
def close_ticket(ticket_id: str) -> str:
    "Close a ticket."
    return act("close_ticket", ticket_id=ticket_id)
model = ChatOpenAI(model=os.environ["CASEWARDEN_MODEL"], streaming=True)
agent = create_agent(model, [get_ticket, assign_queue, add_note, close_ticket])
agent.invoke({"messages": [{"role": "user", "content": input()}]})
print(json.dumps({"finish": True}), flush=True)
"""

# Where it must not get is in its environment.
CURL = f"""{_LOOP}
import os, subprocess
for address in os.environ["ELSEWHERE"].split():
    if subprocess.run(["curl", "-sS", "-m", "3", address], capture_output=True).returncode == 0:
        sys.exit(f"reached {{address}}, which is not the gateway")
messages = []
TOOLS = [{{"type": "function", "function": {{"name": name, "parameters": {{"type": "object"}}}}}} for name in NAMES]
def decide(line, asked, number):
    heard = {{"role": "tool", "tool_call_id": asked}} if asked else {{"role": "user"}}
    messages.append({{**heard, "content": line}})
    body = json.dumps({{"model": "x", "messages": messages, "tools": TOOLS, "stream": True}})
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    words = ["curl", "-sSfN", "-H", "Content-Type: application/json", "--data-binary", "@-", url]
    lines = subprocess.run(words, input=body, capture_output=True, text=True, check=True).stdout.splitlines()
    call = None
    for event in (json.loads(text[6:]) for text in lines if text.startswith("data: {{")):
        for part in event["choices"][0]["delta"].get("tool_calls") or ():
            if call is None:
                call = {{"id": part["id"], "type": "function", "function": {{**part["function"], "arguments": ""}}}}
            call["function"]["arguments"] += part["function"]["arguments"]
    more = {{"tool_calls": [call]}} if call else {{}}
    messages.append({{"role": "assistant", "content": None if call else "done", **more}})
    return call and (call["id"], call["function"]["name"], json.loads(call["function"]["arguments"]))
play(decide)
"""

# Hands every request on to the gateway.
SERVER = """
import http.server as h, os, urllib.request as u
class H(h.BaseHTTPRequestHandler):
    def do_POST(self):
        data = self.rfile.read(int(self.headers["Content-Length"]))
        answer = u.urlopen(u.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", data)).read()
        self.send_response(200); self.send_header("Content-Length", str(len(answer))); self.end_headers()
        self.wfile.write(answer)
    def log_message(self, *_): pass
h.ThreadingHTTPServer(("127.0.0.1", 9000), H).serve_forever()
"""
