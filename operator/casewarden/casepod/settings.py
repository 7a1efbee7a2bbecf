"""What the recorder is told about its attempt (``CASEWARDEN_ATTEMPT``) and about its container."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "AgentSettings", "CandidateSettings", "Limits", "ModelSettings", "Places", "PrompterSettings", "Settings",
    "SettingsError",
]  # fmt: skip


class SettingsError(ValueError):
    """The attempt's description is not whole; the message names the field."""


@dataclass(frozen=True, slots=True)
class Places:
    """Paths of this container and (``workspace``, ``state``, ``home``, ``path``, ``python``) of the candidate's."""

    task_socket: str = "/casewarden/task/evidence.sock"
    candidate_socket: str = "/casewarden/candidate/shim.sock"
    spool: str = "/casewarden/spool"
    token: str = "/var/run/casewarden/token"  # noqa: S105 - a path
    own_workspace: str = "/candidate"
    workspace: str = "/candidate"
    state: str = "/state"
    home: str = "/tmp"  # noqa: S108 - the candidate's own, in its own container
    path: str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    python: str = "python3"


@dataclass(frozen=True, slots=True)
class Limits:
    """What the recorder enforces. Seconds are wall time; ``hold_seconds`` is how long the store is waited for."""

    case_seconds: float
    response_seconds: float
    start_seconds: float
    output_bytes: int
    request_bytes: int
    processes: int | None
    state_mib: int
    hold_seconds: float
    actions: int | None = None


@dataclass(frozen=True, slots=True)
class PrompterSettings:
    """A prompter of ``casewarden_sdk.prompters``."""

    name: str
    args: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """AgentBench's interface of a server: where and how it is asked, and how its answer is read."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    prompter: PrompterSettings
    return_format: str


@dataclass(frozen=True, slots=True)
class CandidateSettings:
    """How the candidate is started. ``argv`` is the run's own and wins over ``default_argv``."""

    argv: tuple[str, ...] | None
    default_argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = ()
    network: str = "none"
    workspace_digest: str | None = None
    fetch_workspace: bool = False
    port: int | None = None
    """Of a server; None for a program."""
    agent: AgentSettings | None = None
    """A server's interface where it is not OpenAI's."""


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """The candidate's model: asked by the driver where there is no program or server, else by those at the gateway.

    ``tokens`` are the case's limit, ``budget`` is the run's (``tokens``, ``calls``, ``cost``).
    """

    endpoint: str
    name: str
    dialect: str = "openai"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    tokens: int | None = None
    budget: Mapping[str, Any] = field(default_factory=dict)
    priority: int = 0
    port: int = 8350
    prompter: PrompterSettings | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Settings:
    """An attempt.

    ``candidate`` is None where the case's kind has no such container. ``told_limits`` are the limits as they came, for
    the driver and the bundle. ``loss_grace`` is how many seconds a lost shim is not yet held against the candidate, so
    that the end of the whole pod shows first.
    """

    run_uid: str
    seed: int
    case_id: str
    repeat: int
    attempt: int
    pod_name: str
    pod_uid: str
    case_sha256: str
    dimensions: tuple[str, ...]
    limits: Limits
    candidate: CandidateSettings | None
    relay_url: str = ""
    told_limits: Mapping[str, Any] = field(default_factory=dict)
    places: Places = field(default_factory=Places)
    loss_grace: float = 2.0
    model: ModelSettings | None = None
    models: Mapping[str, ModelSettings] = field(default_factory=dict)
    """Models that the driver asks, by role."""

    @property
    def plays(self) -> str:
        """What plays the case: ``program``, ``server`` or ``model``."""
        if self.candidate is not None:
            return "program" if self.candidate.port is None else "server"
        return "program" if self.model is None else "model"

    @classmethod
    def from_environment(cls, variables: Mapping[str, str]) -> Settings:
        """Read the container's environment; ``SettingsError`` for what is missing or of another type."""
        try:
            document = json.loads(variables["CASEWARDEN_ATTEMPT"])
        except KeyError:
            raise SettingsError("CASEWARDEN_ATTEMPT is not set; the pod's spec must have it") from None
        except ValueError as error:
            raise SettingsError(f"CASEWARDEN_ATTEMPT is no JSON: {error}") from None
        if not isinstance(document, dict):
            raise SettingsError(f"CASEWARDEN_ATTEMPT is a {type(document).__name__}; it must be an object")
        if "CASEWARDEN_POD_UID" in variables:
            document["pod_uid"] = variables["CASEWARDEN_POD_UID"]
        return cls.from_json(document)

    @classmethod
    def from_json(cls, document: Mapping[str, Any], places: Places | None = None, loss_grace: float = 2.0) -> Settings:
        """Read an attempt's description."""
        limits = _object(document, "limits")
        return cls(
            run_uid=_text(document, "run_uid"),
            seed=_whole(document, "seed"),
            case_id=_text(document, "case_id"),
            repeat=_whole(document, "repeat"),
            attempt=_whole(document, "attempt"),
            pod_name=_text(document, "pod_name"),
            pod_uid=_text(document, "pod_uid"),
            case_sha256=_text(document, "case_sha256"),
            dimensions=_words(document, "dimensions"),
            limits=_limits(limits),
            candidate=None if document.get("candidate") is None else _candidate(_object(document, "candidate")),
            relay_url=str(document.get("relay_url", "")),
            told_limits=dict(limits),
            places=places or Places(),
            loss_grace=loss_grace,
            model=None if document.get("model") is None else _model(_object(document, "model")),
            models={role: _model(_object(document["models"], role)) for role in document.get("models") or {}},
        )


