"""An EvalRun without a cluster: the same manifest, the same status document, the same evidence."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
import uuid
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from casewarden.adapters.stores.folder import FolderStore
from casewarden.api.candidate import Server
from casewarden.api.endpoint import Endpoint
from casewarden.api.evalrun import EvalRun
from casewarden.api.plan import Plan
from casewarden.api.reasons import RunReason
from casewarden.core.datasets import VARIABLE as DATASETS
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
from casewarden.core.model_specs import agent_of, candidate_model, task_models, what_they_are
from casewarden.core.run_conditions import Why
from casewarden.core.scoring import OWN_RULES, OwnScore
from casewarden.core.seeds import ENTROPY_BYTES, draw_seeds
from casewarden.core.status import Goal, StatusInput, build_status
from casewarden.core.tally import PlanFacts, plan_facts, tally
from casewarden.core.usage import kept_usage, status_usage
from casewarden.core.validate import check_endpoints, check_plan, check_spec, effective_limits, summary
from casewarden.ports.store import Store
from casewarden_sdk.canonical import sha256_bytes
from casewarden_sdk.workspace import WorkspaceFile, digest_workspace, workspace_of

from .aggregating import NoScore, aggregate
from .attempt import Ground
from .loop import Loop, State
from .models import LocalModels
from .planning import PlanFailed, make_plan, pack_of
from .shim import find_shim

__all__ = ["LocalResult", "Options", "run_evalrun"]

_FILE_BYTES = 1 << 30


@dataclass(frozen=True)
class Options:
    """What a cluster knows and a manifest does not.

    ``out`` is the store's folder. ``pack`` is ``MODULE:PACK`` where the task is none of the project's own.
    ``workspace`` are the candidate's files, read from a folder or a ConfigMap. ``endpoints`` are the model servers that
    the run may name, ``keys`` the keys of those that have one. ``on_status`` gets the status whenever it changes.
    ``datasets`` are folders or archives by the names that ``spec.task.params.dataset`` may have.
    """

    out: Path
    pack: str | None = None
    workspace: Sequence[WorkspaceFile] | None = None
    endpoints: Mapping[str, Endpoint] = field(default_factory=dict)
    keys: Mapping[str, str] = field(default_factory=dict)
    on_status: Callable[[Mapping[str, Any]], None] | None = None
    datasets: Mapping[str, Path] = field(default_factory=dict)


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
        self._usage: dict[str, Any] | None = None
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
            plan, text = await make_plan(pack, seeds, params, self._spec.select.families, self._variables)
        except PlanFailed as error:
            return self._failed(plan_problem=error.why)
        problem = summary(check_plan(self._spec, seeds, plan, None)) or _wants_root(plan)
        if problem is not None:
            return self._failed(plan_problem=problem)
        return await self._play(pack, params, text, plan_facts(plan, sha256_bytes(text)))

    async def _play(self, pack: str, params: dict[str, Any], text: bytes, facts: PlanFacts) -> LocalResult:
        plan = facts.plan
        candidate = _candidate_of(self._run, plan, self._options.workspace)
        limits = effective_limits(plan.limits, self._spec.limits).model_dump(mode="json")
        if self._spec.candidate.model is not None:
            # As on a cluster: the time of one answer is the model's and its queue's.
            limits["response_seconds"] = max(limits["response_seconds"], limits["case_seconds"])
        asked = task_models(self._spec, self._options.endpoints)
        self._base = replace(
            self._base,
            plan=facts,
            candidate_fingerprint=candidate.fingerprint,
            conditions_fingerprint=conditions_fingerprint(
                limits=limits, resources={}, boundary="local", models=what_they_are(asked)
            ),
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
            port=None if self._spec.candidate.server is None else self._spec.candidate.server.port,
            agent=agent_of(self._spec.candidate.server),
            alone=candidate.alone,
            model=candidate_model(self._spec, self._options.endpoints),
            task_models=asked,
            variables=self._variables,
        )
        plan_file = text + b"\n"
        meta = meta_document(namespace=self._run.metadata.namespace, name=self._run.metadata.name, run_uid=self._uid)
        await self._put(META, json_file(meta))
        await self._put(PLAN, plan_file)
        cases = [CaseKey(case.seed, case.case_id, r) for case in facts.cases for r in range(self._spec.repeats)]
        planned = {(case.seed, case.case_id): case for case in facts.cases}
        async with self._models(ground) as standing:
            loop = Loop(self._run.metadata.name, standing, self._base.policy, cases, planned, self._show)
            end = await loop.run()
        rows = tuple(loop.state.rows)
        if standing.models is not None and (used := await standing.models.usage()) is not None:
            self._usage = kept_usage(used)
            self._base = replace(self._base, usage=status_usage(self._usage))
        own: OwnScore | None = None
        if facts.rule in OWN_RULES:
            try:
                own = await self._aggregate(facts, rows, pack, params)
            except NoScore as error:
                end = FinishRun(False, error.why.reason, error.why.message) if end.complete else end
        digest = await self._sum_up(facts, rows, plan_file, own)
        status = self._status(rows=rows, end=end, evidence_digest=digest, own=own)
        return LocalResult(status, self._uid, self._folder(), plan, rows, loop.state.logs)

    @contextlib.asynccontextmanager
    async def _models(self, ground: Ground) -> AsyncIterator[Ground]:
        if ground.model is None and not ground.task_models:
            yield ground
            return
        options, meta = self._options, self._run.metadata
        async with LocalModels(
            self._store, options.endpoints, options.keys, meta.namespace, meta.name, self._uid
        ) as models:
            yield replace(ground, models=models)

    async def _aggregate(
        self, facts: PlanFacts, rows: tuple[LedgerRow, ...], pack: str, params: Mapping[str, Any]
    ) -> OwnScore | None:
        counted = tally(facts, self._spec.repeats, rows, self._base.policy)
        settled = {key: counted.settled[key] for key, _ in counted.cases if key in counted.settled}
        if not settled:
            return None
        own, files = await aggregate(self._store, self._uid, pack, params, settled, self._variables)
        for name, data in files.items():
            await self._put(name, data)
        return own

    @property
    def _variables(self) -> dict[str, str]:
        places = {name: {"path": str(path.resolve())} for name, path in sorted(self._options.datasets.items())}
        return {DATASETS: json.dumps(places)} if places else {}

    async def _sum_up(
        self, facts: PlanFacts, rows: tuple[LedgerRow, ...], plan_file: bytes, own: OwnScore | None
    ) -> str:
        results = results_file(rows)
        document = run_document(
            name=self._run.metadata.name,
            namespace=self._run.metadata.namespace,
            run_uid=self._uid,
            spec=self._spec.to_json(),
            seeds=self._base.seeds,
            plan=plan_file,
            results=results,
            score=tally(facts, self._spec.repeats, rows, self._base.policy, own).score.to_json(),
            usage=self._usage,
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
        program, server = self._spec.candidate.program, self._spec.candidate.server
        for field_name, other in (("baseline", self._spec.baseline), ("regradeOf", self._spec.regrade_of)):
            if other is not None:
                message = f"spec.{field_name}: a local run knows no other runs: leave it out, or run it on a cluster"
                return Why(RunReason.INVALID_SPEC, message)
        for problem in check_endpoints(self._spec, self._options.endpoints):
            message = f"{problem}; a local run's endpoints are those of --endpoint and --endpoints"
            return Why(problem.reason, message)
        if server is not None and _listens(server.port):
            message = f"spec.candidate.server.port: {server.port}: something on this machine listens there already"
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
            # Servers of two cases would want the same port of the one machine.
            parallelism=1 if self._spec.candidate.server is not None else self._spec.parallelism,
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
    alone: bool = False


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(1.0)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _wants_root(plan: Plan) -> Why | None:
    """Refuse a task whose agent is root of a container: here it would be root of the machine, or of a user's files."""
    if any(environment.profile == "baseline" for kind in plan.kinds.values() for environment in kind.environments):
        message = (
            f"spec.task: {plan.task.id}: its agent is root of a container, and a local run has none: use a cluster"
        )
        return Why(RunReason.PLAN_REFUSED, message)
    return None


