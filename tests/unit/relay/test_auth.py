from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from casewarden.api.names import case_pod_name
from casewarden.core.model import AttemptKey, CaseKey
from casewarden.relay.auth import (
    Authenticator,
    Identity,
    PodFacts,
    ReviewUnavailable,
    StaticReviewer,
    _Remembered,
    check_attempt,
    pod_facts,
)
from casewarden.relay.refusal import Refusal
from casewarden.relay.reviewer import identity_of

KEY = AttemptKey(CaseKey(17, "a", 0), 1)
OPERATOR = "system:serviceaccount:casewarden-system:casewarden-operator"


@dataclass
class Counting(StaticReviewer):
    """Counts what is asked, and can be away."""

    asked: list[str] = field(default_factory=list)
    away: bool = False

    async def review(self, token: str) -> Identity | None:
        self.asked.append("review")
        if self.away:
            raise ReviewUnavailable("no connection")
        return await super().review(token)

    async def pod(self, namespace: str, name: str) -> PodFacts | None:
        self.asked.append("pod")
        if self.away:
            raise ReviewUnavailable("no connection")
        return await super().pod(namespace, name)


class Time:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def reviewer() -> Counting:
    made = Counting()
    made.admit_pod("pod-token", "evals", "run", "run-1", KEY, "pod-1")
    made.tokens["operator"] = Identity(OPERATOR)
    return made


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def auth(reviewer: Counting, time: Time) -> Authenticator:
    return Authenticator(reviewer, operator_user=OPERATOR, monotonic=time)


async def refusal_of(awaitable: Any) -> tuple[int, str]:
    with pytest.raises(Refusal) as caught:
        await awaitable
    return caught.value.status, caught.value.reason


async def test_answers_are_remembered_for_a_minute(auth: Authenticator, reviewer: Counting, time: Time) -> None:
    for _ in range(5):
        await auth.require_attempt(await auth.identify("Bearer pod-token"), "run-1", KEY)
    assert reviewer.asked == ["review", "pod"]

    time.now += 61
    await auth.require_attempt(await auth.identify("Bearer pod-token"), "run-1", KEY)
    assert reviewer.asked == ["review", "pod", "review", "pod"]


async def test_a_revoked_token_is_refused_after_a_minute(auth: Authenticator, reviewer: Counting, time: Time) -> None:
    await auth.identify("Bearer operator")
    del reviewer.tokens["operator"]
    await auth.identify("Bearer operator")

    time.now += 61
    assert await refusal_of(auth.identify("Bearer operator")) == (401, "BadToken")


async def test_a_bad_token_is_not_asked_about_again_at_once(
    auth: Authenticator, reviewer: Counting, time: Time
) -> None:
    for _ in range(50):
        assert await refusal_of(auth.identify("Bearer junk")) == (401, "BadToken")
    assert len(reviewer.asked) == 1

    time.now += 6
    await refusal_of(auth.identify("Bearer junk"))
    assert len(reviewer.asked) == 2


async def test_an_api_server_that_is_away_is_503_and_not_a_verdict_about_the_token(
    auth: Authenticator, reviewer: Counting
) -> None:
    reviewer.away = True
    assert await refusal_of(auth.identify("Bearer operator")) == (503, "ReviewUnavailable")
    reviewer.away = False
    assert auth.is_operator(await auth.identify("Bearer operator"))


@pytest.mark.parametrize(
    "header", [None, "", "Bearer", "Bearer ", "Basic operator", "operator", "Bearer " + "x" * 20_000]
)
async def test_what_is_no_bearer_token_is_never_sent_anywhere(
    auth: Authenticator, reviewer: Counting, header: str | None
) -> None:
    assert await refusal_of(auth.identify(header)) == (401, "NoToken")
    assert reviewer.asked == []


@pytest.mark.parametrize(
    ("username", "namespace"),
    [
        ("system:serviceaccount:evals:casewarden-reader", "evals"),
        ("system:serviceaccount:evals:default", None),
        ("system:serviceaccount:evals:casewarden-reader:x", None),
        ("casewarden-reader", None),
        ("x:system:serviceaccount:evals:casewarden-reader", None),
    ],
)
def test_only_the_readers_account_of_a_namespace_is_its_reader(username: str, namespace: str | None) -> None:
    assert Identity(username).reader_of == namespace


