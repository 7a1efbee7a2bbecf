"""``params.indices``: which of its samples a run plays."""

from __future__ import annotations

from typing import List, Mapping

from casewarden_sdk.contract import JSON
from casewarden_sdk.errors import ContractError

__all__ = ["chosen_indices"]


def chosen_indices(params: Mapping[str, JSON], count: int) -> List[int]:
    """Return the places, from 0, that a run plays: all, unless it names some; ``ContractError`` for what is no list."""
    wanted = params.get("indices", list(range(count)))
    whole = isinstance(wanted, list) and all(isinstance(index, int) and not isinstance(index, bool) for index in wanted)
    if not whole or not wanted or len(set(wanted)) != len(wanted) or not all(0 <= index < count for index in wanted):
        raise ContractError(
            f"spec.task.params.indices is {wanted!r:.80}; give a list of different whole numbers from 0 to {count - 1}"
        )
    return list(wanted)
