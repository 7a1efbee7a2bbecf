"""Pods are kept by run; one that is gone stays known until it is counted."""

from __future__ import annotations

from typing import Any

from support import pod_json as pj

from casewarden.controller.pod_store import PodStore
from casewarden.core.model import AttemptKey


class Setup:
    def __init__(self) -> None:
        self.woken: list[str] = []
        self.store = PodStore(self.woken.append)


def manifest(key: AttemptKey, version: str = "1", uid: str = "pod-uid") -> dict[str, Any]:
    body = pj.pod_json(key)
    body["metadata"] |= {"resourceVersion": version, "uid": uid}
    return body


def test_a_run_is_woken_by_every_new_version_of_its_pods_and_by_no_old_one() -> None:
    setup, key = Setup(), pj.attempt()
    for version in ("1", "1", "2"):
        setup.store.changed(manifest(key, version))
    assert setup.woken == [pj.RUN_UID] * 2
    (record,) = setup.store.pods(pj.RUN_UID)
    assert (record.attempt, record.resource_version) == (key, "2")
    assert setup.store.pods("another") == ()


def test_a_pod_that_is_gone_stays_known_until_it_is_counted() -> None:
    setup, key = Setup(), pj.attempt()
    body = manifest(key)
    setup.store.changed(body)
    setup.store.gone(pj.NAMESPACE, body["metadata"]["name"], "pod-uid")
    assert setup.store.pods(pj.RUN_UID) == ()
    assert set(setup.store.known(pj.RUN_UID)) == {key}
    assert len(setup.woken) == 2
    setup.store.settle(pj.RUN_UID, frozenset({key, pj.attempt(5)}))
    assert not setup.store.known(pj.RUN_UID)


def test_the_end_of_an_earlier_pod_of_the_same_name_does_not_take_the_later_one() -> None:
    setup, key = Setup(), pj.attempt()
    body = manifest(key, uid="later")
    setup.store.changed(body)
    setup.store.gone(pj.NAMESPACE, body["metadata"]["name"], "earlier")
    assert len(setup.store.pods(pj.RUN_UID)) == 1
    setup.store.gone("elsewhere", body["metadata"]["name"], "later")
    assert len(setup.store.pods(pj.RUN_UID)) == 1


def test_a_foreign_pod_with_our_labels_is_left_alone() -> None:
    setup = Setup()
    body = manifest(pj.attempt())
    body["metadata"]["ownerReferences"] = []
    setup.store.changed(body)
    assert setup.store.pods(pj.RUN_UID) == ()
    assert setup.woken == []


def test_a_run_that_is_over_is_forgotten() -> None:
    setup, key = Setup(), pj.attempt()
    body = manifest(key)
    setup.store.changed(body)
    setup.store.gone(pj.NAMESPACE, body["metadata"]["name"], "pod-uid")
    setup.store.forget(pj.RUN_UID)
    assert not setup.store.known(pj.RUN_UID)


def test_the_removal_of_a_stopped_pod_does_not_move_the_moment_at_which_its_deletion_was_asked_for() -> None:
    setup, key = Setup(), pj.attempt()
    asked, removed = manifest(key, "1"), manifest(key, "2")
    asked["metadata"] |= {"deletionTimestamp": "2026-11-30T19:32:08Z", "deletionGracePeriodSeconds": 30}
    removed["metadata"] |= {"deletionTimestamp": "2026-11-30T19:31:43Z", "deletionGracePeriodSeconds": 0}
    setup.store.changed(asked)
    (before,) = setup.store.pods(pj.RUN_UID)
    setup.store.changed(removed)
    (after,) = setup.store.pods(pj.RUN_UID)
    assert after.deleted_at == before.deleted_at
    setup.store.changed(manifest(key, "3", uid="another"))
    (other,) = setup.store.pods(pj.RUN_UID)
    assert other.deleted_at is None
