"""What the API server's many ways of saying Forbidden mean."""

from __future__ import annotations

import pytest

from casewarden.core.model import FinishRun, SetWait
from casewarden.core.policies.refusals import judge_refusals

# As Kubernetes 1.34 words them.
QUOTA = (
    "Forbidden",
    'pods "kv-1" is forbidden: exceeded quota: small, requested: pods=1, used: pods=3, limited: pods=3',
)
LIMITS = ("Forbidden", 'pods "kv-1" is forbidden: maximum memory usage per Container is 64Mi, but limit is 352Mi')
SECURITY = ("Forbidden", 'pods "kv-1" is forbidden: violates PodSecurity "restricted:latest"')
ENDING = (
    "Forbidden",
    'pods "kv-1" is forbidden: unable to create new content in namespace evals because it is being terminated',
)
CAUSE = ("NamespaceTerminating", "namespace evals is being terminated")
NO_NAMESPACE = ("NotFound", 'namespaces "evals" not found')


@pytest.mark.parametrize("refusal", [LIMITS, SECURITY], ids=["LimitRange", "Pod Security"])
def test_a_pod_that_will_never_be_accepted_fails_the_run_in_the_servers_words(refusal):
    found = judge_refusals([refusal], 100.0)
    assert isinstance(found, FinishRun)
    assert (found.complete, found.reason) == (False, "Refused")
    assert refusal[1] in found.message


@pytest.mark.parametrize("refusal", [ENDING, CAUSE, NO_NAMESPACE])
def test_a_namespace_that_goes_takes_the_run_along(refusal):
    found = judge_refusals([QUOTA, SECURITY, refusal], 100.0)
    assert isinstance(found, FinishRun)
    assert found.reason == "NamespaceTerminating"


def test_a_full_quota_is_waited_for():
    assert judge_refusals([QUOTA], 100.0) == SetWait("QuotaExceeded", QUOTA[1], 105.0)


def test_the_gravest_of_several_counts():
    found = judge_refusals([QUOTA, SECURITY], 100.0)
    assert isinstance(found, FinishRun)


def test_without_refusals_there_is_nothing_to_say():
    assert judge_refusals([], 100.0) is None
