"""What an agent's reply asks for, and what it is shown in return: AgentBench's formats for its OS environment. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

__all__ = ["ANSWER", "BASH", "FINISH", "SHOWN", "Action", "cleaned", "observation", "parse"]

BASH: Final = "bash"
FINISH: Final = "finish"
ANSWER: Final = "answer"
LONGEST: Final = 800  # characters of output that are shown whole
SHOWN: Final = 780  # characters that are shown of a longer one

_ACT: Final = re.compile(r"Act:[ \t]*([^\n]*)")
_OPENS, _CLOSES = "```bash\n", "\n```"
# What a terminal would carry out and not show: colours and cursor, titles, bracketed paste, the bell.
_CONTROLS: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|\x1b\][0-9]{0,9};[^\x07\n]{0,999}\x07|\x1b\[\?2004[hl]|\x07")


@dataclass(frozen=True)
class Action:
    """What a reply comes to: run ``text`` in the shell, finish (``text`` is None), or answer ``text``."""

    kind: Literal["bash", "finish", "answer"]
    text: str | None = None


def parse(reply: str) -> Action | None:
    """Return the action of a reply, None where it has none.

    The last line of the form ``Act: …`` that can be understood counts. What is run is every fence tagged ``bash`` of
    the whole reply, joined by a blank line; a reply without one runs an empty command.
    """
    for said in reversed(_ACT.findall(reply)):
        word = said.lower()
        if word.startswith(BASH):
            return Action(BASH, "\n\n".join(_scripts(reply)))
        if word.startswith(FINISH):
            return Action(FINISH)
        if word.startswith(ANSWER):
            begin, end = said.find("("), said.rfind(")")
            if 0 <= begin < end:
                return Action(ANSWER, said[begin + 1 : end])
    return None


def _scripts(reply: str) -> Iterator[str]:
    """Yield what stands in each fence. By hand: a pattern would look for the end of each again that has none."""
    begin = reply.find(_OPENS)
    while begin >= 0:
        begin += len(_OPENS)
        end = reply.find(_CLOSES, begin)
        if end < 0:
            return
        yield reply[begin:end]
        begin = reply.find(_OPENS, end + len(_CLOSES))


def cleaned(output: bytes) -> str:
    """Return output as text, without what a terminal carries out. Bytes that are no UTF-8 become U+FFFD."""
    return _CONTROLS.sub("", output.decode("utf-8", "replace"))


def observation(output: str) -> str:
    """Return what the agent is told of a command's output."""
    if not output:
        return "The output of the OS is empty."
    if len(output) > LONGEST:
        output = f"{output[:SHOWN]}\n[the rest is left out: the output is too long]"
    return f"The output of the OS:\n\n{output}"
