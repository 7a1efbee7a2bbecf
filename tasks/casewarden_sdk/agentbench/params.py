"""Parameters that the packs of AgentBench's environments have in common, each refused by its field."""

from __future__ import annotations

from typing import Collection, List, Mapping, Sequence

from casewarden_sdk.contract import JSON
from casewarden_sdk.errors import ContractError

__all__ = ["chosen_indices", "chosen_split", "keeps_to_v0_2", "refuse_unknown", "whole_number"]

_V0_2 = "v0.2"


def refuse_unknown(params: Mapping[str, JSON], known: Sequence[str], pack_id: str) -> None:
    """Raise ``ContractError`` for the first parameter that the pack does not know."""
    for name in params:
        if name not in known:
            raise ContractError(f"spec.task.params.{name}: {pack_id} knows {', '.join(known)}; remove it")


def keeps_to_v0_2(params: Mapping[str, JSON]) -> bool:
    """Tell whether ``params.compat`` asks for what AgentBench v0.2 does."""
    compat = params.get("compat")
    if compat not in (None, _V0_2):
        raise ContractError(f"spec.task.params.compat is {compat!r}; give {_V0_2!r}, or leave it out")
    return compat is not None


def whole_number(params: Mapping[str, JSON], name: str, default: int, most: int) -> int:
    """Return a parameter that is a whole number from 1 to ``most``."""
    value = params.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise ContractError(f"spec.task.params.{name} is {value!r}; give a whole number from 1 to {most}")
    return value


def chosen_split(params: Mapping[str, JSON], splits: Collection[str]) -> str:
    """Return ``params.split``, ``std`` where it is left out."""
    split = params.get("split", "std")
    if not isinstance(split, str) or split not in splits:
        raise ContractError(f"spec.task.params.split is {split!r}; give one of {', '.join(splits)}")
    return split


def chosen_indices(params: Mapping[str, JSON], count: int) -> List[int]:
    """Return the places, from 0, that a run plays: all, unless it names some; ``ContractError`` for what is no list."""
    wanted = params.get("indices", list(range(count)))
    whole = isinstance(wanted, list) and all(isinstance(index, int) and not isinstance(index, bool) for index in wanted)
    if not whole or not wanted or len(set(wanted)) != len(wanted) or not all(0 <= index < count for index in wanted):
        raise ContractError(
            f"spec.task.params.indices is {wanted!r:.80}; give a list of different whole numbers from 0 to {count - 1}"
        )
    return list(wanted)
