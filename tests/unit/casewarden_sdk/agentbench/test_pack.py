import asyncio

import pytest
from support.agentbench_tasks import COUNTS, PACK, SAYS_SEVEN, Lengths, LengthsPack

from casewarden_sdk.agentbench import SampleStatus, Session, TaskSampleExecutionResult
from casewarden_sdk.agentbench.pack import _Conversation, case_id_of
from casewarden_sdk.errors import CandidateError, ContractError, EnvironmentFailure
from casewarden_sdk.plan import build_plan
from casewarden_sdk.testing import play


def of(start_sample, **attributes):
    """A pack of one sample that is played so."""
    task = type("Odd", (Lengths,), {"get_indices": lambda self: [0], "start_sample": start_sample})
    return type("OddPack", (LengthsPack,), {"make": task, **attributes})()


def played(pack, program=COUNTS):
    return play(pack, pack.cases(0, {})[0], {"main.py": program})


def ask(session):
    return session.action({"role": "user", "content": "one"})


def test_a_plan_has_a_case_per_index():
    plan = build_plan(PACK, [0], {})
    assert [case["id"] for case in plan["cases"]] == ["0", "1", case_id_of("2")]
    assert plan["aggregation"] == "agentbench/v1"


def test_a_data_set_has_the_one_seed_0():
    with pytest.raises(ContractError, match="one seed 0"):
        PACK.cases(17, {})


def test_indices_that_differ_have_ids_that_differ():
    indices = [7, "7", -7, "-7", "std-001-stock-00000", "a b", "a-b", "", "a/b"]
    assert len({case_id_of(index) for index in indices}) == len(indices)
    assert case_id_of(7) == "7"
    assert case_id_of("std-001-stock-00000") == "std-001-stock-00000"
    with pytest.raises(ContractError):
        case_id_of(True)


def test_a_sample_is_played_and_graded():
    result = played(PACK)
    assert result.verdict.passed
    assert result.record["output"]["history"] == [
        {"role": "user", "content": "one"},
        {"role": "agent", "content": "3"},
    ]
    assert played(PACK, SAYS_SEVEN).verdict.status == "failed"


def test_the_score_is_what_the_task_makes_of_real_outputs():
    rows = [
        {"seed": 0, "repeat": 0, "params": {}, "status": "passed", "index": index,
         "output": {"index": index, "status": "completed", "result": {"answer": "3", "gold": gold}, "history": []}}
        for index, gold in ((0, "3"), (1, "5"), ("2", "3"))
    ]  # fmt: skip
    made = PACK.aggregate(rows)
    assert made["score"] == "0.66666667"
    assert made["overall"]["custom"]["indices"] == [0, 1, "2"]
    assert made["overall"]["total"] == 3
    assert made["overall"]["validation"]["completed"] == 1.0


def test_each_repeat_is_a_pass_over_the_samples_and_the_score_is_their_mean():
    rows = [
        {"seed": 0, "repeat": repeat, "params": {}, "status": "passed", "index": 0,
         "output": {"index": 0, "status": "completed", "result": {"answer": "3", "gold": gold}, "history": []}}
        for repeat, gold in enumerate("34")
    ]  # fmt: skip
    assert PACK.aggregate(rows)["score"] == "0.5"


def test_a_case_that_the_agent_broke_counts_without_a_result():
    rows = [{"seed": 0, "repeat": 0, "params": {}, "status": "agent_error", "index": "2", "output": None}]
    made = PACK.aggregate(rows)
    assert (made["score"], made["overall"]["custom"]["indices"]) == ("0", ["2"])


STATUSES = [
    ("completed", True, "passed", None),
    ("completed", False, "failed", None),
    ("task limit reached", True, "passed", None),
    ("task limit reached", False, "failed", None),
    ("agent context limit", False, "agent_error", "ContextLimit"),
    ("agent validation failed", False, "agent_error", "Protocol"),
    ("agent validation failed", True, "passed", None),
    ("agent invalid action", False, "agent_error", "Protocol"),
    ("unknown", True, "agent_error", "Protocol"),
    ("task error", True, "environment_error", "TaskFailed"),
    ("running", True, "environment_error", "TaskFailed"),
]


@pytest.mark.parametrize(("status", "right", "verdict", "reason"), STATUSES)
def test_a_returned_status_after_the_agent_has_spoken(status, right, verdict, reason):
    async def start_sample(self, index, session):
        await ask(session)
        return TaskSampleExecutionResult(SampleStatus(status), {"answer": "a", "gold": "a" if right else "b"})

    made = played(of(start_sample)).verdict
    assert (made.status, made.reason) == (verdict, reason)


