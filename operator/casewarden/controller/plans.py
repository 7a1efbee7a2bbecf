"""A run's plan: from the plan pod's two answers to immutable ConfigMaps that nobody can lose by a restart.

``judge_plan_pod`` is pure. The plan's digest is the SHA-256 of its canonical text; the status has it, so that what is
read back later is what was planned.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from casewarden.api.plan import Plan
from casewarden.api.reasons import RunReason
from casewarden.controller.identity import RunIdentity
from casewarden.core import facts
from casewarden.core.bundle_check import strict_json
from casewarden.core.model import ContainerRecord, PodRecord, RunPolicy
from casewarden.core.plan_pod import PLAN, PLAN_AGAIN
from casewarden.core.policies.pending import pending
from casewarden.ports.kube import CONFIG_MAPS, AlreadyExists, KubeApi, NotFound
from casewarden_sdk.canonical import canonical, sha256_bytes
from casewarden_sdk.plan import read_plan_lines

__all__ = [
    "LOG_BYTES", "PLAN_CONTAINERS", "PLAN_QUESTION", "KeptPlan", "PlanFailed", "Planned", "Question", "Resolved",
    "Unplanned", "Waiting",
    "judge_plan_pod", "keep_plan", "load_plan", "read_plan_log",
]  # fmt: skip

PLAN_CONTAINERS = (PLAN, PLAN_AGAIN)
LOG_BYTES = 48 << 20
_CHUNK_BYTES = 700 << 10
_MAX_PARTS = 64
_MAX_TEXT = 64 << 20


@dataclass(frozen=True, slots=True)
class Resolved:
    """What the catalogue said when the run was planned; a run goes on with it whatever the catalogue says later.

    ``image`` is the task's, by digest where a registry knows it; ``images`` are those of the plan's aliases,
    ``datasets`` the task's.
    """

    image: str
    command: tuple[str, ...] = ()
    images: Mapping[str, str] = field(default_factory=dict)
    datasets: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KeptPlan:
    """A plan with its canonical text, the digest of that, and what the catalogue said."""

    plan: Plan
    text: str
    sha256: str
    resolved: Resolved


@dataclass(frozen=True, slots=True)
class Waiting:
    """The pod is not over; ``until`` is when that changes by time alone, ``trouble`` why it does not start."""

    until: float | None = None
    trouble: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Planned:
    """Both answers agree: the digest of the plan, and the image that gave it as the node names it."""

    sha256: str
    image_id: str


@dataclass(frozen=True, slots=True)
class Unplanned:
    """There is no plan; ``again`` tells whether another pod may give one."""

    reason: RunReason
    message: str
    again: bool


class PlanFailed(Exception):
    """What the pod said and what its log holds do not fit, or it is no plan."""

    def __init__(self, reason: RunReason, message: str) -> None:
        super().__init__(message)
        self.reason, self.message = reason, message


@dataclass(frozen=True, slots=True)
class Question:
    """What a pod's two containers are asked, and what is said where they do not answer.

    ``before`` is the container that runs before them, if any.
    """

    word: str
    containers: tuple[str, str]
    failed: RunReason
    refused: RunReason
    unstable: RunReason
    field: str
    before: str = ""


PLAN_QUESTION = Question(
    "plan", PLAN_CONTAINERS, RunReason.PLAN_FAILED, RunReason.PLAN_REFUSED, RunReason.PLAN_UNSTABLE, "spec.task"
)


def judge_plan_pod(
    pod: PodRecord, policy: RunPolicy, now: float, question: Question = PLAN_QUESTION
) -> Waiting | Planned | Unplanned:
    """Say what a pod that was asked for its plan, or another question, came to."""
    ended = [pod.container(name) for name in question.containers]
    answers = [item for item in ended if item is not None and item.state == "terminated"]
    if len(answers) == len(question.containers) and not facts.was_deleted(pod):
        return _judge_answers(pod, answers, question)
    lost = facts.will_end(pod)
    first = pod.container(question.before) if question.before else None
    if pod.phase in ("Succeeded", "Failed") or (lost is not None and now >= lost):
        why = pod.reason or facts.disruption(pod, now) or "its pod ended"
        said = pod.message
        if first is not None and first.state == "terminated" and first.exit_code:
            said = first.message.strip()[-300:]
        return Unplanned(question.failed, f"the {question.word} was interrupted: {why}: {said}".rstrip(": "), True)
    slow = pending(pod, policy, ())
    if slow is None or (first is not None and first.state == "running"):
        return Waiting(lost)
    if slow.is_given_up(now):
        return Unplanned(slow.trouble.reason, slow.trouble.detail, False)
    trouble = (str(slow.trouble.reason), slow.trouble.detail) if slow.trouble.certain else None
    return Waiting(min((at for at in (slow.until, lost) if at is not None), default=None), trouble)


def _judge_answers(pod: PodRecord, answers: list[ContainerRecord], question: Question) -> Planned | Unplanned:
    documents = [_message(item) for item in answers]
    refusals = [document for document in documents if "error" in document]
    if len(refusals) == len(answers):
        field = str(refusals[0].get("field") or question.field)
        said = str(refusals[0]["error"])
        # A pack's own words mostly begin with the field.
        return Unplanned(question.refused, said if said.startswith(field) else f"{field}: {said}", False)
    told = zip(documents, answers, strict=True)
    digests = [document.get("sha256") for document, item in told if item.exit_code == 0]
    if len(digests) == len(answers) and all(isinstance(digest, str) for digest in digests):
        if len(set(digests)) == 1:
            return Planned(str(digests[0]), answers[0].image_id)
        said = f"digests {', '.join(map(str, digests))}"
        return Unplanned(question.unstable, _unstable(question.word, said), False)
    if refusals and digests:
        said = f"one answered, one refused: {refusals[0]['error']}"
        return Unplanned(question.unstable, _unstable(question.word, said), False)
    broken = (
        item for item, document in zip(answers, documents, strict=True) if item.exit_code or "sha256" not in document
    )
    bad = next(broken, answers[0])
    said = bad.message.strip() or bad.reason or "it said nothing"
    message = f"the task image's {question.word} ended with exit code {bad.exit_code}: {said[-300:]}"
    return Unplanned(question.failed, message, True)


def _unstable(word: str, what: str) -> str:
    return f"the task image was asked for its {word} twice and did not agree with itself ({what}): mend the pack"


def _message(container: ContainerRecord) -> dict[str, object]:
    try:
        document = strict_json(container.message.encode())
    except ValueError:
        return {}
    return document if isinstance(document, dict) and document.get("v") == 1 else {}


_OTHER_CONTRACT = (
    "{!r} is not what this operator speaks ('1'): take the task image that was made for this release, "
    "or the release that the image was made for"
)


def read_plan_log(log: bytes, sha256: str) -> tuple[Plan, str]:
    """Return the plan in a plan pod's log and its canonical text; ``PlanFailed`` where it is not of that digest."""
    try:
        text = read_plan_lines(log.decode("utf-8", "replace").splitlines())
    except ValueError as error:
        raise PlanFailed(RunReason.PLAN_FAILED, f"the plan's log cannot be read: {error}") from None
    return _parse(text, sha256), text


