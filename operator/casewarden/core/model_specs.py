"""From a spec to what its case pods are told of models, on a cluster and without one. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from casewarden.api.endpoint import Endpoint
from casewarden.api.evalrun import EvalRunSpec
from casewarden.core.pod_context import ModelSpec

__all__ = ["candidate_model", "task_models", "what_they_are"]


def candidate_model(spec: EvalRunSpec, endpoints: Mapping[str, Endpoint]) -> ModelSpec | None:
    """Return the model that plays or that the candidate may call; None where it has none."""
    model, budget = spec.candidate.model, spec.budget
    if model is None:
        return None
    endpoint = endpoints.get(model.endpoint)
    asked = {} if budget is None else {"tokens": budget.tokens, "calls": budget.model_calls, "cost": budget.cost}
    return ModelSpec(
        endpoint=model.endpoint,
        name=model.name,
        dialect="openai" if endpoint is None else endpoint.dialect,
        parameters=dict(model.parameters or {}),
        budget={name: value for name, value in asked.items() if value is not None},
        priority=spec.priority,
    )


def task_models(spec: EvalRunSpec) -> dict[str, ModelSpec]:
    """Return the models that the task asks, by role."""
    return {
        role: ModelSpec(model.endpoint, model.name, parameters=dict(model.parameters or {}), priority=spec.priority)
        for role, model in sorted(spec.task.models.items())
    }


def what_they_are(models: Mapping[str, ModelSpec]) -> dict[str, Any]:
    """Return what of a task's models bears on a score: not the endpoint, which is where they run."""
    return {role: {"name": model.name, "parameters": dict(model.parameters)} for role, model in models.items()}
