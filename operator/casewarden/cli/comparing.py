"""``compare``: a run against a baseline of the same task, cases, grader and conditions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from casewarden.cli.cluster import Access, Cluster, open_cluster
from casewarden.cli.failure import GOOD, NOT_GOOD, Failure
from casewarden.cli.outcome import is_finished
from casewarden.cli.printing import Output, emit, print_line
from casewarden.cli.relay import RelayReader, open_relay
from casewarden.core import baseline as core
from casewarden.core.evidence import PLAN, RESULTS, RUN, root_digest
from casewarden.core.statistics import Comparison, Observed

__all__ = ["compare"]

_ALPHA = 0.05


async def compare(access: Access, run: str, baseline: str, output: Output) -> int:
    """Compare two finished runs of the cluster; 1 where the run is worse beyond chance, else 0."""
    async with open_cluster(access) as cluster:
        one, other = await _finished(cluster, run), await _finished(cluster, baseline)
        _require_equal(run, one, baseline, other)
        async with open_relay(cluster) as relay:
            result = core.compare(*await _observed(relay, run, one), *await _observed(relay, baseline, other))
    scores = {"run": one["status"]["score"], "baseline": other["status"]["score"]}
    emit({**result.to_json(), "scores": scores}, output, lambda: _show(run, baseline, scores, result))
    worse = result.difference < 0 and result.p_value is not None and result.p_value <= _ALPHA
    return NOT_GOOD if worse else GOOD


async def _finished(cluster: Cluster, name: str) -> Mapping[str, Any]:
    run = await cluster.run(name)
    status = run.get("status") or {}
    if not is_finished(status) or not status.get("valid"):
        raise Failure(f"run {name} has no valid score; only runs that are over and valid can be compared")
    return run


def _require_equal(run: str, one: Mapping[str, Any], baseline: str, other: Mapping[str, Any]) -> None:
    differ = core.differing(one["status"].get("fingerprints") or {}, other["status"].get("fingerprints") or {})
    if differ:
        raise Failure(f"{run} and {baseline} differ in {', '.join(differ)}: their scores cannot be compared")


async def _observed(relay: RelayReader, name: str, run: Mapping[str, Any]) -> tuple[list[Observed], core.CaseDigests]:
    uid = run["metadata"]["uid"]
    document, plan, results = [await relay.file(uid, path) or b"" for path in (RUN, PLAN, RESULTS)]
    if root_digest(document) != (run["status"].get("evidence") or {}).get("digest"):
        raise Failure(f"the evidence of {name} is not what its status says; see casewarden verify")
    try:
        return core.observed_in(document, plan, results)
    except ValueError as error:
        raise Failure(f"{name}: {error}; see casewarden verify") from None


def _show(run: str, baseline: str, scores: Mapping[str, Any], result: Comparison) -> None:
    print_line(f"{run} {scores['run']}, {baseline} {scores['baseline']}")
    told = (
        f"p = {result.p_value:.4f}, sign-flip test on family means" if result.p_value is not None else "no common case"
    )
    print_line(f"families pass {result.difference:+.4f} more often on average; {told}")
    print_line(f"{result.families} families, {result.matched} pairs of cases, {result.unmatched} without a counterpart")
    for word, families in (("regressed", result.regressed), ("improved", result.improved)):
        if families:
            print_line(f"{word}: {', '.join(families)}")
