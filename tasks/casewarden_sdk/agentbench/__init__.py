"""AgentBench's interface (v0.2), and the base that makes a pack of an environment.

``Task`` and ``Session`` are what tasks are written against; a user's file that imports them from ``src`` runs unchanged
once ``install_aliases`` was called. ``AgentBenchPack`` is what environments are made of.
"""

from __future__ import annotations

from .aliases import install_aliases
from .dataset import Dataset, open_dataset
from .foreign import TaskPack, task_pack
from .messages import AgentOutput, ChatItem, TaskOutput, TaskSampleExecutionResult
from .pack import SOURCES, AgentBenchPack
from .params import chosen_indices, chosen_split, keeps_to_v0_2, refuse_unknown, whole_number
from .session import Session
from .statuses import AgentOutputStatus, SampleStatus
from .task import Task

__all__ = [
    "SOURCES",
    "AgentBenchPack",
    "AgentOutput",
    "AgentOutputStatus",
    "ChatItem",
    "Dataset",
    "SampleStatus",
    "Session",
    "Task",
    "TaskOutput",
    "TaskPack",
    "TaskSampleExecutionResult",
    "chosen_indices",
    "chosen_split",
    "install_aliases",
    "keeps_to_v0_2",
    "open_dataset",
    "refuse_unknown",
    "task_pack",
    "whole_number",
]
