"""From a spec to what its case pods are told of models, on a cluster and without one. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from casewarden.api.candidate import Prompter, Server
from casewarden.api.endpoint import Endpoint
from casewarden.api.evalrun import EvalRunSpec
from casewarden.core.pod_context import ModelSpec

__all__ = ["agent_of", "candidate_model", "prompter_of", "task_models", "what_they_are"]


def candidate_model(spec: EvalRunSpec, endpoints: Mapping[str, Endpoint]) -> ModelSpec | None:
    """Return the model that plays or that the candidate may call; None where it has none."""
    model, budget = spec.candidate.model, spec.budget
    if model is None:
        return None
    asked = {} if budget is None else {"tokens": budget.tokens, "calls": budget.model_calls, "cost": budget.cost}
    return ModelSpec(
        endpoint=model.endpoint,
        name=model.name,
        dialect=_dialect(model.endpoint, endpoints),
        parameters=dict(model.parameters or {}),
        budget={name: value for name, value in asked.items() if value is not None},
        priority=spec.priority,
        headers=dict(model.headers),
        prompter=None if model.prompter is None else prompter_of(model.prompter),
    )


def prompter_of(prompter: Prompter) -> dict[str, Any]:
    """Return a prompter as the recorder is told of it."""
    return {"name": prompter.name, "args": dict(prompter.args or {})}


def agent_of(server: Server | None) -> dict[str, Any] | None:
    """Return a server's interface as the recorder is told of it; None where it speaks OpenAI's."""
    if server is None or server.agent is None:
        return None
    agent = server.agent
    return {
        "path": agent.path,
        "headers": dict(agent.headers),
        "body": dict(agent.body or {}),
        "prompter": prompter_of(agent.prompter or Prompter(name="role_content_dict")),
        "return_format": agent.return_format,
    }


def task_models(spec: EvalRunSpec, endpoints: Mapping[str, Endpoint]) -> dict[str, ModelSpec]:
    """Return the models that the task asks, by role."""
    return {
        role: ModelSpec(
            endpoint=model.endpoint,
            name=model.name,
            dialect=_dialect(model.endpoint, endpoints),
            parameters=dict(model.parameters or {}),
            priority=spec.priority,
        )
        for role, model in sorted(spec.task.models.items())
    }


def _dialect(name: str, endpoints: Mapping[str, Endpoint]) -> str:
    endpoint = endpoints.get(name)
    return "openai" if endpoint is None else endpoint.dialect


def what_they_are(models: Mapping[str, ModelSpec]) -> dict[str, Any]:
    """Return what of a task's models bears on a score: not the endpoint, which is where they run."""
    return {role: {"name": model.name, "parameters": dict(model.parameters)} for role, model in models.items()}
