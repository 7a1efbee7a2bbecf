"""What is evaluated: a program, a server, a model, a control, or one of the first two with a model."""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from .common import (
    ApiModel,
    Argument,
    EnvName,
    FreeObject,
    Image,
    Keys,
    ObjectName,
    Rule,
    Shape,
    ShortName,
    WorkspaceDigest,
)

__all__ = ["AgentInterface", "Candidate", "EnvVar", "Model", "Program", "Prompter", "Server", "Workspace"]


class EnvVar(ApiModel):
    """One environment variable."""

    name: EnvName = Field(description="Name of the variable.")
    value: str = Field(
        default="",
        max_length=4096,
        description="Value of the variable. Whoever may read the run may read it, and so may the candidate: put no "
        "secret here.",
    )


def _first_repeated(owner: Program | Server) -> str | None:
    names = [item.name for item in owner.env]
    return next((name for name in names if names.count(name) > 1), None)


_UNIQUE_ENV = Rule(
    "!has(self.env) || self.env.all(a, self.env.exists_one(b, b.name == a.name))",
    "the variable is there twice: keep one",
    lambda owner: _first_repeated(owner) is None,
    ".env",
    value_cel="self.env.filter(a, !self.env.exists_one(b, b.name == a.name))[0].name",
    value=lambda owner: str(_first_repeated(owner)),
)
_ENV_DESCRIPTION = (
    "Environment variables of the candidate, beside PATH, LANG and HOME, which it always has. The host's own "
    "environment is never passed on."
)


class Workspace(ApiModel):
    """The candidate's files, read-only at /candidate. Exactly one of its fields is set."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "has(self.configMap) != has(self.digest)",
            "give exactly one of configMap and digest",
            lambda self: (self.config_map is None) != (self.digest is None),
        ),
    )

    config_map: ObjectName | None = Field(
        default=None,
        description="Name of a ConfigMap of the run's namespace whose keys are the files, in one flat folder. It is "
        "copied when the run is planned; later changes of it have no effect on the run.",
    )
    digest: WorkspaceDigest | None = Field(
        default=None,
        description="Digest of a folder that was uploaded before, as `casewarden evaluate` does: sha256: and 64 "
        "hexadecimal digits.",
    )


class Program(ApiModel):
    """A program that speaks JSON lines on its standard input and output."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "has(self.argv) || has(self.workspace)",
            "there is nothing to start: give a workspace, argv or both (an image's own entry point is not used)",
            lambda self: self.argv is not None or self.workspace is not None,
            reason="FieldValueRequired",
        ),
        _UNIQUE_ENV,
    )

    image: Image | None = Field(
        default=None,
        description="Image that the program runs in. Default: the pack's own image for programs, which has Python 3.",
    )
    argv: Annotated[list[Argument], Field(min_length=1, max_length=64)] | None = Field(
        default=None,
        description="Command of the program; no shell reads it. {python}, {workspace} and {state} stand for python3, "
        "/candidate and /state. Default: the command in the workspace's evalarc.toml, else the pack's default command.",
    )
    workspace: Workspace | None = Field(
        default=None, description="The program's files, read-only at /candidate, which is its working folder."
    )
    env: list[EnvVar] = Field(default_factory=list, max_length=64, description=_ENV_DESCRIPTION)


class Prompter(ApiModel):
    """How a history of messages becomes a request."""

    name: Annotated[
        str,
        Shape(
            r"^[a-z0-9]([-_a-z0-9]*[a-z0-9])?$", "use the name of a prompter, such as openai-chat or prompt_string", 63
        ),
    ] = Field(
        description="Name of the prompter: role_content_dict, batched_role_content_dict, prompt_string, claude or "
        "palm; of a model openai-chat, role_content_dict, prompt_string or claude."
    )
    args: FreeObject | None = Field(default=None, description="The prompter's own arguments, all of them texts.")


_HeaderText = Annotated[str, Shape(r"^[ -~]*$", "use printable ASCII", 1024, 0)]
_HEADER = Shape(r"^[A-Za-z0-9-]+$", "use letters, digits and '-' in the name of a header", 64)


