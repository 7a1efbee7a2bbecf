"""An AgentBench assignment as EvalRuns, endpoints of the catalogue, and Secrets; pure.

What an environment of AgentBench's is called here, and which of its parameters its pack takes, is in ``_TASKS``. What
has no counterpart is told in a note and never dropped in silence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from casewarden.cli.failure import Failure

__all__ = ["Converted", "convert"]

_HTTP_AGENT: Final = "src.client.agents.HTTPAgent"
_FASTCHAT: Final = "src.client.agents.FastChatAgent"
# Of the configuration's name of a task, up to its split: pack, parameters by their names there, whether it reads data.
_TASKS: Final[Mapping[str, tuple[str, Mapping[str, str], bool]]] = {
    "os": ("agentbench-os", {"round_limit": "round_limit"}, True),
    "dbbench": ("agentbench-db", {"max_round": "maxRound", "data_file": "dataFile"}, True),
    "kg": ("agentbench-kg", {"round": "round", "sparql_url": "endpoint"}, True),
    "cg": ("agentbench-dcg", {"test_time": "test_time"}, False),
    "ltp": ("agentbench-ltp", {"round": "round"}, True),
    "alfworld": ("agentbench-alfworld", {"max_step": "max_step"}, True),
    "webshop": ("agentbench-webshop", {}, True),
    "m2w": ("agentbench-mind2web", {}, True),
}
_WITHOUT_SPLIT: Final = frozenset({"dbbench"})
# What a split says already.
_OF_SPLIT: Final = {"webshop-dev": {"start": 200, "end": 280}, "webshop-std": {"start": 0, "end": 200}}
# What only says how AgentBench's own processes run.
_SERVER: Final = frozenset({
    "name", "concurrency", "controller_address", "docker_config", "scripts", "data_config", "data_path", "config_path",
    "prompts_path", "split", "port", "workers", "eval_yaml", "data", "train", "model", "eval", "seed",
    "llm_prompt", "data_file", "filepath",
})  # fmt: skip
_PLAIN_HEADERS: Final = frozenset({"content-type", "accept"})
_PLACEHOLDER: Final = re.compile(r"<%.*%>")
_CHAT, _COMPLETIONS = "/chat/completions", "/completions"


@dataclass
class Converted:
    """What came of it. ``values`` are for the chart, ``secrets`` belong into the release's namespace."""

    runs: list[dict[str, Any]] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    secrets: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Agent:
    endpoint: str
    model: dict[str, Any]
    concurrency: int


def convert(config: Any, dataset: str) -> Converted:
    """Convert a resolved assignment file; ``Failure`` names the field for what is wrong or cannot be taken over.

    ``dataset`` is the name under which the catalogue has the AgentBench checkout.
    """
    document = _object(config, "the assignment file")
    definition = _object(document.get("definition"), "definition")
    agents, tasks = (_object(definition.get(kind), f"definition.{kind}") for kind in ("agent", "task"))
    concurrency = _object(document.get("concurrency"), "concurrency")
    slots = {kind: _object(concurrency.get(kind), f"concurrency.{kind}") for kind in ("agent", "task")}
    made, endpoints = Converted(), _Endpoints()
    pairs = list(dict.fromkeys(_pairs(document.get("assignments"))))
    if not pairs:
        raise Failure("assignments: is empty; give agents and tasks")
    for kind, known in (("agent", agents), ("task", tasks)):
        for name in dict.fromkeys(pair[kind == "task"] for pair in pairs):
            if name not in known:
                raise Failure(f"assignments: {kind} {name!r} is not in definition.{kind}; define it, or take it out")
            if not isinstance(slots[kind].get(name), int) or slots[kind][name] < 1:
                raise Failure(f"concurrency.{kind}.{name}: is {slots[kind].get(name)!r}; give a number from 1")
        if unused := [name for name in known if name not in {pair[kind == "task"] for pair in pairs}]:
            made.notes.append(f"{len(unused)} of definition.{kind} are in no assignment, and left out")
    players = {
        name: _agent(name, agents[name], slots["agent"][name], endpoints, made)
        for name in dict.fromkeys(pair[0] for pair in pairs)
    }
    for agent, task in pairs:
        reference = _task(task, tasks[task], dataset, made)
        parallelism = min(players[agent].concurrency, slots["task"][task])
        made.runs.append(_run(agent, task, reference, players[agent], parallelism))
    names = [run["metadata"]["name"] for run in made.runs]
    if twice := [name for name in names if names.count(name) > 1]:
        raise Failure(f"assignments: two runs would be called {twice[0]}; rename an agent or a task")
    calls: dict[str, int] = {}
    for player in players.values():
        calls[player.endpoint] = calls.get(player.endpoint, 0) + player.concurrency
    # Of agents only: AgentBench takes a task's from its live workers, which there are none of here.
    pools = {"agents": {name: {"concurrency": count} for name, count in calls.items()}}
    made.values = {"catalogue": {"endpoints": endpoints.catalogue(calls), "pools": pools}}
    made.secrets = endpoints.secrets()
    return made


