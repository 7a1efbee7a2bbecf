import asyncio

import pytest

from casewarden_sdk.agentbench import AgentOutputStatus, ChatItem, Session
from casewarden_sdk.agentbench.trimming import segments, trimmed
from casewarden_sdk.errors import CandidateError, EnvironmentFailure


def session(*replies):
    """A session whose agent gives these replies, or raises them; what it was shown is kept."""
    left = list(replies)
    shown = []

    async def ask(history):
        shown.append([(item.role, item.content) for item in history])
        reply = left.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply

    made = Session(ask)
    return made, shown


def run(coroutine):
    return asyncio.run(coroutine)


@pytest.mark.parametrize(
    ("text", "cost"),
    [
        ("hello world", 2), ("internationalization", 3), ("a1b2", 4), ("x = 3.14;\n", 7), ("汉字汉字汉字汉字", 2),
        ("", 0), (" \n \n", 0), ("sevenle", 1), ("eightlet", 2), ("\t", 1),
    ],
)  # fmt: skip
def test_a_text_costs_its_segments(text, cost):
    assert segments(text) == cost


def items(*contents):
    return [ChatItem("user" if place % 2 == 0 else "agent", content) for place, content in enumerate(contents)]


def test_a_short_history_is_shown_whole():
    history = items("rules", "ok", "question")
    assert trimmed(history) == history


def test_the_message_that_reaches_the_budget_is_left_out_and_a_user_s_after_it_too():
    # 1 + 2 + 1 + 1 + 3495 = 3500: the first reply is left out, and the question that is then the oldest with it.
    history = items("rules", "." * 3495, "why", "so", "question")
    shown = trimmed(history)
    assert [item.content for item in shown] == [
        "rules\n\n[NOTICE] 2 messages are omitted.",
        "so",
        "question",
    ]
    assert history[0].content == "rules", "the stored history stays as it is"


def test_one_segment_less_keeps_it():
    assert len(trimmed(items("rules", "." * 3494, "why", "so", "question"))) == 5


def test_a_last_message_that_is_too_long_leaves_the_first_alone():
    assert [item.content for item in trimmed(items("rules", "ok", "." * 4000))] == [
        "rules\n\n[NOTICE] 2 messages are omitted."
    ]


def test_an_even_history_is_the_task_s_mistake():
    made, _ = session("never")
    made.inject(items("rules", "ok"))
    with pytest.raises(AssertionError, match="2 messages"):
        run(made.action())


def test_what_is_injected_may_be_an_item_an_object_or_a_list():
    made, shown = session("hello")
    made.inject({"role": "user", "content": "rules"})
    made.inject([ChatItem("agent", "ok"), {"role": "user", "content": "go"}])
    output = run(made.action())
    assert (output.status, output.content) == (AgentOutputStatus.NORMAL, "hello")
    assert shown == [[("user", "rules"), ("agent", "ok"), ("user", "go")]]
    assert made.history[-1] == ChatItem("agent", "hello")


def test_a_task_may_edit_and_replace_the_history():
    made, shown = session("a", "b")
    run(made.action({"role": "user", "content": "one"}))
    made.history[0].content = "two"
    made.history = [made.history[0]]
    run(made.action())
    assert shown[1] == [("user", "two")]
    made.clear()
    assert made.history == []


def test_an_empty_reply_is_kept_as_the_word_normal():
    made, _ = session("")
    output = run(made.action({"role": "user", "content": "go"}))
    assert (output.status, output.content) == (AgentOutputStatus.NORMAL, "")
    assert made.history[-1].content == "normal"


def test_a_context_limit_is_a_status_and_the_sample_may_go_on():
    made, _ = session(CandidateError("ContextLimit", "too long"), "again")
    output = run(made.action({"role": "user", "content": "go"}))
    assert output.status is AgentOutputStatus.AGENT_CONTEXT_LIMIT
    assert made.history[-1].content == "agent context limit"
    assert run(made.action({"role": "user", "content": "go on"})).content == "again"


@pytest.mark.parametrize(
    "error", [CandidateError("TimeLimit", "too slow"), EnvironmentFailure("BudgetSpent", "no money left")]
)
def test_a_turn_that_does_not_come_is_cancelled_and_so_are_all_that_follow(error):
    made, shown = session(error, "never")
    outputs = [run(made.action({"role": "user", "content": "go"})) for _ in range(2)]
    assert [output.status for output in outputs] == [AgentOutputStatus.CANCELLED] * 2
    assert made.cause is error
    assert made.was_told
    assert len(shown) == 1


def test_a_reply_that_is_no_text_is_the_agent_s_doing():
    made, _ = session("\ud800")
    assert run(made.action({"role": "user", "content": "go"})).status is AgentOutputStatus.CANCELLED
    assert (type(made.cause), made.cause.reason) == (CandidateError, "Protocol")


def test_cancelling_ends_the_turn_that_is_waited_for():
    async def scenario():
        asked = asyncio.Event()

        async def ask(_):
            asked.set()
            await asyncio.Event().wait()

        made = Session(ask)
        turn = asyncio.ensure_future(made.action({"role": "user", "content": "go"}))
        await asked.wait()
        made.cancel(CandidateError("TimeLimit", "over"))
        return await turn

    assert run(scenario()).status is AgentOutputStatus.CANCELLED


def test_what_is_raised_while_acting_for_the_agent_is_held_against_it():
    made, _ = session()
    with pytest.raises(CandidateError, match="SandboxKilled: ValueError: broken"), made.acting("SandboxKilled"):
        raise ValueError("broken")
    with pytest.raises(EnvironmentFailure), made.acting():
        raise EnvironmentFailure("EnvironmentFailed", "as it is")
