"""From a run, its plan and the catalogue to what its pods are made of, and to the fingerprints of it; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from casewarden.api.catalogue import Catalogue
from casewarden.api.evalrun import EvalRunSpec
from casewarden.api.plan import CaseKind, Plan
from casewarden.controller.identity import RunIdentity
from casewarden.controller.plans import Resolved
from casewarden.controller.workspaces import Snapshot
from casewarden.core.fingerprints import candidate_fingerprint, conditions_fingerprint
from casewarden.core.model_specs import agent_of, candidate_model, task_models, what_they_are
from casewarden.core.pod_context import GATEWAY_PORT, candidate_network
from casewarden.core.pods import CandidateSpec, EnvironmentSpec, KindSpec, PodContext, conditions_of
from casewarden.core.validate import effective_limits
from casewarden_sdk.contract import Limits

__all__ = ["candidate_digest", "conditions_digest", "context_of", "pinned"]


def pinned(reference: str, image_id: str) -> str:
    """Return the reference by digest of what a node ran as ``reference``; the reference itself where that is unknown.

    An image that was loaded by hand has the digest of its configuration, which no registry knows; and a digest that
    the node knows from another repository may not be in this one.
    """
    name, at, digest = image_id.rpartition("@")
    if "@" in reference or not at or not digest.startswith("sha256:"):
        return reference
    repository = _repository(reference)
    return f"{repository}@{digest}" if _normal(repository) == _normal(name.rpartition("://")[2]) else reference


def _repository(reference: str) -> str:
    head, slash, last = reference.rpartition("/")
    return f"{head}{slash}{last.split(':')[0]}"


def _normal(repository: str) -> str:
    first, _, rest = repository.partition("/")
    if not rest:
        return f"docker.io/library/{first}"
    return repository if "." in first or ":" in first or first == "localhost" else f"docker.io/{repository}"


def context_of(
    run: RunIdentity,
    spec: EvalRunSpec,
    plan: Plan,
    resolved: Resolved,
    catalogue: Catalogue,
    snapshot: Snapshot,
    relay_address: str | None,
) -> PodContext:
    """Return what all case pods of a run share. ``catalogue`` gives what is not fixed by the plan."""
    candidate, model = _candidate(spec, plan, snapshot), candidate_model(spec, catalogue.endpoints)
    limits = Limits(**effective_limits(plan.limits, spec.limits).model_dump())
    if model is not None:
        # The time of one answer is the model's and its queue's; the case's is what bounds it.
        limits = replace(limits, response_seconds=max(limits.response_seconds, limits.case_seconds))
    return PodContext(
        owner=run.owner,
        namespace=run.namespace,
        task_image=resolved.image,
        task_command=tuple(resolved.command),
        evidence_image=catalogue.evidence_image,
        relay_url=catalogue.relay_url,
        limits=limits,
        kinds={
            name: _kind(kind, resolved.images, own_image(spec), played=candidate is not None)
            for name, kind in plan.kinds.items()
        },
        candidate=candidate,
        params=plan.params,
        datasets=resolved.datasets,
        template=spec.pod_template,
        relay_address=relay_address,
        pending_seconds=spec.limits.pending_seconds,
        model=model,
        task_models=task_models(spec, catalogue.endpoints),
    )


def own_image(spec: EvalRunSpec) -> str | None:
    """Return the image that the run itself names for its candidate."""
    program, server = spec.candidate.program, spec.candidate.server
    return server.image if server is not None else program.image if program is not None else None


def _kind(kind: CaseKind, images: Mapping[str, str], own: str | None, *, played: bool) -> KindSpec:
    image = own
    if image is None and kind.candidate is not None:
        image = images.get(kind.candidate.image)
    if not played:
        image = None
    return KindSpec(
        candidate_image=image,
        environments=tuple(
            EnvironmentSpec(item.name, images.get(item.image, item.image), item.profile, item.memory_mib)
            for item in kind.environments
        ),
    )


def _candidate(spec: EvalRunSpec, plan: Plan, snapshot: Snapshot) -> CandidateSpec | None:
    own = spec.candidate
    if own.program is None and own.server is None and own.control is None:
        return None
    argv, env = _command(spec, plan)
    port = own.server.port if own.server is not None else None
    return CandidateSpec(
        default_argv=tuple(plan.default_argv),
        argv=argv,
        env=env,
        workspace_config_map=snapshot.config_map,
        workspace_digest=snapshot.digest,
        fetch_workspace=snapshot.fetch,
        port=port,
        agent=agent_of(own.server),
        network=candidate_network(port, GATEWAY_PORT if own.model is not None else None),
    )


def _command(spec: EvalRunSpec, plan: Plan) -> tuple[tuple[str, ...] | None, tuple[tuple[str, str], ...]]:
    program, control = spec.candidate.program or spec.candidate.server, plan.control(spec.candidate.control or "")
    if program is not None:
        argv = None if program.argv is None else tuple(program.argv)
        return argv, tuple((item.name, item.value) for item in program.env)
    return (None if control is None or control.argv is None else tuple(control.argv)), ()


def candidate_digest(spec: EvalRunSpec, plan: Plan, snapshot: Snapshot) -> str:
    """Return the candidate's fingerprint."""
    argv, env = _command(spec, plan)
    own = spec.candidate
    model = None
    if own.model is not None:
        model = {key: value for key, value in own.model.to_json().items() if key != "endpoint"}
    return candidate_fingerprint(
        argv=argv,
        env=env,
        workspace=snapshot.digest,
        image=own_image(spec),
        model=model,
        port=own.server.port if own.server is not None else None,
        agent=agent_of(own.server),
        alone=own.program is None and own.server is None and own.control is None,
    )


def conditions_digest(context: PodContext) -> str:
    """Return the fingerprint of what the candidate works under."""
    conditions: Mapping[str, object] = conditions_of(context)
    profiles = {item.profile for kind in context.kinds.values() for item in kind.environments}
    return conditions_fingerprint(
        limits=vars(context.limits),
        resources={key: conditions[key] for key in ("kinds", "task")},
        profile="baseline" if "baseline" in profiles else "restricted",
        network=context.candidate.network if context.candidate is not None else "none",
        runtime_class=context.template.runtime_class_name,
        models=what_they_are(context.task_models),
    )
