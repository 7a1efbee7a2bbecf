"""Digests of what must be equal for two scores to be comparable.

Each is the SHA-256 of the canonical JSON of exactly the values that count, so that the same manifest has the same
fingerprints on every cluster and without one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from casewarden_sdk.canonical import sha256_json

__all__ = ["candidate_fingerprint", "conditions_fingerprint", "task_name"]


def task_name(task_id: str, version: str) -> str:
    """Return a task and its version as one word, ``durable-kv@0.1.0``."""
    return f"{task_id}@{version}"


def candidate_fingerprint(
    *,
    argv: Sequence[str] | None,
    env: Iterable[tuple[str, str]] = (),
    workspace: str | None,
    image: str | None = None,
    model: Mapping[str, Any] | None = None,
    port: int | None = None,
    agent: Mapping[str, Any] | None = None,
    alone: bool = False,
) -> str:
    """Return the fingerprint of a program; a control is the program that it is, with its files as workspace.

    ``argv`` is the run's own command, None where the workspace or the pack says it. ``env`` are names and values in any
    order. ``workspace`` is the digest of the files, None where there are none: then the candidate is in the ``image``
    that the run names, and that counts. Beside files it does not, since the same folder is the same candidate on a
    laptop and in any cluster; what ran is in ``fingerprints.images``. ``model`` is its name, parameters and prompter,
    without the endpoint, which is where it runs and not what it is. ``port`` is a server's, ``agent`` its
    interface. ``alone`` is a model that
    plays by itself.
    """
    variables = [{"name": name, "value": value} for name, value in sorted(env)]
    document: dict[str, Any] = {
        "kind": "program",
        "argv": None if argv is None else list(argv),
        "env": variables,
        "workspace": workspace,
    }
    if image is not None and workspace is None:
        document["image"] = image
    if port is not None:
        document |= {"kind": "server", "port": port, **({} if agent is None else {"agent": dict(agent)})}
    if alone:
        document = {"kind": "model"}
    if model is not None:
        document["model"] = dict(model)
    return sha256_json(document)


def conditions_fingerprint(
    *,
    limits: Mapping[str, Any],
    resources: Mapping[str, Any],
    boundary: Literal["pod", "local"] = "pod",
    profile: str = "restricted",
    network: str = "none",
    runtime_class: str | None = None,
    models: Mapping[str, Any] | None = None,
) -> str:
    """Return the fingerprint of the conditions that a candidate worked under.

    ``limits`` are the effective ones; ``resources`` are requests and limits by container. ``boundary`` is ``local``
    where no sandbox was around it. ``models`` are those that the task asks, by role, with what they are and not where.
    """
    return sha256_json(
        {
            "limits": dict(limits),
            "resources": dict(resources),
            "boundary": boundary,
            "profile": profile,
            "network": network,
            "runtime_class": runtime_class,
            **({"models": dict(models)} if models else {}),
        }
    )
