"""An EvalRun without a cluster: the same manifest, the same status document, the same evidence."""

from __future__ import annotations

import os
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from casewarden.adapters.stores.folder import FolderStore
from casewarden.api.evalrun import EvalRun
from casewarden.api.plan import Plan
from casewarden.api.reasons import RunReason
from casewarden.core.evidence import (
    META,
    PLAN,
    RESULTS,
    RUN,
    json_file,
    meta_document,
    results_file,
    root_digest,
    run_document,
    run_key,
)
from casewarden.core.fingerprints import candidate_fingerprint, conditions_fingerprint
from casewarden.core.model import AttemptKey, CaseKey, FinishRun, LedgerRow, RunPolicy
from casewarden.core.run_conditions import Why
from casewarden.core.seeds import ENTROPY_BYTES, draw_seeds
from casewarden.core.status import Goal, StatusInput, build_status
from casewarden.core.tally import PlanFacts, plan_facts, tally
from casewarden.core.validate import check_plan, check_spec, effective_limits, summary
from casewarden.ports.store import Store
from casewarden_sdk.canonical import sha256_bytes
from casewarden_sdk.workspace import WorkspaceFile, digest_workspace, workspace_of

from .attempt import Ground
from .loop import Loop, State
from .planning import PlanFailed, make_plan, pack_of
from .shim import find_shim

__all__ = ["LocalResult", "Options", "run_evalrun"]

_FILE_BYTES = 1 << 30


@dataclass(frozen=True)
class Options:
    """What a cluster knows and a manifest does not.

    ``out`` is the store's folder. ``pack`` is ``MODULE:PACK`` where the task is none of the project's own.
    ``workspace`` are the candidate's files, read from a folder or a ConfigMap. ``on_status`` gets the status whenever
    it changes.
    """

    out: Path
    pack: str | None = None
    workspace: Sequence[WorkspaceFile] | None = None
    on_status: Callable[[Mapping[str, Any]], None] | None = None


@dataclass(frozen=True)
class LocalResult:
    """What a local run came to. ``folder`` holds its evidence; ``logs`` are of drivers that failed, by attempt."""

    status: dict[str, Any]
    uid: str
    folder: Path
    plan: Plan | None = None
    rows: tuple[LedgerRow, ...] = ()
    logs: Mapping[AttemptKey, str] = field(default_factory=dict)


async def run_evalrun(run: EvalRun, options: Options) -> LocalResult:
    """Run the whole of an EvalRun. Whatever is wrong with it is said in the status, as the operator would."""
    return await _LocalRun(run, options).run()


