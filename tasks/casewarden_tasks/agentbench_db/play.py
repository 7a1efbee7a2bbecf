"""The dialogue of one sample: operations and what they show, until there is an answer or the rounds are used up."""

from __future__ import annotations

from typing import Any, Final, Protocol

from casewarden_sdk.agentbench import AgentOutput, AgentOutputStatus, SampleStatus, Session

from .replies import OPERATION, action_of, answer_of, sql_of
from .rows import Row

__all__ = ["RULES", "Played", "opening", "play"]

RULES: Final = """\
You are given a question, or a change to make, about one table of a MySQL database. Work by SQL statements. There are
two forms of reply, and each reply must be exactly one of them, beginning with a line that gives the reason.

To have a statement carried out:
Action: Operation
```sql
SELECT ... ;
```
The statement goes between the two fences, one statement in one block, on one line. The reply that you get is what the
database said: a list of rows, each a tuple, or an error; it is cut where it is long.

To give the final answer:
Action: Answer
Final Answer: ["first answer", "second answer"]
The answer is a list in which each element is a text, and stands on one line with the words Final Answer. There is one
element for each thing that was asked for. Where the task was to change the table, the change itself is what counts, so
make it first; the answer may then be an empty list.

Names that hold spaces or other special characters must be quoted with backticks. When you have understood, say Ok."""


class Operator(Protocol):
    """Carries out what the agent says."""

    async def carry_out(self, statement: str) -> str:
        """Return what is shown of the statement's result."""


class Played:
    """How a dialogue ended: the agent's own ``answer``, empty where it gave none; how many ``statements`` it made."""

    def __init__(self) -> None:
        self.status = SampleStatus.COMPLETED
        self.answer = ""
        self.statements = 0


def opening(row: Row) -> list[dict[str, Any]]:
    """Return the messages that a sample begins with."""
    return [
        {"role": "user", "content": RULES},
        {"role": "agent", "content": "Ok."},
        {"role": "user", "content": f"{row.description}\n{row.add_description}"},
    ]


async def play(session: Session, database: Operator, max_round: int) -> Played:
    """Ask the agent until it answers, breaks the form, or has had ``max_round`` operations."""
    played = Played()
    output = await session.action()
    while action_of(reply := _text(output)) == OPERATION and played.statements < max_round:
        statement = sql_of(reply)
        if statement is None:
            played.status = SampleStatus.AGENT_VALIDATION_FAILED
            return played
        with session.acting():
            shown = await database.carry_out(statement)
        played.statements += 1
        output = await session.action({"role": "user", "content": shown})
        if output.status is AgentOutputStatus.AGENT_CONTEXT_LIMIT:
            played.status = SampleStatus.AGENT_CONTEXT_LIMIT
            return played
    answer = answer_of(reply)
    if answer is None:
        over = played.statements >= max_round
        played.status = SampleStatus.TASK_LIMIT_REACHED if over else SampleStatus.AGENT_VALIDATION_FAILED
    played.answer = answer or ""
    return played


def _text(output: AgentOutput) -> str:
    return output.content or ""
