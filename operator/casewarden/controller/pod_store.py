"""The pods of all runs as slim records, told to by the informer, asked by the run tasks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace

from casewarden.api.names import LABEL_RUN_UID
from casewarden.core.model import AttemptKey, PodRecord
from casewarden.core.observe import observe
from casewarden.ports.kube import Manifest

__all__ = ["PodStore"]


class PodStore:
    """Pods by run. ``wake`` is called with the UID of a run whose pods changed.

    A pod that is gone stays known to its run, with the last that was seen of it, until the run is forgotten: somebody
    has to count it.
    """

    def __init__(self, wake: Callable[[str], None]) -> None:
        self._wake = wake
        self._pods: dict[str, dict[str, PodRecord]] = defaultdict(dict)
        self._owners: dict[tuple[str, str], str] = {}
        self._known: dict[str, dict[AttemptKey, PodRecord]] = defaultdict(dict)

    def pods(self, run_uid: str) -> tuple[PodRecord, ...]:
        """Return the pods that a run has now, plan pods included."""
        return tuple(self._pods.get(run_uid, {}).values())

    def run_uids(self) -> tuple[str, ...]:
        """Return the runs that have pods now."""
        return tuple(self._pods)

    def known(self, run_uid: str) -> Mapping[AttemptKey, PodRecord]:
        """Return the attempts of a run whose pod was seen and is gone."""
        return self._known.get(run_uid, {})

    def settle(self, run_uid: str, keys: frozenset[AttemptKey]) -> None:
        """Forget gone attempts that the ledger has."""
        known = self._known.get(run_uid, {})
        for key in keys & known.keys():
            del known[key]

    def forget(self, run_uid: str) -> None:
        """Forget the gone attempts of a run that is over."""
        self._known.pop(run_uid, None)

    def changed(self, manifest: Manifest) -> None:
        """See ``Sink``. A pod that is no run's, whatever its labels say, is left alone."""
        record = observe(manifest)
        if record is None:
            return
        self._owners[record.namespace, record.name] = record.run_uid
        pods = self._pods[record.run_uid]
        old = pods.get(record.name)
        if old is not None and old.uid == record.uid and old.deleted_at is not None and record.deleted_at is not None:
            # The removal of a stopped pod moves its deletion to that moment; what was asked for first is what happened.
            record = replace(record, deleted_at=min(old.deleted_at, record.deleted_at))
        pods[record.name] = record
        if old is None or old.resource_version != record.resource_version:
            self._wake(record.run_uid)

    def gone(self, namespace: str, name: str, uid: str) -> None:
        """See ``Sink``."""
        run_uid = self._owners.get((namespace, name), "")
        record = self._pods.get(run_uid, {}).get(name)
        if record is None or record.uid != uid:
            return
        del self._owners[namespace, name]
        del self._pods[run_uid][name]
        if record.attempt is not None:
            self._known[run_uid][record.attempt] = record
        if not self._pods[run_uid]:
            del self._pods[run_uid]
        self._wake(run_uid)


def run_uid_of(manifest: Manifest) -> str:
    """Return the run that an object says it belongs to, or an empty string."""
    return str((manifest["metadata"].get("labels") or {}).get(LABEL_RUN_UID, ""))
