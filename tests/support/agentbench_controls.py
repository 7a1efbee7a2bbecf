"""The controls of an AgentBench environment over its pack's own driver, each played once."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from casewarden_sdk.contract import Case, Control
from casewarden_sdk.testing import Played, play

__all__ = ["Controls"]


class Controls:
    """The reference is played on all ``cases``, the others on the first ``few``, in which all that is wrong shows."""

    def __init__(self, pack: Any, few: int) -> None:
        self.faults: Sequence[Control] = [control for control in pack.controls if control.kind == "fault"]
        self.played = functools.cache(self._played)
        self._pack = pack
        self._few = few

    @functools.cached_property
    def _cases(self) -> Sequence[Case]:
        return self._pack.cases(0, {})  # type: ignore[no-any-return]

    def _played(self, name: str) -> tuple[Played, ...]:
        control = next(control for control in self._pack.controls if control.name == name)
        cases = self._cases if name == "reference" else self._cases[: self._few]
        return tuple(play(self._pack, case, control, seed=0) for case in cases)

    def statuses(self, name: str) -> set[str]:
        """What a control's cases came to."""
        return {one.verdict.status for one in self.played(name)}

    def failed(self, name: str) -> set[str]:
        """The dimensions in which a control was caught."""
        return {check for one in self.played(name) for check, right in one.verdict.checks.items() if not right}

    def score(self, name: str) -> Any:
        """The score by the task's own rule."""
        rows = [
            {"seed": 0, "repeat": 0, "params": {}, "index": number, "status": one.verdict.status,
             "output": one.record["output"] if one.record else None}
            for number, one in enumerate(self.played(name))
        ]  # fmt: skip
        return self._pack.aggregate(rows)["score"]
