"""The scores of the runs that there are, as figures for dashboards. Pure.

A run's series are there while its resource is: they come from its status and go with it. Their number is capped, the
newest runs first, so that no crowd of runs can drown whoever scrapes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from casewarden.ports.kube import Manifest
from casewarden.ports.metrics import Metric, Metrics, Sample

__all__ = ["Scores", "candidate_name"]

_RUNS: Final = 500
_LABEL: Final = 80
_PER_RUN: Final = (
    Metric.RUN_SCORE, Metric.RUN_DIMENSION, Metric.RUN_ASSESSED, Metric.RUN_BOUND, Metric.RUN_FLOOR,
    Metric.RUN_MODEL_CALLS, Metric.RUN_MODEL_TOKENS, Metric.RUN_MODEL_COST,
)  # fmt: skip


class Scores:
    """Told of every EvalRun that is seen, ``limit`` runs at most are shown."""

    def __init__(self, limit: int = _RUNS) -> None:
        self._limit = limit
        self._runs: dict[str, tuple[str, tuple[tuple[Metric, Sample], ...]]] = {}

    def saw(self, body: Manifest) -> None:
        """Take over what a run's status has now."""
        uid, figures = body["metadata"]["uid"], tuple(_figures(body))
        if figures:
            self._runs[uid] = ((body.get("status") or {}).get("completionTime") or "", figures)
        else:
            self._runs.pop(uid, None)

    def gone(self, uid: str) -> None:
        """Forget a run."""
        self._runs.pop(uid, None)

    def measure(self, metrics: Metrics) -> None:
        """Make the newest runs' figures the only ones."""
        newest = sorted(self._runs.values(), key=lambda item: item[0], reverse=True)[: self._limit]
        for metric in _PER_RUN:
            metrics.replace(metric, [sample for _, run in newest for which, sample in run if which is metric])
        metrics.set(Metric.RUNS_NOT_SHOWN, len(self._runs) - len(newest))


def candidate_name(spec: Mapping[str, Any]) -> str:
    """Return what a candidate is called: its model, control, workspace or image, whichever says most."""
    candidate = spec.get("candidate") or {}
    program = candidate.get("program") or {}
    workspace = program.get("workspace") or {}
    server = candidate.get("server") or {}
    names = (
        (candidate.get("model") or {}).get("name"),
        candidate.get("control"),
        workspace.get("configMap"),
        str(workspace.get("digest") or "").removeprefix("sha256:")[:12],
        program.get("image"),
        server.get("image"),
    )
    return next((str(name)[:_LABEL] for name in names if name), "program")


def _figures(body: Manifest) -> Iterator[tuple[Metric, Sample]]:
    meta, spec, status = body["metadata"], body.get("spec") or {}, body.get("status") or {}
    task = spec.get("task") or {}
    labels = {
        "namespace": meta["namespace"],
        "run": meta["name"],
        "task": str(task.get("name") or task.get("image") or "unknown")[:_LABEL],
        "candidate": candidate_name(spec),
    }
    if status.get("completionTime") is None:
        return
    assessed, _, total = str(status.get("assessed") or "").partition("/")
    if assessed.isdigit() and total.isdigit() and int(total) > 0:
        yield Metric.RUN_ASSESSED, (labels, int(assessed) / int(total))
    yield from _usage(labels, status.get("usage"))
    if status.get("score") is None:
        return
    yield Metric.RUN_SCORE, (labels, float(status["score"]))
    for name, dimension in sorted((status.get("dimensions") or {}).items()):
        if dimension.get("score") is not None:
            yield Metric.RUN_DIMENSION, ({**labels, "dimension": name}, float(dimension["score"]))
    interval, floor = status.get("scoreInterval") or {}, status.get("floor") or {}
    for bound in ("low", "high"):
        if interval.get(bound) is not None:
            yield Metric.RUN_BOUND, ({**labels, "bound": bound}, float(interval[bound]))
    for key, control in (("nullAgent", "null_agent"), ("reference", "reference")):
        if floor.get(key) is not None:
            yield Metric.RUN_FLOOR, ({**labels, "control": control}, float(floor[key]))


def _usage(labels: Mapping[str, str], usage: Mapping[str, Any] | None) -> Iterator[tuple[Metric, Sample]]:
    """What the candidate's model used, and apart from it what all models of the task did together."""
    if usage is None:
        return
    task = list((usage.get("models") or {}).values())
    for who, sums in (("candidate", [usage] if usage.get("modelCalls") else []), ("task", task)):
        if not sums:
            continue
        whose = {**labels, "asked_by": who}
        yield Metric.RUN_MODEL_CALLS, (whose, sum(item["modelCalls"] for item in sums))
        for kind in ("prompt", "completion"):
            yield Metric.RUN_MODEL_TOKENS, ({**whose, "kind": kind}, sum(item[f"{kind}Tokens"] for item in sums))
        if all("cost" in item for item in sums):
            yield Metric.RUN_MODEL_COST, (whose, sum(float(item["cost"]) for item in sums))