def _candidate_of(run: EvalRun, plan: Plan, workspace: Sequence[WorkspaceFile] | None) -> _Candidate:
    candidate = run.spec.candidate
    if candidate.control is not None:
        control = plan.control(candidate.control)
        assert control is not None, "check_plan has found it"
        files = workspace_of((name, text.encode("utf-8")) for name, text in control.files.items())
        fingerprint = candidate_fingerprint(argv=control.argv, workspace=digest_workspace(files))
        return _Candidate(control.argv, (), files, fingerprint)
    model = None
    if candidate.model is not None:
        model = {key: value for key, value in candidate.model.to_json().items() if key != "endpoint"}
    program = candidate.program or candidate.server
    if program is None:
        return _Candidate(None, (), (), candidate_fingerprint(argv=None, workspace=None, model=model, alone=True), True)
    env = tuple((item.name, item.value) for item in program.env)
    # A server's files are in its image; here the folder that is given stands in for it.
    used = workspace if isinstance(program, Server) or program.workspace is not None else None
    digest = None if used is None else digest_workspace(used)
    fingerprint = candidate_fingerprint(
        argv=program.argv, env=env, workspace=digest, image=program.image, model=model,
        port=program.port if isinstance(program, Server) else None,
        agent=agent_of(candidate.server),
    )  # fmt: skip
    return _Candidate(program.argv, env, used or (), fingerprint)
