"""What a namespace needs once for all runs in it: the network's second fence, and the account of those who read.

Both belong to every run that uses them, so the last run to go takes them along.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from casewarden.api.names import LABEL_MANAGED_BY, MANAGER, READER_ACCOUNT
from casewarden.core.network import NetworkContext, Owner, Profile, network_policy
from casewarden.ports.kube import (
    NETWORK_POLICIES,
    SERVICE_ACCOUNTS,
    AlreadyExists,
    Conflict,
    Kind,
    KubeApi,
    Manifest,
    NotFound,
)

__all__ = ["bootstrap", "network_context", "reader_account"]

_TRIES = 8
_PROFILES: tuple[Profile, ...] = ("relay", "none")


def network_context(relay_url: str, dns: bool) -> NetworkContext:
    """Return where the relay's pods are, by the name of its service, ``casewarden-relay.casewarden-system.svc``.

    ``ValueError`` for an address that is not a service's: no policy could let pods out to it.
    """
    labels = (urlsplit(relay_url).hostname or "").split(".")
    if len(labels) < 2 or labels[-1].isdigit():
        raise ValueError(f"relayUrl is {relay_url!r}: give the relay's service, http://NAME.NAMESPACE.svc:PORT")
    return NetworkContext(relay_namespace=labels[1], dns=dns)


def reader_account(namespace: str) -> Manifest:
    """Return the account whose token, given out by RBAC, lets people read the evidence of a namespace's runs."""
    return {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": _meta(namespace, READER_ACCOUNT),
        "automountServiceAccountToken": False,
    }


async def bootstrap(api: KubeApi, namespace: str, owner: Owner, network: NetworkContext) -> None:
    """See that they are there and belong to the run too; ``Conflict`` where others change them without end."""
    for profile in _PROFILES:
        await _share(api, NETWORK_POLICIES, network_policy(profile, namespace, network), owner)
    await _share(api, SERVICE_ACCOUNTS, reader_account(namespace), owner)


async def _share(api: KubeApi, kind: Kind, body: Manifest, owner: Owner) -> None:
    namespace, name = body["metadata"]["namespace"], body["metadata"]["name"]
    shared = owner.reference(controller=False)
    body["metadata"]["ownerReferences"] = [shared]
    wanted: Manifest = {key: value for key, value in body.items() if key in ("spec", "automountServiceAccountToken")}
    for _ in range(_TRIES):
        try:
            found = await api.get(kind, namespace, name)
        except NotFound:
            try:
                await api.create(kind, namespace, body)
            except AlreadyExists:
                continue
            return
        meta = found["metadata"]
        owners = meta.get("ownerReferences") or []
        if any(item["uid"] == owner.uid for item in owners) and _has(found, wanted):
            return
        owners = [item for item in owners if item["uid"] != owner.uid] + [shared]
        patch = {
            "metadata": {"resourceVersion": meta["resourceVersion"], "ownerReferences": owners, "labels": _labels()},
            **wanted,
        }
        try:
            await api.patch(kind, namespace, name, patch)
        except (Conflict, NotFound):
            continue
        return
    raise Conflict(409, "Conflict", f"{kind.plural} {namespace}/{name} is changed by somebody else all the time")


def _has(found: Manifest, wanted: Manifest) -> bool:
    return all(_filled(found.get(key)) == _filled(value) for key, value in wanted.items())


def _filled(value: Any) -> Any:
    """Leave out what is empty: the API server does not send it back."""
    return {key: item for key, item in value.items() if item} if isinstance(value, dict) else value


def _meta(namespace: str, name: str) -> Manifest:
    return {"name": name, "namespace": namespace, "labels": _labels()}


def _labels() -> dict[str, str]:
    return {LABEL_MANAGED_BY: MANAGER}