def test_memory_of_answers_is_bounded() -> None:
    remembered: _Remembered[int] = _Remembered(lambda: 0.0, 60.0, size=100)
    for number in range(1000):
        remembered.put(str(number), number)

    assert remembered.get("999") == 999
    assert remembered.get("0") is None
    assert len(remembered._answers) == 100


GOOD = PodFacts("evals", "", "pod-1", "run-1", "case", "EvalRun", "run", "run-1")


def named(**changes: str) -> PodFacts:
    return replace(GOOD, **{"name": case_pod_name("run", "run-1", 17, "a", 0, 1), **changes})


def test_the_pod_of_an_attempt_is_known_by_label_owner_and_name() -> None:
    assert check_attempt(named(), "run-1", KEY) is None


@pytest.mark.parametrize(
    "changes",
    [
        {"run_uid": "run-2"},
        {"run_uid": ""},
        {"role": "plan"},
        {"role": ""},
        {"owner_kind": ""},
        {"owner_kind": "AuditRun"},
        {"owner_uid": "run-2"},
        {"owner_name": "another"},
        {"name": "run-0000000000-1"},
    ],
)
def test_a_pod_that_differs_in_one_of_them_is_not(changes: dict[str, str]) -> None:
    assert check_attempt(named(**changes), "run-1", KEY) is not None


@pytest.mark.parametrize(
    "key",
    [
        AttemptKey(CaseKey(18, "a", 0), 1),
        AttemptKey(CaseKey(17, "b", 0), 1),
        AttemptKey(CaseKey(17, "a", 1), 1),
        AttemptKey(CaseKey(17, "a", 0), 2),
    ],
)
def test_a_pod_is_of_one_attempt_only(key: AttemptKey) -> None:
    assert check_attempt(named(), "run-1", key) is not None


OWNER = {"apiVersion": "casewarden.dev/v1alpha1", "kind": "EvalRun", "name": "run", "uid": "run-1", "controller": True}


@pytest.mark.parametrize(
    ("owners", "kind"),
    [
        ([OWNER], "EvalRun"),
        ([{**OWNER, "controller": False}], ""),
        ([{**OWNER, "apiVersion": "casewarden.dev.evil/v1"}], ""),
        ([{**OWNER, "apiVersion": "batch/v1"}], ""),
        ([OWNER, {**OWNER, "uid": "run-2"}], ""),
        ([], ""),
        (None, ""),
    ],
)
def test_only_one_controlling_run_is_an_owner(owners: Any, kind: str) -> None:
    assert pod_facts({"metadata": {"name": "p", "ownerReferences": owners}}).owner_kind == kind


def test_a_pod_without_metadata_has_empty_facts() -> None:
    assert pod_facts({}) == PodFacts("", "", "", "", "", "", "", "")


def review(**status: Any) -> dict[str, Any]:
    user = {
        "username": "system:serviceaccount:evals:default",
        "extra": {"authentication.kubernetes.io/pod-name": ["p"], "authentication.kubernetes.io/pod-uid": ["u"]},
    }
    return {"status": {"authenticated": True, "audiences": ["casewarden-relay"], "user": user, **status}}


def test_a_review_names_the_user_and_its_pod() -> None:
    found = identity_of(review(), "casewarden-relay")
    assert found == Identity("system:serviceaccount:evals:default", "p", "u")


@pytest.mark.parametrize(
    "status",
    [
        {"authenticated": False},
        {"audiences": []},
        {"audiences": None},
        {"audiences": ["https://kubernetes.default.svc"]},
    ],
)
def test_a_review_that_is_not_for_the_relays_audience_is_nobody(status: dict[str, Any]) -> None:
    assert identity_of(review(**status), "casewarden-relay") is None


def test_a_review_without_a_status_is_nobody() -> None:
    assert identity_of({}, "casewarden-relay") is None
