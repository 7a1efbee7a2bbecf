"""A pack out of a user's own AgentBench task file, which is not changed for it."""

from __future__ import annotations

import importlib
import inspect
from typing import Any, Callable, Mapping, Optional, Sequence, Tuple, Type

from casewarden_sdk.contract import JSON, Case, Control, Limits
from casewarden_sdk.errors import ContractError

from .aliases import install_aliases
from .messages import TaskOutput
from .pack import SOURCES, AgentBenchPack
from .statuses import SampleStatus
from .task import Task

__all__ = ["TaskPack", "is_completed", "task_pack"]

_SILENT = (
    "import json, sys\n"
    "for line in sys.stdin:\n"
    "    print(json.dumps({'role': 'assistant', 'content': ''}), flush=True)\n"
)
SAYS_NOTHING = Control("says-nothing", "fault", {"main.py": _SILENT}, target="success", protocol_fault=True)
"""The fault that every chat task can be given: an agent whose every reply is empty."""


def is_completed(output: TaskOutput) -> bool:
    """Take a sample for passed when the task said that it is completed."""
    return output.status is SampleStatus.COMPLETED


class TaskPack(AgentBenchPack):
    """What ``task_pack`` makes."""

    threaded = True

    def __init__(self, kind: Type[Task], parameters: Mapping[str, Any], judge: Callable[[TaskOutput], bool]) -> None:
        self._kind = kind
        self._parameters = dict(parameters)
        self._judge = judge

    def task(self, params: Mapping[str, JSON], seed: int) -> Task:
        """Make the task; a run's ``params`` go to its constructor, over the pack's own."""
        try:
            return self._kind(**{**self._parameters, **params})
        except TypeError as error:
            raise ContractError(f"spec.task.params: {self._kind.__name__} does not take them: {error}") from None

    def passed(self, case: Case, output: TaskOutput, facts: Mapping[str, JSON]) -> bool:
        """Ask what the pack was made with."""
        return bool(self._judge(output))


def task_pack(
    name: str,
    *,
    id: str,
    score: str,
    version: str = "0.1.0",
    description: str = "",
    contract: str = "",
    parameters: Optional[Mapping[str, Any]] = None,
    passed: Callable[[TaskOutput], bool] = is_completed,
    passes: str = "the task says that the sample is completed",
    limits: Optional[Limits] = None,
    controls: Sequence[Control] = (SAYS_NOTHING,),
    sources: Sequence[str] = (),
) -> TaskPack:
    """Return a pack of the task class that ``name`` names as ``MODULE:CLASS``; its module may import from ``src``.

    ``score`` is the dotted path of the score in what ``calculate_overall`` returns. ``passed`` says of a sample's
    output whether it is passed, and ``passes`` says it in words. ``sources`` are files beside the module's own that its
    scores depend on. ``ContractError`` for a class that is no task, or one of AgentBench v0.1.
    """
    install_aliases()
    module, _, attribute = name.partition(":")
    kind = getattr(importlib.import_module(module), attribute, None)
    if not isinstance(kind, type) or not issubclass(kind, Task):
        raise ContractError(f"{name!r}: name a subclass of AgentBench's Task as MODULE:CLASS")
    pack = TaskPack(kind, parameters or {}, passed)
    pack.id, pack.version, pack.score, pack.passes = id, version, score, passes
    pack.description = description or (inspect.getdoc(kind) or "").split("\n")[0] or f"The AgentBench task {id}"
    pack.contract = contract or f"# {id} {version}\n\n{inspect.getdoc(kind) or ''}\n\nPassed means: {passes}.\n"
    pack.controls = tuple(controls)
    own: Tuple[str, ...] = (inspect.getsourcefile(kind) or "", *sources)
    pack.sources = (*SOURCES, *(path for path in own if path))
    if limits is not None:
        pack.limits = limits
    return pack