class _LocalRun:
    def __init__(self, run: EvalRun, options: Options) -> None:
        self._run = run
        self._spec = run.spec
        self._options = options
        self._uid = str(uuid.uuid4())
        self._store: Store = FolderStore(options.out)
        self._started = time.time()
        self._previous: dict[str, Any] = {}
        self._base = StatusInput(
            generation=max(run.metadata.generation, 1),
            now=self._started,
            policy=self._policy(),
            repeats=self._spec.repeats,
            goal=self._goal(),
        )

    async def run(self) -> LocalResult:
        refused = summary(check_spec(self._spec, None)) or self._unfit()
        if refused is not None:
            return self._failed(refused=refused)
        seeds = self._spec.seeds.values or draw_seeds(self._spec.seeds.random or 0, os.urandom(ENTROPY_BYTES))
        self._base = replace(self._base, seeds=tuple(seeds))
        task = self._spec.task
        pack, params = self._options.pack or pack_of(task.name or ""), dict(task.params or {})
        try:
            plan, text = await make_plan(pack, seeds, params, self._spec.select.families)
        except PlanFailed as error:
            return self._failed(plan_problem=error.why)
        problem = summary(check_plan(self._spec, seeds, plan, None))
        if problem is not None:
            return self._failed(plan_problem=problem)
        return await self._play(pack, params, text, plan_facts(plan, sha256_bytes(text)))

    async def _play(self, pack: str, params: dict[str, Any], text: bytes, facts: PlanFacts) -> LocalResult:
        plan = facts.plan
        candidate = _candidate_of(self._run, plan, self._options.workspace)
        limits = effective_limits(plan.limits, self._spec.limits).model_dump(mode="json")
        self._base = replace(
            self._base,
            plan=facts,
            candidate_fingerprint=candidate.fingerprint,
            conditions_fingerprint=conditions_fingerprint(limits=limits, resources={}, boundary="local"),
            evidence_uri=self._folder().as_uri(),
        )
        ground = Ground(
            run_uid=self._uid,
            store=self._store,
            shim=find_shim(),
            pack=pack,
            params=params,
            limits=limits,
            argv=candidate.argv,
            default_argv=plan.default_argv,
            env=candidate.env,
            files=candidate.files,
            environments={name: [item.name for item in kind.environments] for name, kind in plan.kinds.items()},
        )
        plan_file = text + b"\n"
        meta = meta_document(namespace=self._run.metadata.namespace, name=self._run.metadata.name, run_uid=self._uid)
        await self._put(META, json_file(meta))
        await self._put(PLAN, plan_file)
        cases = [CaseKey(case.seed, case.case_id, r) for case in facts.cases for r in range(self._spec.repeats)]
        planned = {(case.seed, case.case_id): case for case in facts.cases}
        loop = Loop(self._run.metadata.name, ground, self._base.policy, cases, planned, self._show)
        end = await loop.run()
        rows = tuple(loop.state.rows)
        digest = await self._sum_up(facts, rows, plan_file)
        status = self._status(rows=rows, end=end, evidence_digest=digest)
        return LocalResult(status, self._uid, self._folder(), plan, rows, loop.state.logs)

    async def _sum_up(self, facts: PlanFacts, rows: tuple[LedgerRow, ...], plan_file: bytes) -> str:
        results = results_file(rows)
        document = run_document(
            name=self._run.metadata.name,
            namespace=self._run.metadata.namespace,
            run_uid=self._uid,
            spec=self._spec.to_json(),
            seeds=self._base.seeds,
            plan=plan_file,
            results=results,
            score=tally(facts, self._spec.repeats, rows, self._base.policy).score.to_json(),
        )
        await self._put(RESULTS, results)
        await self._put(RUN, json_file(document))
        return root_digest(json_file(document))

    async def _put(self, name: str, data: bytes) -> None:
        await self._store.put(run_key(self._uid, name), data, limit=_FILE_BYTES)

    def _show(self, state: State) -> None:
        status = self._status(rows=tuple(state.rows), running=state.running)
        if self._options.on_status is not None:
            self._options.on_status(status)

    def _status(self, **facts: Any) -> dict[str, Any]:
        self._previous = build_status(replace(self._base, now=time.time(), previous=self._previous, **facts))
        return self._previous

    def _failed(self, *, refused: Why | None = None, plan_problem: Why | None = None) -> LocalResult:
        why = refused or plan_problem
        assert why is not None
        end = FinishRun(False, why.reason, why.message)
        return LocalResult(self._status(refused=refused, plan_problem=plan_problem, end=end), self._uid, self._folder())

    def _unfit(self) -> Why | None:
        """Say what of a run that a cluster could take a machine cannot."""
        program = self._spec.candidate.program
        for field_name, other in (("baseline", self._spec.baseline), ("regradeOf", self._spec.regrade_of)):
            if other is not None:
                message = f"spec.{field_name}: a local run knows no other runs: leave it out, or run it on a cluster"
                return Why(RunReason.INVALID_SPEC, message)
        for name, part in (("server", self._spec.candidate.server), ("model", self._spec.candidate.model)):
            if part is not None:
                message = f"spec.candidate.{name}: a local run has no relay and no images: play it on a cluster"
                return Why(RunReason.INVALID_SPEC, message)
        if self._spec.task.image is not None and self._options.pack is None:
            message = f"spec.task.image: {self._spec.task.image!r}: a local run has no images: name the pack instead"
            return Why(RunReason.UNKNOWN_TASK, message)
        if program is None or program.workspace is None:
            return None
        asked = program.workspace.digest
        if self._options.workspace is None:
            what = program.workspace.to_json()
            message = f"spec.candidate.program.workspace: {what}: its files are not here: give the candidate's folder"
            return Why(RunReason.WORKSPACE_MISSING, message)
        found = f"sha256:{digest_workspace(self._options.workspace)}"
        if asked is not None and asked != found:
            message = f"spec.candidate.program.workspace.digest: {asked}: the given folder has the digest {found}"
            return Why(RunReason.WORKSPACE_MISSING, message)
        return None

    def _folder(self) -> Path:
        return (self._options.out / "runs" / self._uid).resolve()

    def _policy(self) -> RunPolicy:
        deadline = self._spec.active_deadline_seconds
        return RunPolicy(
            parallelism=self._spec.parallelism,
            environment_retries=self._spec.retries.environment,
            interruption_retries=self._spec.retries.interruptions,
            pending_seconds=float(self._spec.limits.pending_seconds),
            suspend=False,
            deadline=None if deadline is None else self._started + deadline,
        )

    def _goal(self) -> Goal:
        threshold = self._spec.threshold
        return Goal() if threshold is None else Goal(threshold.score, dict(threshold.dimensions))


@dataclass(frozen=True)
class _Candidate:
    argv: Sequence[str] | None
    env: tuple[tuple[str, str], ...]
    files: Sequence[WorkspaceFile]
    fingerprint: str


def _candidate_of(run: EvalRun, plan: Plan, workspace: Sequence[WorkspaceFile] | None) -> _Candidate:
    candidate = run.spec.candidate
    if candidate.control is not None:
        control = plan.control(candidate.control)
        assert control is not None, "check_plan has found it"
        files = workspace_of((name, text.encode("utf-8")) for name, text in control.files.items())
        fingerprint = candidate_fingerprint(argv=control.argv, workspace=digest_workspace(files))
        return _Candidate(control.argv, (), files, fingerprint)
    program = candidate.program
    assert program is not None, "check_spec refuses every other candidate"
    env = tuple((item.name, item.value) for item in program.env)
    used = workspace if program.workspace is not None else None
    digest = None if used is None else digest_workspace(used)
    fingerprint = candidate_fingerprint(argv=program.argv, env=env, workspace=digest, image=program.image)
    return _Candidate(program.argv, env, used or (), fingerprint)