def test_unknown_before_the_agent_has_spoken_is_the_environment_s():
    async def start_sample(self, index, session):
        return TaskSampleExecutionResult(SampleStatus.UNKNOWN, {"result": False})

    made = played(of(start_sample)).verdict
    assert (made.status, made.reason) == ("environment_error", "EnvironmentFailed")


def raising(error, before=False):
    async def start_sample(self, index, session):
        if not before:
            await ask(session)
        raise error

    return start_sample


@pytest.mark.parametrize(
    ("error", "before", "blames", "status", "reason"),
    [
        (KeyError("a bug"), True, False, "environment_error", "TaskFailed"),
        (KeyError("a bug"), False, False, "environment_error", "TaskFailed"),
        (KeyError("provoked"), False, True, "agent_error", "Protocol"),
        (KeyError("a bug"), True, True, "environment_error", "TaskFailed"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), False, False, "agent_error", "Protocol"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), True, False, "environment_error", "TaskFailed"),
        (CandidateError("SandboxKilled", "gone"), False, False, "agent_error", "SandboxKilled"),
        (EnvironmentFailure("EnvironmentFailed", "gone"), False, True, "environment_error", "EnvironmentFailed"),
    ],
)
def test_what_a_task_raises_is_blamed_by_cause(error, before, blames, status, reason):
    result = played(of(raising(error, before), blames_agent=blames))
    assert (result.verdict.status, result.verdict.reason) == (status, reason)
    assert result.record["ended"] == "raised"


@pytest.mark.parametrize("returned", ["ok", None, TaskSampleExecutionResult(SampleStatus.COMPLETED, float("nan"))])
def test_a_result_that_is_none_is_the_task_s_failure(returned):
    async def start_sample(self, index, session):
        await ask(session)
        return returned

    made = played(of(start_sample)).verdict
    assert (made.status, made.reason) == ("environment_error", "TaskFailed")


def test_an_agent_that_breaks_is_told_as_cancelled_and_its_transcript_is_kept():
    seen = []

    async def start_sample(self, index, session):
        output = await ask(session)
        seen.append(output.status.value)
        return TaskSampleExecutionResult(SampleStatus.UNKNOWN, None)

    result = played(of(start_sample), "")
    assert seen == ["cancelled"]
    assert (result.verdict.status, result.verdict.reason) == ("agent_error", "Exited")
    assert [item["content"] for item in result.record["output"]["history"]] == ["one", "cancelled"]
    assert (result.record["told"], result.record["ended"]) == (True, "returned")


def test_a_sample_that_does_not_end_once_cancelled_is_ended_by_force_and_recorded_so():
    async def start_sample(self, index, session):
        await ask(session)
        await asyncio.Event().wait()

    result = played(of(start_sample), "")
    assert (result.record["told"], result.record["ended"]) == (True, "forced")
    assert result.verdict.reason == "Exited"


def test_a_task_that_asks_on_and_on_after_it_was_cancelled_is_ended_too():
    async def start_sample(self, index, session):
        while True:
            await ask(session)
            session.clear()

    assert played(of(start_sample), "").record["ended"] == "forced"


def test_a_task_that_never_asks_is_not_the_agent_s_fault():
    async def start_sample(self, index, session):
        await asyncio.Event().wait()

    result = played(of(start_sample, setup_seconds=0.05))
    assert (result.verdict.status, result.verdict.reason) == ("environment_error", "TaskFailed")


def test_what_a_pack_says_of_its_files_is_found_wherever_it_is_installed():
    assert all("/" in source for source in PACK.sources)
    assert build_plan(PACK, [0], {})["fingerprints"]["grader"]


def test_a_task_that_asks_a_judge_between_turns_is_not_held_to_the_time_of_the_agent():
    class Chat:
        async def action(self, messages):
            return {"content": "hm"}

    class Runtime:
        limits = PACK.limits

        async def chat(self):
            return Chat()

    async def deadlines():
        conversation = _Conversation(Runtime())
        conversation.watch(Session(conversation.ask), 300)
        await conversation.ask([])
        first = conversation._timer.when()
        await asyncio.sleep(0.01)
        await conversation.ask([])
        later = conversation._timer.when()
        conversation._timer.cancel()
        return first, later

    first, later = asyncio.run(deadlines())
    assert later > first