def _candidate(document: Mapping[str, Any]) -> CandidateSettings:
    return CandidateSettings(
        argv=None if document.get("argv") is None else _words(document, "argv"),
        default_argv=_words(document, "default_argv"),
        env=tuple((_text(item, "name"), str(item.get("value", ""))) for item in document.get("env") or ()),
        network=document.get("network") or "none",
        workspace_digest=document.get("workspace_digest"),
        fetch_workspace=document.get("fetch_workspace") is True,
        port=None if document.get("port") is None else _whole(document, "port"),
        agent=None if document.get("agent") is None else _agent(_object(document, "agent")),
    )


def _agent(document: Mapping[str, Any]) -> AgentSettings:
    return AgentSettings(
        path=_text(document, "path"),
        headers=_object(document, "headers"),
        body=_object(document, "body"),
        prompter=_prompter(_object(document, "prompter")),
        return_format=_text(document, "return_format"),
    )


def _prompter(document: Mapping[str, Any]) -> PrompterSettings:
    return PrompterSettings(_text(document, "name"), _object(document, "args"))


def _model(document: Mapping[str, Any]) -> ModelSettings:
    return ModelSettings(
        endpoint=_text(document, "endpoint"),
        name=_text(document, "name"),
        dialect=_text(document, "dialect"),
        parameters=_object(document, "parameters"),
        tokens=None if document.get("tokens") is None else _whole(document, "tokens"),
        budget=_object(document, "budget"),
        priority=_whole(document, "priority"),
        port=_whole(document, "port"),
        prompter=None if document.get("prompter") is None else _prompter(_object(document, "prompter")),
        headers=_object(document, "headers") if "headers" in document else {},
    )


def _limits(document: Mapping[str, Any]) -> Limits:
    return Limits(
        case_seconds=_seconds(document, "case_seconds"),
        response_seconds=_seconds(document, "response_seconds"),
        start_seconds=_seconds(document, "start_seconds"),
        output_bytes=_whole(document, "output_bytes"),
        request_bytes=_whole(document, "request_bytes"),
        processes=None if document.get("processes") is None else _whole(document, "processes"),
        state_mib=_whole(document, "state_mib"),
        hold_seconds=_seconds(document, "hold_seconds"),
        actions=None if document.get("actions") is None else _whole(document, "actions"),
    )


def _object(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = document.get(name)
    if not isinstance(value, Mapping):
        raise SettingsError(f"attempt: {name} is {value!r}; it must be an object")
    return value


def _text(document: Mapping[str, Any], name: str) -> str:
    value = document.get(name)
    if not isinstance(value, str) or not value:
        raise SettingsError(f"attempt: {name} is {value!r}; it must be a text")
    return value


def _words(document: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = document.get(name)
    if not isinstance(value, (list, tuple)) or not value or not all(isinstance(word, str) and word for word in value):
        raise SettingsError(f"attempt: {name} is {value!r}; it must be a list of one or more words")
    return tuple(value)


def _whole(document: Mapping[str, Any], name: str) -> int:
    value = document.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        raise SettingsError(f"attempt: {name} is {value!r}; it must be an integer")
    return value


def _seconds(document: Mapping[str, Any], name: str) -> float:
    value = document.get(name)
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not value > 0:
        raise SettingsError(f"attempt: {name} is {value!r}; it must be a number of seconds above 0")
    return float(value)