class _Endpoints:
    """The endpoints that agents share: one for each address and credential."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str | None], str] = {}

    def add(self, url: str, credential: str | None) -> str:
        """Return the name of an endpoint."""
        key = (url, credential)
        if key not in self._found:
            stem = _name(urlsplit(url).hostname or "endpoint")[:50].strip("-")
            taken = set(self._found.values())
            name, number = stem, 2
            while name in taken:
                name, number = f"{stem}-{number}", number + 1
            self._found[key] = name
        return self._found[key]

    def catalogue(self, concurrency: Mapping[str, int]) -> dict[str, Any]:
        return {
            name: {
                "url": url,
                **({"secret": {"name": f"agentbench-{name}", "key": "key"}} if credential else {}),
                "concurrency": concurrency[name],
            }
            for (url, credential), name in self._found.items()
        }

    def secrets(self) -> list[dict[str, Any]]:
        return [
            {
                "apiVersion": "v1",
                "kind": "Secret",
                "metadata": {"name": f"agentbench-{name}"},
                "stringData": {"key": credential},
            }
            for (_, credential), name in self._found.items()
            if credential
        ]


def _pairs(assignments: Any) -> Iterator[tuple[str, str]]:
    for item in assignments if isinstance(assignments, list) else [assignments]:
        entry = _object(item, "assignments")
        sides = []
        for kind in ("agent", "task"):
            names = entry.get(kind)
            names = [names] if isinstance(names, str) else names
            if not isinstance(names, list) or not names or not all(isinstance(name, str) for name in names):
                raise Failure(f"assignments: {kind} is {names!r}; give a name, or a list of names")
            sides.append(names)
        yield from ((agent, task) for agent in sides[0] for task in sides[1])


def _agent(name: str, definition: Any, concurrency: int, endpoints: _Endpoints, made: Converted) -> _Agent:
    entry, where = _object(definition, f"definition.agent.{name}"), f"definition.agent.{name}"
    parameters = _object(entry.get("parameters"), f"{where}.parameters")
    module = entry.get("module")
    if module == _HTTP_AGENT:
        return _http_agent(name, parameters, concurrency, endpoints, made)
    if module == _FASTCHAT:
        address = str(parameters.get("controller_address", "")).rstrip("/")
        made.notes.append(
            f"agent {name}: FastChat's controller at {address} speaks a protocol of its own: start FastChat's OpenAI "
            "server beside it, and give that one's URL to the endpoint"
        )
        asked = {"temperature": "temperature", "max_new_tokens": "max_tokens", "top_p": "top_p"}
        sent = {asked[key]: value for key, value in parameters.items() if key in asked}
        model = {"name": str(parameters.get("model_name") or name), **({"parameters": sent} if sent else {})}
        return _Agent(endpoints.add(f"{_url(address, where)}/v1", None), model, concurrency)
    raise Failure(
        f"{where}.module: {module!r}: {_HTTP_AGENT} and {_FASTCHAT} can be imported; serve any other agent as an "
        "OpenAI-compatible server, and name that as an endpoint"
    )


def _http_agent(
    name: str, parameters: Mapping[str, Any], concurrency: int, endpoints: _Endpoints, made: Converted
) -> _Agent:
    where = f"definition.agent.{name}.parameters"
    url = _url(parameters.get("url"), f"{where}.url")
    body = dict(_object(parameters.get("body") or {}, f"{where}.body"))
    model_name = body.pop("model", None)
    if not isinstance(model_name, str) or not model_name:
        raise Failure(f"{where}.body.model: is {model_name!r}; give the model's name")
    headers = _object(parameters.get("headers") or {}, f"{where}.headers")
    credential = _credential(name, headers, made)
    base = url.removesuffix("/")
    by_chat = base.endswith(_CHAT)
    if not by_chat and not base.endswith(_COMPLETIONS):
        made.notes.append(f"agent {name}: {url} ends in neither {_CHAT} nor {_COMPLETIONS}: check the endpoint's URL")
    base = base.removesuffix(_CHAT).removesuffix(_COMPLETIONS)
    model: dict[str, Any] = {"name": model_name, **({"parameters": body} if body else {})}
    if (prompter := _prompter(parameters.get("prompter"), f"{where}.prompter", by_chat)) is not None:
        model["prompter"] = prompter
    wanted = "{response[choices][0][message][content]}" if by_chat else "{response[choices][0][text]}"
    if parameters.get("return_format", wanted) != wanted:
        made.notes.append(
            f"agent {name}: return_format {parameters['return_format']!r} is not the endpoint's: check it"
        )
    known = {"name", "url", "headers", "body", "prompter", "return_format"}
    for key in sorted(set(parameters) - known):
        made.notes.append(f"agent {name}: {key} has no counterpart, and is left out")
    return _Agent(endpoints.add(base, credential), model, concurrency)


def _credential(name: str, headers: Mapping[str, Any], made: Converted) -> str | None:
    """Return the key that a request's headers carry; it goes into a Secret and nowhere else."""
    found = None
    for header, value in headers.items():
        if header.lower() == "authorization":
            found = re.sub(r"^Bearer\s+", "", str(value), flags=re.IGNORECASE)
            if _PLACEHOLDER.search(found):
                made.notes.append(f"agent {name}: its key is a placeholder: put the real one into the Secret")
        elif header.lower() not in _PLAIN_HEADERS:
            made.notes.append(f"agent {name}: the header {header} is left out: an endpoint sends its key as a bearer")
    return found


