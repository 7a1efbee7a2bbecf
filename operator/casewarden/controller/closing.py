"""The end of a run: its results and its root digest go to the relay, then the status says that it is over."""

from __future__ import annotations

import json

from casewarden.controller.state import RunState
from casewarden.core.evidence import (
    META,
    PLAN,
    RESULTS,
    RUN,
    USAGE,
    json_file,
    meta_document,
    results_file,
    root_digest,
    run_document,
)
from casewarden.core.tally import tally
from casewarden.core.usage import kept_usage
from casewarden.ports.evidence import Evidence

__all__ = ["open_evidence", "read_usage", "seal_run"]


async def open_evidence(evidence: Evidence, state: RunState) -> None:
    """Tell the relay whose run this is and what was planned, before any pod of it asks for anything."""
    run = state.run
    await evidence.put_file(
        run.uid, META, json_file(meta_document(namespace=run.namespace, name=run.name, run_uid=run.uid))
    )
    await evidence.put_file(run.uid, PLAN, _plan_file(state))


async def seal_run(evidence: Evidence, state: RunState) -> str:
    """Write the results and the document over them; return the run's root digest. The same state gives the same one."""
    if state.plan is None or state.spec is None:
        raise ValueError("a run without a plan has no results")
    run, results = state.run, results_file(state.ledger.rows)
    counted = tally(state.plan, state.spec.repeats, state.ledger.rows, state.policy(None), state.own)
    document = run_document(
        name=run.name,
        namespace=run.namespace,
        run_uid=run.uid,
        spec=state.body["spec"],
        seeds=state.seeds,
        plan=_plan_file(state),
        results=results,
        score=counted.score.to_json(),
        regrade=None if (of := state.original) is None else {"name": of.name, "uid": of.uid, "digest": of.digest},
        usage=state.usage,
    )
    data = json_file(document)
    await evidence.put_file(run.uid, RESULTS, results)
    await evidence.put_file(run.uid, RUN, data)
    return root_digest(data)


async def read_usage(evidence: Evidence, state: RunState) -> None:
    """Take over what the relay counted of the run's models; nothing where no call was made."""
    if state.spec is None or (state.spec.candidate.model is None and not state.spec.task.models):
        return
    data = await evidence.get_file(state.run.uid, USAGE)
    if data is not None:
        state.usage = kept_usage(json.loads(data))


def _plan_file(state: RunState) -> bytes:
    return f"{state.plan_text}\n".encode("ascii")
