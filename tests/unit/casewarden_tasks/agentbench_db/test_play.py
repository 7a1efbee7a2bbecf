"""The dialogue: what each reply leads to, and how a sample ends."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from casewarden_sdk.agentbench import ChatItem, SampleStatus, Session
from casewarden_sdk.errors import CandidateError
from casewarden_tasks.agentbench_db.play import Played, opening, play
from casewarden_tasks.agentbench_db.rows import Row, Table

ROW = Row("How many?", "The name of this table is t.", "counting", ("2",), None, Table("t", ("a",), ()))
LOOK = "I look.\nAction: Operation\n```sql\nSELECT 1\n```"
ANSWER = 'Done.\nAction: Answer\nFinal Answer: ["2"]'


class Database:
    def __init__(self) -> None:
        self.asked: list[str] = []

    async def carry_out(self, statement: str) -> str:
        self.asked.append(statement)
        return f"[({len(self.asked)},)]"


async def played(*replies: str | CandidateError, max_round: int = 15) -> tuple[Played, Database, Session]:
    """Play against an agent that says these, and then the last for ever."""
    said = list(replies)

    async def ask(history: Sequence[ChatItem]) -> str:
        reply = said.pop(0) if len(said) > 1 else said[0]
        if isinstance(reply, CandidateError):
            raise reply
        return reply

    session, database = Session(ask), Database()
    session.inject(opening(ROW))
    return await play(session, database, max_round), database, session


async def test_statements_are_carried_out_and_shown_until_there_is_an_answer() -> None:
    result, database, session = await played(LOOK, LOOK, ANSWER)
    assert (result.status, result.answer, result.statements) == (SampleStatus.COMPLETED, ' ["2"]', 2)
    assert database.asked == ["SELECT 1", "SELECT 1"]
    assert [(item.role, item.content) for item in session.history[1:]] == [
        ("agent", "Ok."),
        ("user", "How many?\nThe name of this table is t."),
        ("agent", LOOK),
        ("user", "[(1,)]"),
        ("agent", LOOK),
        ("user", "[(2,)]"),
        ("agent", ANSWER),
    ]


@pytest.mark.parametrize(
    ("reply", "status"),
    [
        ("", SampleStatus.AGENT_VALIDATION_FAILED),
        ("The answer is 2.", SampleStatus.AGENT_VALIDATION_FAILED),
        ("Action: Operation\nSELECT 1", SampleStatus.AGENT_VALIDATION_FAILED),
        ("Action: Answer\nThe answer is 2", SampleStatus.AGENT_VALIDATION_FAILED),
        ("Action: Think\nFinal Answer: x", SampleStatus.COMPLETED),
    ],
)
async def test_a_reply_that_is_neither_ends_the_sample(reply: str, status: SampleStatus) -> None:
    result, database, _ = await played(reply)
    assert (result.status, database.asked) == (status, [])


async def test_after_the_last_round_only_an_answer_helps() -> None:
    result, database, session = await played(LOOK, max_round=3)
    assert (result.status, result.answer) == (SampleStatus.TASK_LIMIT_REACHED, "")
    assert (len(database.asked), session.replies) == (3, 4)
    result, _, _ = await played(LOOK, LOOK, LOOK, ANSWER, max_round=3)
    assert (result.status, result.answer) == (SampleStatus.COMPLETED, ' ["2"]')


async def test_a_context_limit_ends_the_sample_where_it_is_met() -> None:
    limit = CandidateError("ContextLimit", "too long")
    assert (await played(LOOK, limit))[0].status is SampleStatus.AGENT_CONTEXT_LIMIT
    first, _, session = await played(limit)
    assert first.status is SampleStatus.AGENT_VALIDATION_FAILED  # as there: what the first turn was is not looked at
    assert session.met_context_limit


async def test_an_agent_that_is_gone_is_asked_no_more() -> None:
    _, database, session = await played(LOOK, CandidateError("Exited", "gone"))
    assert session.is_cancelled
    assert database.asked == ["SELECT 1"]


async def test_what_breaks_in_carrying_out_a_statement_is_the_agents() -> None:
    async def ask(history: Sequence[ChatItem]) -> str:
        return LOOK

    class Broken:
        async def carry_out(self, statement: str) -> str:
            raise ValueError("what the server said cannot be read")

    session = Session(ask)
    session.inject(opening(ROW))
    with pytest.raises(CandidateError, match="cannot be read"):
        await play(session, Broken(), 15)