class AgentInterface(ApiModel):
    """AgentBench's interface of an agent: a request that a prompter makes, an answer that a format reads."""

    path: Annotated[str, Shape(r"^/[!-~]*$", "give a path that begins with /", 512)] = Field(
        default="/", description="Path of the server that is asked by POST."
    )
    headers: Annotated[dict[str, _HeaderText], Field(max_length=32), Keys(_HEADER)] = Field(
        default_factory=dict, description="Headers of each request."
    )
    body: FreeObject | None = Field(default=None, description="What each request's body has beside the history.")
    prompter: Prompter | None = Field(
        default=None, description="How the history is written. Default: role_content_dict."
    )
    return_format: str = Field(
        default="{response}",
        min_length=1,
        max_length=1024,
        description="How the agent's text is read from an answer, which is JSON: a text with {response} and parts of "
        "it, such as {response[choices][0][text]}.",
    )


class Server(ApiModel):
    """An agent that listens for requests."""

    rules: ClassVar[tuple[Rule, ...]] = (_UNIQUE_ENV,)

    image: Image = Field(description="Image that the server runs in.")
    argv: list[Argument] = Field(
        min_length=1,
        max_length=64,
        description="Command that starts the server. It must be given: the image's own entry point is not used.",
    )
    port: int = Field(ge=1, le=65535, description="TCP port on which the server listens on the loopback address.")
    agent: AgentInterface | None = Field(
        default=None,
        description="AgentBench's agent interface, for a server that has it. Default: OpenAI's chat completions, at "
        "/v1/chat/completions.",
    )
    env: list[EnvVar] = Field(default_factory=list, max_length=64, description=_ENV_DESCRIPTION)


class Model(ApiModel):
    """A model behind one of the endpoints that the administrator has set up."""

    endpoint: ShortName = Field(
        description="Name of an endpoint of the operator's configuration. Its address and key stay with the relay."
    )
    name: str = Field(min_length=1, max_length=253, description="Name of the model, as the endpoint knows it.")
    parameters: FreeObject | None = Field(
        default=None,
        description="Parameters that are sent with every request, such as temperature, in the dialect of the endpoint.",
    )
    headers: Annotated[dict[str, _HeaderText], Field(max_length=8), Keys(_HEADER)] = Field(
        default_factory=dict,
        description="Headers that are sent with every request, such as anthropic-beta. None that carries keys, cookies "
        "or the connection's own matters; whoever may read the run may read them.",
    )
    prompter: Prompter | None = Field(
        default=None, description="How messages are written for the model. Default: openai-chat."
    )


class Candidate(ApiModel):
    """What is evaluated. It is never trusted."""

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "[has(self.program), has(self.server), has(self.control)].filter(x, x).size() <= 1",
            "give at most one of program, server and control",
            lambda self: [self.program, self.server, self.control].count(None) >= 2,
        ),
        Rule(
            "has(self.program) || has(self.server) || has(self.control) || has(self.model)",
            "there is nothing to evaluate: give one of program, server, control and model",
            lambda self: [self.program, self.server, self.control, self.model].count(None) < 4,
            reason="FieldValueRequired",
        ),
        Rule(
            "!(has(self.control) && has(self.model))",
            "a control is a program of the pack and uses no model: remove model or control",
            lambda self: self.control is None or self.model is None,
            ".model",
            "FieldValueForbidden",
        ),
    )

    program: Program | None = Field(
        default=None,
        description="A program that speaks JSON lines on its standard input and output. At most one of program, "
        "server and control may be set.",
    )
    server: Server | None = Field(default=None, description="An agent that listens for requests on a port.")
    model: Model | None = Field(
        default=None,
        description="A model: alone it is the candidate; beside a program or a server it is what those may call.",
    )
    control: ShortName | None = Field(
        default=None,
        description="Name of one of the pack's own controls, such as reference or null-agent. Their verdicts are "
        "known: a run of one shows whether the task and the cluster work.",
    )
