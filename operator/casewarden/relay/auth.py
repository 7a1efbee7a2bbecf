"""Who is calling, and what of it is theirs.

A caller is the operator (by its user name), a reader (``casewarden-reader`` of a namespace) or a pod: then the pod is
read from the cluster, and its run, owner and name must be those of the attempt that the call is about. All of it is
remembered for a minute; what a stale answer could do is bounded by the store, where the first seal counts.
"""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from casewarden.api.names import GROUP, LABEL_ROLE, LABEL_RUN_UID, READER_ACCOUNT, case_pod_name
from casewarden.core.model import AttemptKey
from casewarden.relay.refusal import Refusal

__all__ = [
    "Authenticator",
    "Identity",
    "PodFacts",
    "ReviewUnavailable",
    "Reviewer",
    "StaticReviewer",
    "check_attempt",
    "pod_facts",
]

_ACCOUNT = re.compile(r"system:serviceaccount:([a-z0-9-]{1,63}):([a-z0-9.-]{1,253})")
_MAX_TOKEN = 16_384
_T = TypeVar("_T")


class ReviewUnavailable(Exception):
    """The API server cannot be asked now."""


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a token is: its user name and, for a token bound to a pod, that pod."""

    username: str
    pod_name: str | None = None
    pod_uid: str | None = None

    @property
    def account(self) -> tuple[str, str] | None:
        """Namespace and name of the service account, None for any other user."""
        match = _ACCOUNT.fullmatch(self.username)
        return (match[1], match[2]) if match else None

    @property
    def reader_of(self) -> str | None:
        """The namespace whose runs this caller may read, None for no reader."""
        account = self.account
        return account[0] if account and account[1] == READER_ACCOUNT else None


@dataclass(frozen=True, slots=True)
class PodFacts:
    """What of a pod decides: who it is, which run it says it belongs to, and which run owns it."""

    namespace: str
    name: str
    uid: str
    run_uid: str
    role: str
    owner_kind: str
    owner_name: str
    owner_uid: str


def pod_facts(pod: Mapping[str, Any]) -> PodFacts:
    """Read the facts from a pod as the API server gives it; missing ones are empty."""
    meta = pod.get("metadata") or {}
    labels = meta.get("labels") or {}
    owners = [owner for owner in meta.get("ownerReferences") or [] if owner.get("controller")]
    owner = owners[0] if len(owners) == 1 else {}
    ours = str(owner.get("apiVersion", "")).startswith(f"{GROUP}/")
    return PodFacts(
        namespace=meta.get("namespace", ""),
        name=meta.get("name", ""),
        uid=meta.get("uid", ""),
        run_uid=labels.get(LABEL_RUN_UID, ""),
        role=labels.get(LABEL_ROLE, ""),
        owner_kind=owner.get("kind", "") if ours else "",
        owner_name=owner.get("name", ""),
        owner_uid=owner.get("uid", ""),
    )


class Reviewer(Protocol):
    """What the relay asks of the cluster. Both raise ``ReviewUnavailable`` when it cannot be asked."""

    async def review(self, token: str) -> Identity | None:
        """Return whose token this is for the relay's audience; None for a token that is not good."""

    async def pod(self, namespace: str, name: str) -> PodFacts | None:
        """Return the pod, None when there is none."""


@dataclass
class StaticReviewer:
    """A fake that ships, and what runs without a cluster use: tokens and pods from two dictionaries."""

    tokens: dict[str, Identity] = field(default_factory=dict)
    pods: dict[tuple[str, str], PodFacts] = field(default_factory=dict)

    async def review(self, token: str) -> Identity | None:
        """Look the token up."""
        return self.tokens.get(token)

    async def pod(self, namespace: str, name: str) -> PodFacts | None:
        """Look the pod up."""
        return self.pods.get((namespace, name))

    def admit_pod(self, token: str, namespace: str, run: str, run_uid: str, key: AttemptKey, pod_uid: str) -> PodFacts:
        """Let ``token`` act as the pod of an attempt, as the operator would have made it."""
        name = case_pod_name(run, run_uid, key.case.seed, key.case.case_id, key.case.repeat, key.attempt)
        facts = PodFacts(namespace, name, pod_uid, run_uid, "case", "EvalRun", run, run_uid)
        self.tokens[token] = Identity(f"system:serviceaccount:{namespace}:default", name, pod_uid)
        self.pods[namespace, name] = facts
        return facts


def check_attempt(facts: PodFacts, run_uid: str, key: AttemptKey) -> str | None:
    """Say why the pod is not the one of that attempt of that run, or None when it is."""
    if facts.role != "case" or facts.run_uid != run_uid:
        return f"pod {facts.name} is no case pod of run {run_uid}"
    if (facts.owner_kind, facts.owner_uid) != ("EvalRun", run_uid):
        return f"pod {facts.name} is not owned by run {run_uid}"
    case = key.case
    if facts.name != case_pod_name(facts.owner_name, run_uid, case.seed, case.case_id, case.repeat, key.attempt):
        return f"pod {facts.name} is not the pod of attempt {key}"
    return None


