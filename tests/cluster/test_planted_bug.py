"""A pack with a bug planted in its grader, on a real cluster: its audit fails, and what depends on it waits."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support import planted_pack
from support.kubectl import FINISHED, Kubectl, condition, evalrun, message, reason
from support.offers import offering
from support.shipped_pack import command_of

PLANTED, MENDED = "planted", "mended"
RUN = {"seeds": {"values": [17]}, "candidate": {"control": "rude"}}


def audit(namespace: str, name: str, task: str, **params: Any) -> dict[str, Any]:
    """The manifest of an audit of the pack, or of its mended version."""
    return {
        "apiVersion": "casewarden.dev/v1alpha1",
        "kind": "AuditRun",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"task": {"name": task, "params": params}, "seeds": {"values": [17]}, "referenceRepeats": 1,
                 "parallelism": 12, "retries": {"environment": 1}, "graderMutants": True},
    }  # fmt: skip


@pytest.fixture(scope="module")
def tasks(kubectl: Kubectl) -> Iterator[None]:
    """The release with both versions of the pack."""
    planted, mended = b"\nPLANTED = True\n", b"\nPLANTED = False\n"

    def add(catalogue: dict[str, Any]) -> None:
        image = catalogue["tasks"]["durable-kv"]["image"]
        other = command_of(planted_pack, lambda source: source.replace(planted, mended))
        assert other != command_of(planted_pack)
        catalogue["tasks"][PLANTED] = {"image": image, "command": command_of(planted_pack)}
        catalogue["tasks"][MENDED] = {"image": image, "command": other}

    with offering(kubectl, add):
        yield


@pytest.fixture(scope="module")
def started(kubectl: Kubectl, module_namespace: str, tasks: None) -> str:
    """Audits of the pack as it is, and where nothing works; runs of both versions, two of which require an audit."""
    required = RUN | {"audit": {"policy": "Require"}}
    kubectl.apply(
        audit(module_namespace, "buggy", PLANTED),
        audit(module_namespace, "troubled", PLANTED, trouble=True),
        evalrun(module_namespace, "believed", task={"name": PLANTED}, **RUN),
        evalrun(module_namespace, "held", task={"name": PLANTED}, **required),
        evalrun(module_namespace, "waiting", task={"name": MENDED}, **required),
    )
    return module_namespace


def audited(kubectl: Kubectl, namespace: str, name: str) -> dict[str, Any]:
    """The status of a finished audit."""

    def finished() -> dict[str, Any] | None:
        status = kubectl.get("auditrun", namespace, name).get("status") or {}
        return status if condition(status, FINISHED) == "True" else None

    return kubectl.until(finished, 240, lambda: kubectl.picture(namespace))


def test_its_audit_fails_and_names_fault_and_dimension(kubectl: Kubectl, started: str) -> None:
    status = audited(kubectl, started, "buggy")
    assert (status["valid"], status["passed"], status["killed"]) == (True, False, "1/3")
    assert condition(status, "Passed") == "False"
    assert "rude: is not caught in manners" in message(status, "Passed")
    assert "breaks: is not caught in answer: it broke in 1 cases" in message(status, "Passed"), "it only crashes"
    (rude,) = (row for row in status["controls"] if row["name"] == "rude")
    assert (rude["killed"], rude["margin"], rude["target"]) == (False, 0, "manners")
    assert "graderMutants" not in status, "mutants of a grader that is wrong already show nothing"


def test_an_environment_that_never_works_makes_the_audit_invalid_and_never_passed(
    kubectl: Kubectl, started: str
) -> None:
    status = audited(kubectl, started, "troubled")
    assert status["valid"] is False
    assert not {"passed", "mutationScore", "killed"} & status.keys()
    assert condition(status, "Passed") == "Unknown"
    run = kubectl.status(started, next(row["evalRun"] for row in status["controls"] if row["name"] == "reference"))
    assert run["attempts"]["environmentRetries"] == 1, "it was tried again, which did not cure it"


def test_runs_that_require_an_audit_wait_and_say_what_the_nearest_one_lacks(kubectl: Kubectl, started: str) -> None:
    audited(kubectl, started, "buggy")

    def waits(name: str, why: str) -> Callable[[], bool]:
        def look() -> bool:
            status = kubectl.status(started, name)
            return reason(status, FINISHED) == "NotAudited" and why in message(status, FINISHED)

        return look

    kubectl.until(waits("held", "buggy: it did not pass"), 60, lambda: kubectl.picture(started))
    kubectl.until(waits("waiting", "it is of another grader"), 60, lambda: kubectl.picture(started))
    for name in ("held", "waiting"):
        assert kubectl.status(started, name)["attempts"]["total"] == 0


def test_one_starts_by_itself_when_the_mended_grader_has_passed_its_audit(kubectl: Kubectl, started: str) -> None:
    kubectl.apply(audit(started, "good", MENDED))
    status = audited(kubectl, started, "good")
    assert (status["passed"], status["killed"]) == (True, "2/2")
    assert status["graderMutants"] == {"total": 4, "noticed": 4, "unnoticed": []}
    waiting = kubectl.finished(started, "waiting")
    assert (waiting["score"], condition(waiting, "Audited"), waiting["floor"]["audit"]) == ("0.6", "True", "good")
    assert condition(kubectl.status(started, "held"), FINISHED) == "False", "another's audit does not vouch for it"


def test_records_graded_again_by_the_mended_version_tell_what_the_bug_hid(
    kubectl: Kubectl, started: str, casewarden: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    assert kubectl.finished(started, "believed")["score"] == "1", "the bug believes it"
    again = RUN | {"regradeOf": {"evalRun": "believed"}, "baseline": {"evalRun": "believed"}}
    kubectl.apply(evalrun(started, "told", task={"name": MENDED}, **again))
    status = kubectl.finished(started, "told")
    assert (status["score"], status["regrade"]["score"], status["regrade"]["changed"]) == ("0.6", "1", 1)
    change = {"case": "add", "seed": 17, "repeat": 0, "before": "passed", "after": "failed", "dimensions": ["manners"]}
    assert status["regrade"]["changes"] == [change]
    assert (status["regrade"]["task"], status["fingerprints"]["task"]) == ("planted@0.1.0", "planted@0.2.0")
    assert not kubectl.pods_of(started, "told"), "no candidate ran again"
    assert "it differs in task, grader" in status["baseline"]["problem"]
    done = casewarden("verify", "told", "-n", started)
    assert done.returncode == 0, done.stdout + done.stderr
