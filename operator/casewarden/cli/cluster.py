"""A command's way to the cluster: where it is, which namespace is meant, and errors that say what to do."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from casewarden.adapters.kube.client import KubeClient, RetryBudget
from casewarden.adapters.kube.connection import ConfigError, connect
from casewarden.cli.failure import Failure
from casewarden.ports.kube import (
    AUDIT_RUNS,
    EVAL_RUNS,
    Forbidden,
    Invalid,
    KubeError,
    Manifest,
    NotFound,
    Unavailable,
    list_all,
)

__all__ = ["Access", "Cluster", "open_cluster"]


@dataclass(frozen=True, slots=True)
class Access:
    """What the common options say; empty strings stand for options that were not given."""

    kubeconfig: str = ""
    context: str = ""
    namespace: str = ""
    system_namespace: str = "casewarden-system"


@dataclass(frozen=True, slots=True)
class Cluster:
    """A client, the namespace that a command is about, and the release's own."""

    api: KubeClient
    namespace: str
    system_namespace: str

    async def run(self, name: str) -> Manifest:
        """Return an EvalRun."""
        try:
            return _plain(await self.api.get(EVAL_RUNS, self.namespace, name))
        except NotFound:
            raise Failure(f"there is no EvalRun {name!r} in namespace {self.namespace!r}; see casewarden get") from None

    async def audit(self, name: str) -> Manifest:
        """Return an AuditRun."""
        try:
            return _plain(await self.api.get(AUDIT_RUNS, self.namespace, name))
        except NotFound:
            raise Failure(f"there is no AuditRun {name!r} in namespace {self.namespace!r}") from None

    async def runs(self, everywhere: bool) -> list[Manifest]:
        """Return the EvalRuns of the namespace, or of all."""
        return [_plain(run) for run in await list_all(self.api, EVAL_RUNS, None if everywhere else self.namespace)]


def _plain(run: Manifest) -> Manifest:
    """Leave out who wrote which field, as kubectl does."""
    run["metadata"].pop("managedFields", None)
    return run


@asynccontextmanager
async def open_cluster(access: Access) -> AsyncIterator[Cluster]:
    """Connect; whatever the API server refuses inside becomes a ``Failure`` of one line."""
    _require_kubeconfig(access)
    try:
        connection = await connect(access.kubeconfig or None, access.context or None)
    except ConfigError as error:
        raise Failure(str(error)) from None
    namespace = access.namespace or _namespace_of_context(access) or connection.namespace
    budget = RetryBudget(tries=3, seconds=10.0)
    try:
        async with KubeClient(connection, budget=budget) as api:
            yield Cluster(api, namespace, access.system_namespace)
    except KubeError as error:
        raise Failure(_explain(error)) from None


def _require_kubeconfig(access: Access) -> None:
    """Say what is missing before the client library prints it in words of its own."""
    if "KUBERNETES_SERVICE_HOST" in os.environ:
        return
    paths = _kubeconfigs(access)
    if not any(path.is_file() for path in paths):
        named = os.pathsep.join(map(str, paths))
        raise Failure(f"no kubeconfig at {named}: give --kubeconfig or set KUBECONFIG; casewarden run needs no cluster")


def _kubeconfigs(access: Access) -> list[Path]:
    named = access.kubeconfig or os.environ.get("KUBECONFIG") or str(Path.home() / ".kube/config")
    return [Path(path) for path in named.split(os.pathsep) if path]


def _explain(error: KubeError) -> str:
    if isinstance(error, Unavailable):
        return f"the cluster does not answer: {error.message}; is it running, and is the context right?"
    if isinstance(error, NotFound) and "could not find the requested resource" in error.message:
        return "the cluster has no EvalRuns; install the chart first (charts/casewarden)"
    if isinstance(error, Forbidden):
        return f"not allowed: {error.message}"
    if isinstance(error, Invalid):
        return f"refused: {error.message}"
    return str(error)


def _namespace_of_context(access: Access) -> str:
    """Read the namespace of the context that is used, which the client library keeps to itself."""
    current, contexts = access.context, dict[str, Any]()
    for path in _kubeconfigs(access):
        try:
            config = yaml.safe_load(path.read_text()) or {}
        except (OSError, yaml.YAMLError, UnicodeError):
            continue
        current = current or config.get("current-context") or ""
        for item in config.get("contexts") or []:
            contexts.setdefault(item.get("name"), item.get("context") or {})
    return str(contexts.get(current, {}).get("namespace") or "")
