"""The ways out of a run task that are no failures of the operator."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TypeVar

from casewarden.api.reasons import RunReason
from casewarden.core.model import FinishRun
from casewarden.core.run_conditions import Why
from casewarden.ports.kube import Forbidden, Invalid, NotFound

__all__ = ["Abandoned", "Ended", "guarded"]

T = TypeVar("T")


class Ended(Exception):
    """The run is over before, or without, its cases: ``finish`` says how, the others where it got stuck."""

    def __init__(self, finish: FinishRun, *, refused: Why | None = None, plan_problem: Why | None = None) -> None:
        super().__init__(f"{finish.reason}: {finish.message}")
        self.finish, self.refused, self.plan_problem = finish, refused, plan_problem

    @classmethod
    def failed(cls, reason: RunReason, message: str) -> Ended:
        """Fail a run that could have been run."""
        return cls(FinishRun(False, reason, message))

    @classmethod
    def not_accepted(cls, why: Why) -> Ended:
        """Fail a run whose spec cannot be run."""
        return cls(FinishRun(False, why.reason, why.message), refused=why)

    @classmethod
    def unplanned(cls, reason: str, message: str) -> Ended:
        """Fail a run that has no plan."""
        return cls(FinishRun(False, reason, message), plan_problem=Why(reason, message))


class Abandoned(Exception):
    """The namespace is going: nothing is written any more, and nothing needs to be."""


async def guarded(work: Awaitable[T]) -> T:
    """Let what the API server refuses for good end the run, in its own words."""
    try:
        return await work
    except Invalid as error:
        raise Ended.failed(RunReason.REFUSED, f"the API server refuses: {error.message}") from None
    except Forbidden as error:
        if error.is_terminating:
            raise Abandoned(error.message) from None
        if error.is_quota:
            raise
        raise Ended.failed(RunReason.REFUSED, f"the API server refuses: {error.message}") from None
    except NotFound as error:
        if error.message.startswith("namespaces "):
            raise Abandoned(error.message) from None
        raise