def _prompter(prompter: Any, where: str, by_chat: bool) -> dict[str, Any] | None:
    """Return the prompter as a run names it; None for the one that a chat model has without being told."""
    if prompter is None:
        return None
    entry = _object(prompter, where)
    name, args = entry.get("name"), entry.get("args") or {}
    if not isinstance(name, str) or not name:
        raise Failure(f"{where}.name: is {name!r}; give the prompter's name")
    if by_chat and name == "role_content_dict" and args in ({}, {"agent_role": "assistant"}):
        return None
    return {"name": name, **({"args": args} if args else {})}


def _task(name: str, definition: Any, dataset: str, made: Converted) -> dict[str, Any]:
    entry = _object(definition, f"definition.task.{name}")
    parameters = _object(entry.get("parameters") or {}, f"definition.task.{name}.parameters")
    stem, _, split = name.rpartition("-")
    if stem not in _TASKS:
        pack = _name(str(parameters.get("name") or name))
        made.notes.append(
            f"task {name}: is none of AgentBench's eight: the catalogue must have a task {pack} (docs/agentbench.md)"
        )
        own = {
            key: value for key, value in parameters.items() if key not in ("name", "concurrency", "controller_address")
        }
        return {"name": pack, **({"params": own} if own else {})}
    pack, known, has_data = _TASKS[stem]
    params: dict[str, Any] = {"dataset": dataset} if has_data else {}
    if stem not in _WITHOUT_SPLIT:
        params["split"] = split
    params |= {known[key]: value for key, value in parameters.items() if key in known}
    said = {key for key, value in _OF_SPLIT.get(name, {}).items() if parameters.get(key) == value}
    for key in sorted(set(parameters) - set(known) - _SERVER - said):
        made.notes.append(f"task {name}: parameter {key} has no counterpart, and is left out")
    return {"name": pack, "params": params}


def _run(agent: str, task: str, reference: dict[str, Any], player: _Agent, parallelism: int) -> dict[str, Any]:
    return {
        "apiVersion": "casewarden.dev/v1alpha1",
        "kind": "EvalRun",
        "metadata": {"name": _name(f"{agent}-{task}")},
        "spec": {
            "task": reference,
            "seeds": {"values": [0]},
            "candidate": {"model": {"endpoint": player.endpoint, **deepcopy(player.model)}},
            "parallelism": parallelism,
        },
    }


def _object(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        # Not the value: headers and parameters hold keys.
        raise Failure(f"{where}: is {'missing' if value is None else f'a {type(value).__name__}'}; give an object")
    return value


def _url(value: Any, where: str) -> str:
    parts = urlsplit(str(value))
    if "@" in parts.netloc or "@" in parts.path.partition("/")[0]:
        raise Failure(f"{where}: has a user name or a password in it; put the key into the header Authorization")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise Failure(f"{where}: {value!r} is no URL; give http://… or https://…")
    return str(value)


def _name(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
