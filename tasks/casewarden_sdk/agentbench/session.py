"""A sample's conversation with the agent, as AgentBench's tasks see it."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import Any, Awaitable, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Union

from casewarden_sdk.contract import JSON, Case
from casewarden_sdk.errors import CandidateError, EnvironmentFailure
from casewarden_sdk.runtime import Runtime

from .messages import AgentOutput, ChatItem
from .statuses import AgentOutputStatus
from .trimming import trimmed

__all__ = ["Ask", "Injected", "Session", "ThreadSession"]

Injected = Union[ChatItem, Mapping[str, Any], Sequence[Any], None]
Ask = Callable[[Sequence[ChatItem]], Awaitable[str]]
"""Sends a history to the agent and returns the text of its reply; ``CandidateError`` where there is none."""


class Session:
    """``history`` is a plain list that a task may edit or replace; what is shown of it is trimmed before each turn.

    Beyond AgentBench's interface, for environments that are written for Casewarden: ``case`` and ``runtime`` (the
    environment containers), ``facts`` (what grading needs beside the result; it is kept in the record), ``acting``.
    """

    def __init__(self, ask: Ask, case: Optional[Case] = None, runtime: Optional[Runtime] = None) -> None:
        self.history: List[ChatItem] = []
        self.facts: Dict[str, JSON] = {}
        self.replies = 0
        self.cause: Union[CandidateError, EnvironmentFailure, None] = None
        """Why no more turns come: set once, by the first thing that went wrong."""
        self.met_context_limit = False
        self.was_told = False
        """Whether the task has been given CANCELLED."""
        self._ask = ask
        self._case = case
        self._runtime = runtime
        self._over = asyncio.Event()

    @property
    def case(self) -> Case:
        """The case that is played."""
        if self._case is None:
            raise AttributeError("this session was made without a case")
        return self._case

    @property
    def runtime(self) -> Runtime:
        """The runtime of the case: ``await session.runtime.environment(name)``."""
        if self._runtime is None:
            raise AttributeError("this session was made without a runtime")
        return self._runtime

    def inject(self, item: Injected) -> None:
        """Append a chat item, an object of its fields, or a list of these."""
        if item is None:
            return
        if isinstance(item, (ChatItem, Mapping)):
            self.history.append(ChatItem.parse_obj(item))
            return
        if isinstance(item, (str, bytes)) or not isinstance(item, Sequence):
            raise TypeError(f"inject({item!r}): give a chat item, an object with role and content, or a list of these")
        for part in item:
            self.inject(part)

    def clear(self) -> None:
        """Forget the history."""
        self.history = []

    async def action(self, *items: Injected) -> AgentOutput:
        """Inject ``items``, show the history to the agent, and return its turn, which is appended to the history.

        A turn that does not come, because the agent broke, used up a limit, or because the case is being ended, has
        the status cancelled; so have all that follow.
        """
        for item in items:
            self.inject(item)
        output = await self._turn(trimmed([ChatItem.parse_obj(item) for item in self.history]))
        # Upstream's, to the letter: an empty reply is kept as the word of its status.
        self.history.append(ChatItem("agent", output.content or output.status.value))
        return output

    def cancel(self, cause: Union[CandidateError, EnvironmentFailure]) -> None:
        """End the agent's part: the turn that is waited for, and all later ones, come back cancelled."""
        if self.cause is None:
            self.cause = cause
        self._over.set()

    @property
    def is_cancelled(self) -> bool:
        """Whether the agent's part is over before the task said so."""
        return self._over.is_set()

    async def until_cancelled(self) -> None:
        """Wait for ``cancel``."""
        await self._over.wait()

    @contextmanager
    def acting(self, reason: str = "Protocol") -> Iterator[None]:
        """Hold what is raised inside against the agent: what it said is being carried out, or read.

        ``EnvironmentFailure`` and ``CandidateError`` pass as they are; any other exception becomes a
        ``CandidateError`` of ``reason``.
        """
        try:
            yield
        except (CandidateError, EnvironmentFailure):
            raise
        except Exception as error:
            raise CandidateError(reason, f"{type(error).__name__}: {error}") from error

    async def _turn(self, shown: Sequence[ChatItem]) -> AgentOutput:
        if self.is_cancelled:
            # A task that asks on and on must leave the loop a moment in which it can be ended.
            await asyncio.sleep(0.01)
            return self._cancelled()
        asking, over = asyncio.ensure_future(self._ask(shown)), asyncio.ensure_future(self._over.wait())
        try:
            await asyncio.wait({asking, over}, return_when=asyncio.FIRST_COMPLETED)
            if not asking.done():
                return self._cancelled()
            content = asking.result()
            content.encode("utf-8")
        except UnicodeEncodeError as error:
            self.cancel(CandidateError("Protocol", f"the reply is no valid text: {error}"))
        except (CandidateError, EnvironmentFailure) as error:
            if isinstance(error, CandidateError) and error.reason == "ContextLimit":
                self.replies += 1
                self.met_context_limit = True
                return AgentOutput(AgentOutputStatus.AGENT_CONTEXT_LIMIT)
            self.cancel(error)
        else:
            self.replies += 1
            return AgentOutput(AgentOutputStatus.NORMAL, content)
        finally:
            for waiting in (asking, over):
                waiting.cancel()
            await asyncio.gather(asking, over, return_exceptions=True)
        return self._cancelled()

    def _cancelled(self) -> AgentOutput:
        self.was_told = True
        return AgentOutput(AgentOutputStatus.CANCELLED)


class ThreadSession(Session):
    """A session for a task that runs in a thread, with a loop of its own; its turns are taken in the driver's loop."""

    def __init__(self, outer: Session, loop: asyncio.AbstractEventLoop) -> None:
        self._outer = outer
        self._loop = loop
        self._case, self._runtime = outer._case, outer._runtime
        self.facts = outer.facts

    @property
    def history(self) -> List[ChatItem]:
        """The history, which is the outer session's."""
        return self._outer.history

    @history.setter
    def history(self, items: List[ChatItem]) -> None:
        self._outer.history = items

    @property
    def is_cancelled(self) -> bool:
        """See ``Session``."""
        return self._outer.is_cancelled

    async def _turn(self, shown: Sequence[ChatItem]) -> AgentOutput:
        taken = asyncio.run_coroutine_threadsafe(self._outer._turn(shown), self._loop)
        return await asyncio.wrap_future(taken)
