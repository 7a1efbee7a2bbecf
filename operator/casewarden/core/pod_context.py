"""What the builder of case pods is told: resolved images, limits in force, where the candidate's files come from."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from casewarden.api.podtemplate import PodTemplate
from casewarden.core.model import AttemptKey
from casewarden.core.network import Owner
from casewarden_sdk.contract import Limits

__all__ = [
    "GATEWAY_PORT", "CandidateSpec", "EnvironmentSpec", "KindSpec", "ModelSpec", "PodContext", "attempt_uid",
    "backstop_seconds", "candidate_network",
]  # fmt: skip

# Between the end of the case and the seal: grading, packing, the way to the relay.
_SEALING_SECONDS: Final = 120


@dataclass(frozen=True, slots=True)
class EnvironmentSpec:
    """A container that the agent acts upon; ``image`` is a reference. ``memory_mib`` is without its volumes."""

    name: str
    image: str
    profile: Literal["restricted", "baseline"] = "restricted"
    memory_mib: int = 256


@dataclass(frozen=True, slots=True)
class KindSpec:
    """The containers of a class of cases, images resolved. ``candidate_image`` is where its candidate runs."""

    candidate_image: str | None
    environments: tuple[EnvironmentSpec, ...] = ()


@dataclass(frozen=True, slots=True)
class CandidateSpec:
    """How a program is started and where its files come from.

    ``argv`` is the run's own command and wins over ``default_argv``. At most one of ``workspace_config_map``, an
    immutable ConfigMap of the namespace, and ``fetch_workspace``, by ``workspace_digest`` from the relay, is set.
    """

    default_argv: tuple[str, ...]
    argv: tuple[str, ...] | None = None
    env: tuple[tuple[str, str], ...] = ()
    network: str = "none"
    workspace_config_map: str | None = None
    workspace_digest: str | None = None
    fetch_workspace: bool = False
    port: int | None = None
    """Of a server; None for a program."""
    agent: Mapping[str, Any] | None = None
    """A server's ``AgentInterface`` as the recorder reads it; None where it speaks OpenAI's."""

    @property
    def has_workspace(self) -> bool:
        """Tell whether its files come from outside its image; else ``/candidate`` is what the image has there."""
        return self.fetch_workspace or self.workspace_config_map is not None


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A model: what plays, what a program or server may call, or what the task asks; ``budget`` is the run's."""

    endpoint: str
    name: str
    dialect: str = "openai"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    budget: Mapping[str, Any] = field(default_factory=dict)
    priority: int = 0
    prompter: Mapping[str, Any] | None = None
    """``name`` and ``args``; None is the endpoint's own chat."""
    headers: Mapping[str, str] = field(default_factory=dict)

    def to_json(self, tokens: int | None, port: int) -> dict[str, Any]:
        """Return what the recorder is told; ``tokens`` are the case's limit, ``port`` the gateway's."""
        return {
            "endpoint": self.endpoint,
            "name": self.name,
            "dialect": self.dialect,
            "parameters": dict(self.parameters),
            "tokens": tokens,
            "budget": dict(self.budget),
            "priority": self.priority,
            "port": port,
            **({} if self.prompter is None else {"prompter": dict(self.prompter)}),
            **({"headers": dict(self.headers)} if self.headers else {}),
        }


@dataclass(frozen=True, slots=True)
class PodContext:
    """What all case pods of a run share.

    ``limits`` are in force: the pack's, tightened by the run. ``relay_address`` is the IP address of the host in
    ``relay_url``; with it no pod needs DNS. An empty ``task_command`` means the image's own entry point.
    """

    owner: Owner
    namespace: str
    task_image: str
    task_command: tuple[str, ...]
    evidence_image: str
    relay_url: str
    limits: Limits
    kinds: Mapping[str, KindSpec]
    candidate: CandidateSpec | None
    params: Mapping[str, Any] = field(default_factory=dict)
    datasets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    template: PodTemplate = field(default_factory=PodTemplate)
    relay_address: str | None = None
    hold_seconds: float = 900.0
    pending_seconds: float = 900.0
    model: ModelSpec | None = None
    task_models: Mapping[str, ModelSpec] = field(default_factory=dict)
    """Models that the driver asks, by role."""


GATEWAY_PORT: Final = 8350
"""Of the model gateway. No port that a network policy leaves open: a candidate may connect to it at any address."""


def candidate_network(port: int | None, gateway: int | None) -> str:
    """Return what of the network a candidate's programs get, in the words of the shim; ``gateway`` is its port."""
    own = [f"serve:{port}"] if port is not None else []
    return ",".join(own + ([f"loopback:{gateway}"] if gateway is not None else [])) or "none"


def attempt_uid(run_uid: str, key: AttemptKey) -> int:
    """Return the user of an attempt's candidate; environments have the ones after it.

    Limits of processes count per user over a whole node, so that no two attempts may share one.
    """
    digest = hashlib.sha256(f"{run_uid}/{key}".encode()).digest()
    return 1_000_000_000 + int.from_bytes(digest[:8], "big") % 70_000_000 * 16


def backstop_seconds(context: PodContext) -> int:
    """Return the pod's ``activeDeadlineSeconds``: later than anything that goes well, image pulls included."""
    limits = context.limits
    # The task's models may take as long again as the case, whose clock stands still meanwhile.
    case = limits.start_seconds + limits.case_seconds * (2 if context.task_models else 1)
    return math.ceil(context.pending_seconds + case + context.hold_seconds + _SEALING_SECONDS)
