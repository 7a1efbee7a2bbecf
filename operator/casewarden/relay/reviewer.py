"""Asking the API server who a token is and what a pod is."""

from __future__ import annotations

from typing import Any

from casewarden.api.names import AUDIENCE
from casewarden.ports.kube import AUDIT_RUNS, EVAL_RUNS, PODS, Kind, KubeApi, KubeError, NotFound, list_all
from casewarden.relay.auth import Identity, PodFacts, ReviewUnavailable, pod_facts

__all__ = ["KubeReviewer", "identity_of"]

_TOKEN_REVIEWS = Kind("authentication.k8s.io/v1", "tokenreviews", "TokenReview")
_POD_NAME = "authentication.kubernetes.io/pod-name"
_POD_UID = "authentication.kubernetes.io/pod-uid"


def identity_of(review: dict[str, Any], audience: str) -> Identity | None:
    """Read a TokenReview's answer; None unless it is authenticated for that very audience."""
    status = review.get("status") or {}
    # A server that does not know about audiences answers without them: that is not good enough.
    if not status.get("authenticated") or audience not in (status.get("audiences") or []):
        return None
    user = status.get("user") or {}
    extra = user.get("extra") or {}
    return Identity(
        username=str(user.get("username", "")),
        pod_name=next(iter(extra.get(_POD_NAME) or []), None),
        pod_uid=next(iter(extra.get(_POD_UID) or []), None),
    )


class KubeReviewer:
    """A ``Reviewer`` over the API server; needs ``create tokenreviews`` and ``get pods``."""

    def __init__(self, api: KubeApi, audience: str = AUDIENCE) -> None:
        self._api = api
        self._audience = audience

    async def review(self, token: str) -> Identity | None:
        """Make a TokenReview for the relay's audience."""
        body = {
            "apiVersion": _TOKEN_REVIEWS.api_version,
            "kind": _TOKEN_REVIEWS.name,
            "spec": {"token": token, "audiences": [self._audience]},
        }
        try:
            return identity_of(await self._api.create(_TOKEN_REVIEWS, "", body), self._audience)
        except KubeError as error:
            raise ReviewUnavailable(str(error)) from error

    async def pod(self, namespace: str, name: str) -> PodFacts | None:
        """Read the pod."""
        try:
            return pod_facts(await self._api.get(PODS, namespace, name))
        except NotFound:
            return None
        except KubeError as error:
            raise ReviewUnavailable(str(error)) from error

    async def run_uids(self) -> set[str]:
        """Return the UIDs of all EvalRuns and AuditRuns there are; needs ``list`` on both."""
        try:
            found = [*await list_all(self._api, EVAL_RUNS, None), *await list_all(self._api, AUDIT_RUNS, None)]
            return {run["metadata"]["uid"] for run in found}
        except KubeError as error:
            raise ReviewUnavailable(str(error)) from error
