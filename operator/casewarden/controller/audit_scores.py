"""What the audits that there are came to, as figures for dashboards; see ``scores``. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from casewarden.ports.kube import Manifest
from casewarden.ports.metrics import Metric, Metrics, Sample

__all__ = ["AuditScores"]

_AUDITS: Final = 200
_LABEL: Final = 80
_PER_AUDIT: Final = (Metric.AUDIT_PASSED, Metric.AUDIT_MUTATION, Metric.AUDIT_MARGIN)


class AuditScores:
    """Told of every AuditRun that is seen; the newest ``limit`` are shown."""

    def __init__(self, limit: int = _AUDITS) -> None:
        self._limit = limit
        self._audits: dict[str, tuple[str, tuple[tuple[Metric, Sample], ...]]] = {}

    def saw(self, body: Manifest) -> None:
        """Take over what an audit's status has now."""
        uid, figures = body["metadata"]["uid"], tuple(_figures(body))
        if figures:
            self._audits[uid] = (body["status"]["completionTime"], figures)
        else:
            self._audits.pop(uid, None)

    def gone(self, uid: str) -> None:
        """Forget an audit."""
        self._audits.pop(uid, None)

    def measure(self, metrics: Metrics) -> None:
        """Make the newest audits' figures the only ones."""
        newest = sorted(self._audits.values(), key=lambda item: item[0], reverse=True)[: self._limit]
        for metric in _PER_AUDIT:
            metrics.replace(metric, [sample for _, audit in newest for which, sample in audit if which is metric])


def _figures(body: Manifest) -> Iterator[tuple[Metric, Sample]]:
    meta, status = body["metadata"], body.get("status") or {}
    task = (body.get("spec") or {}).get("task") or {}
    name = str(task.get("name") or task.get("image") or "unknown")[:_LABEL]
    labels = {"namespace": meta["namespace"], "audit": meta["name"], "task": name}
    # An audit that is not valid says nothing of its grader: no figure is better than a false zero.
    if status.get("completionTime") is None or status.get("passed") is None:
        return
    yield Metric.AUDIT_PASSED, (labels, float(bool(status["passed"])))
    if status.get("mutationScore") is not None:
        yield Metric.AUDIT_MUTATION, (labels, float(status["mutationScore"]))
    if status.get("weakestMargin") is not None:
        yield Metric.AUDIT_MARGIN, (labels, float(status["weakestMargin"]))
