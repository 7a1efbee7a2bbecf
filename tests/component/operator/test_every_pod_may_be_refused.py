"""Every kind of pod that the operator makes may be refused: the run ends, or waits, and says why.

By role: the plan's, the cases', the pod of a score of the task's own, the pod that grades again.
"""

from __future__ import annotations

import pytest
from support.agentbench_tasks import PACK
from support.stage import Stage, a_run, a_stage

ROLES = ("plan", "case", "aggregate", "grade")
REFUSALS = (
    'pods "x" is forbidden: violates PodSecurity "restricted:latest": seccompProfile',
    'pods "x" is forbidden: maximum cpu usage per Container is 10m, but limit is 1',
)
QUOTA = 'pods "x" is forbidden: exceeded quota: small, requested: pods=1, used: pods=2, limited: pods=2'


async def played(stage: Stage, role: str) -> str:
    """Apply what makes a pod of that role come, with a patience of a second, and return the run's name."""
    limits = {"pendingSeconds": 1}
    if role == "aggregate":
        stage.kubelet.pack = PACK
        stage.apply(a_run(seeds={"values": [0]}, limits=limits))
        return "one"
    stage.apply(a_run(limits=limits))
    if role != "grade":
        return "one"
    await stage.finished()
    stage.apply(a_run("again", limits=limits, regradeOf={"evalRun": "one"}))
    return "again"


@pytest.mark.parametrize("message", REFUSALS)
@pytest.mark.parametrize("role", ROLES)
async def test_a_pod_that_is_refused_for_good_ends_the_run_in_the_servers_words(role: str, message: str) -> None:
    async with a_stage(cases=1) as stage, stage.operator():
        stage.api.refused_roles[role] = message
        name = await played(stage, role)
        status = await stage.finished(name)
        failed = stage.condition("Failed", name)
        assert (failed["status"], failed["reason"]) == ("True", "Refused")
        assert message in failed["message"]
        assert "score" not in status


@pytest.mark.parametrize("role", ROLES)
async def test_a_quota_that_is_spent_is_waited_for_with_its_reason(role: str) -> None:
    async with a_stage(cases=1) as stage, stage.operator():
        stage.api.refused_roles[role] = QUOTA
        name = await played(stage, role)
        await stage.until(lambda: stage.condition("Finished", name)["reason"] == "QuotaExceeded", what="the reason")
        stage.api.refused_roles.clear()
        assert (await stage.finished(name, seconds=40))["score"] == "1"


async def test_a_quota_that_leaves_no_room_for_the_tasks_own_score_is_given_up() -> None:
    async with a_stage(cases=1) as stage, stage.operator():
        stage.api.refused_roles["aggregate"] = QUOTA
        await played(stage, "aggregate")
        status = await stage.finished(seconds=40)
        failed = stage.condition("Failed")
        assert (failed["status"], failed["reason"]) == ("True", "AggregateFailed")
        assert "exceeded quota" in failed["message"]
        assert "score" not in status