def _parse(text: str, sha256: str) -> Plan:
    if sha256_bytes(text.encode()) != sha256:
        raise PlanFailed(RunReason.PLAN_FAILED, f"the plan that was read has not the digest {sha256}")
    try:
        return Plan.model_validate(strict_json(text.encode()))
    except ValidationError as error:
        found = error.errors(include_url=False)
        # Whatever else differs, does so because the contract does.
        detail = next((item for item in found if item["loc"] == ("contract_version",)), found[0])
        where = ".".join(str(part) for part in detail["loc"])
        said = _OTHER_CONTRACT.format(detail["input"]) if where == "contract_version" else detail["msg"]
        message = ": ".join(part for part in ("the task's plan", where, said) if part)
        raise PlanFailed(RunReason.PLAN_REFUSED, message) from None
    except ValueError as error:
        raise PlanFailed(RunReason.PLAN_REFUSED, f"the task's plan: it cannot be read: {error}") from None


async def keep_plan(api: KubeApi, run: RunIdentity, text: str, resolved: Resolved) -> None:
    """Write a plan into immutable ConfigMaps; parts that are there already stay."""
    packed = zlib.compress(text.encode("ascii"), 9)
    said = {
        "image": resolved.image,
        "command": list(resolved.command),
        "images": dict(resolved.images),
        "datasets": {name: dict(item) for name, item in resolved.datasets.items()},
    }
    parts = [packed[start : start + _CHUNK_BYTES] for start in range(0, len(packed), _CHUNK_BYTES)]
    for number, part in enumerate(parts):
        body = run.config_map(
            f"plan-{number}",
            "planned",
            immutable=True,
            binaryData={"plan": base64.b64encode(part).decode("ascii")},
            data={"parts": str(len(parts)), "resolved": canonical(said)},
        )
        try:
            await api.create(CONFIG_MAPS, run.namespace, body)
        except AlreadyExists:
            continue


async def load_plan(api: KubeApi, run: RunIdentity, sha256: str) -> KeptPlan | None:
    """Return a kept plan, or None where it is not whole or not the one of that digest."""
    packed, number, parts, said = b"", 0, 1, ""
    while number < min(parts, _MAX_PARTS):
        name = run.config_map(f"plan-{number}", "planned")["metadata"]["name"]
        try:
            found = await api.get(CONFIG_MAPS, run.namespace, name)
        except NotFound:
            return None
        try:
            packed += base64.b64decode(found["binaryData"]["plan"])
            parts, said = int(found["data"]["parts"]), found["data"]["resolved"]
        except (KeyError, ValueError):
            return None
        number += 1
    try:
        text = zlib.decompressobj().decompress(packed, _MAX_TEXT).decode("ascii")
        known = json.loads(said)
        resolved = Resolved(known["image"], tuple(known["command"]), known["images"], known.get("datasets", {}))
        return KeptPlan(_parse(text, sha256), text, sha256, resolved)
    except (zlib.error, PlanFailed, ValueError, KeyError, TypeError):
        return None