class Authenticator:
    """Turns a request's token into who may do what; every refusal is a ``Refusal`` of 401, 403 or 503."""

    def __init__(
        self, reviewer: Reviewer, *, operator_user: str, monotonic: Callable[[], float], seconds: float = 60.0
    ) -> None:
        self._reviewer = reviewer
        self._operator_user = operator_user
        self._identities: _Remembered[Identity] = _Remembered(monotonic, seconds)
        self._strangers: _Remembered[bool] = _Remembered(monotonic, min(seconds, 5.0))
        self._pods: _Remembered[PodFacts] = _Remembered(monotonic, seconds)

    async def identify(self, authorization: str | None) -> Identity:
        """Return whose bearer token the ``Authorization`` header holds."""
        scheme, _, token = (authorization or "").partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token or len(token) > _MAX_TOKEN:
            raise Refusal(401, "NoToken", "give a bearer token of a service account in the header Authorization")
        digest = hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()
        known = self._identities.get(digest)
        if known is not None:
            return known
        identity = None if self._strangers.get(digest) else await _ask(self._reviewer.review(token))
        if identity is None:
            self._strangers.put(digest, True)
            raise Refusal(401, "BadToken", "the token is expired, revoked or made for another audience")
        self._identities.put(digest, identity)
        return identity

    def is_operator(self, identity: Identity) -> bool:
        """Tell whether this is the operator."""
        return identity.username == self._operator_user

    def require_operator(self, identity: Identity) -> None:
        """Refuse everybody but the operator."""
        if not self.is_operator(identity):
            raise Refusal(403, "NotYours", f"{identity.username} is not the operator")

    def require_namespace(self, identity: Identity, namespace: str) -> None:
        """Refuse everybody but the operator and the readers of that namespace."""
        if not self.is_operator(identity) and identity.reader_of != namespace:
            raise Refusal(
                403,
                "NotYours",
                f"{identity.username} may not read runs of namespace {namespace}; its {READER_ACCOUNT} may",
            )

    async def require_attempt(self, identity: Identity, run_uid: str, key: AttemptKey) -> PodFacts:
        """Return the calling pod if it is the one of that attempt."""
        facts = await self._calling_pod(identity)
        problem = check_attempt(facts, run_uid, key)
        if problem is not None:
            raise Refusal(403, "NotYours", problem)
        return facts

    async def require_case_pod_in(self, identity: Identity, namespace: str) -> PodFacts:
        """Return the calling pod if it is a case pod of some run in that namespace."""
        facts = await self._calling_pod(identity)
        if (
            facts.namespace != namespace
            or facts.role != "case"
            or (facts.owner_kind, facts.owner_uid) != ("EvalRun", facts.run_uid)
        ):
            raise Refusal(403, "NotYours", f"pod {facts.name} is no case pod of a run in namespace {namespace}")
        return facts

    async def _calling_pod(self, identity: Identity) -> PodFacts:
        account = identity.account
        if account is None or identity.pod_name is None or not identity.pod_uid:
            raise Refusal(403, "NotYours", f"{identity.username} called with a token that is bound to no pod")
        known = f"{account[0]}/{identity.pod_name}/{identity.pod_uid}"
        facts = self._pods.get(known)
        if facts is None:
            facts = await _ask(self._reviewer.pod(account[0], identity.pod_name))
            if facts is None or facts.uid != identity.pod_uid:
                raise Refusal(403, "PodGone", f"pod {identity.pod_name} of this token is gone")
            self._pods.put(known, facts)
        return facts


async def _ask(question: Awaitable[_T]) -> _T:
    try:
        return await question
    except ReviewUnavailable as error:
        raise Refusal(503, "ReviewUnavailable", f"the API server cannot be asked: {error}", retry_after=2) from error


class _Remembered(Generic[_T]):
    """Answers that are good for ``seconds``, the newest ten thousand of them."""

    def __init__(self, monotonic: Callable[[], float], seconds: float, size: int = 10_000) -> None:
        self._monotonic = monotonic
        self._seconds = seconds
        self._size = size
        self._answers: OrderedDict[str, tuple[float, _T]] = OrderedDict()

    def get(self, key: str) -> _T | None:
        until, answer = self._answers.get(key, (0.0, None))
        if answer is None or self._monotonic() >= until:
            self._answers.pop(key, None)
            return None
        return answer

    def put(self, key: str, answer: _T) -> None:
        self._answers[key] = (self._monotonic() + self._seconds, answer)
        self._answers.move_to_end(key)
        while len(self._answers) > self._size:
            self._answers.popitem(last=False)
