"""Users hear of what changed, once, and of nothing else."""

from __future__ import annotations

from typing import Any

from casewarden.controller.events import Announcement, Announcer, announcements
from casewarden.ports.clock import ManualClock
from casewarden.ports.kube import EVENTS, Forbidden
from casewarden.ports.memory_kube import MemoryKube


def status(**conditions: tuple[str, str]) -> dict[str, Any]:
    return {
        "conditions": [
            {"type": type_, "status": status_, "reason": reason, "message": f"{reason}!"}
            for type_, (status_, reason) in conditions.items()
        ]
    }


def told(old: dict[str, Any], new: dict[str, Any]) -> list[tuple[str, str]]:
    return [(item.type, item.reason) for item in announcements(old, new)]


def test_the_course_of_a_run_is_told_once() -> None:
    planning = status(Accepted=("True", "Accepted"), Planned=("Unknown", "Planning"), Finished=("False", "Planning"))
    running = status(Accepted=("True", "Accepted"), Planned=("True", "Planned"), Finished=("False", "Running"))
    over = status(Planned=("True", "Planned"), Finished=("True", "Completed"), Complete=("True", "Completed"))
    assert told({}, planning) == []
    assert told(planning, running) == [("Normal", "Planned")]
    assert told(running, running) == []
    assert told(running, over) == [("Normal", "Completed")]


def test_failures_and_waits_are_warnings() -> None:
    assert told({}, status(Accepted=("False", "NotYet"))) == [("Warning", "NotYet")]
    assert told({}, status(Failed=("True", "ImagePull"), Finished=("True", "ImagePull"))) == [("Warning", "ImagePull")]
    running = status(Finished=("False", "Running"))
    assert told(running, status(Finished=("False", "QuotaExceeded"))) == [("Warning", "QuotaExceeded")]


def test_suspending_and_resuming_are_told() -> None:
    free, suspended = status(Suspended=("False", "NotSuspended")), status(Suspended=("True", "Suspended"))
    assert told({}, free) == []
    assert told(free, suspended) == [("Normal", "Suspended")]
    assert told(suspended, free) == [("Normal", "Resumed")]


async def test_an_event_is_about_its_run_and_its_message_is_bounded() -> None:
    api = MemoryKube()
    announcer = Announcer(api, ManualClock())
    run = {"kind": "EvalRun", "apiVersion": "casewarden.dev/v1alpha1"}
    run["metadata"] = {"name": "one", "namespace": "evals", "uid": "u"}  # type: ignore[assignment]
    announcer.post(run, Announcement("Warning", "ImagePull", "x" * 5000))
    await announcer.close()
    (event,) = [item for (plural, _, _), item in api.objects.items() if plural == EVENTS.plural]
    assert event["involvedObject"]["uid"] == "u"
    assert (event["type"], event["reason"], len(event["message"])) == ("Warning", "ImagePull", 1000)


async def test_an_event_that_cannot_be_posted_hurts_nobody() -> None:
    api = MemoryKube()
    api.fail(Forbidden(403, "Forbidden", "no"))
    announcer = Announcer(api, ManualClock())
    announcer.post({"metadata": {"name": "one", "namespace": "evals", "uid": "u"}}, Announcement("Normal", "A", "b"))
    await announcer.close()
    assert not api.objects
