"""What is kept of a pod, and which pods are nobody's."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.pod_json import RUN_UID, attempt, disruption, pod_json, running, terminated, waiting

from casewarden.core.observe import MAX_MESSAGE, observe, parse_time


def _without(document: dict[str, Any], *path: str) -> dict[str, Any]:
    inner: Any = document
    for name in path[:-1]:
        inner = inner[name]
    inner.pop(path[-1])
    return document


def test_a_pod_of_ours_becomes_a_record_with_its_attempt_and_all_containers():
    record = observe(
        pod_json(
            attempt(3, 2),
            terminated("task", 3, message="told", at=50),
            running("evidence", restarts=1, last={"exitCode": 137, "reason": "OOMKilled"}),
            waiting("env-db", "ErrImagePull", "not found"),
            conditions=(disruption("EvictionByEvictionAPI", at=49),),
            uid="u",
            created=5,
        )
    )
    assert record is not None
    assert (record.attempt, record.run_uid, record.uid, record.node) == (attempt(3, 2), RUN_UID, "u", "node-1")
    assert (record.created_at, record.started_at, record.active_deadline) == (5.0, 6.0, 2000.0)
    assert {item.name: item.state for item in record.containers} == {
        "evidence": "running", "task": "terminated", "env-db": "waiting", "candidate": "running",
    }  # fmt: skip
    task, evidence = record.container("task"), record.container("evidence")
    assert task is not None
    assert (task.exit_code, task.message, task.finished_at) == (3, "told", 50.0)
    assert evidence is not None
    assert (evidence.restarts, evidence.last_exit_code, evidence.last_reason) == (
        1,
        137,
        "OOMKilled",
    )
    assert [(item.type, item.since) for item in record.conditions] == [
        ("PodScheduled", 5.0),
        ("DisruptionTarget", 49.0),
    ]


def test_a_deletion_is_dated_when_it_was_asked_for_and_not_when_its_grace_is_over():
    record = observe(pod_json(deleted=100, grace=30))
    assert record is not None
    assert record.deleted_at == 100.0


def test_a_plan_pod_has_no_attempt():
    document = pod_json()
    document["metadata"]["labels"]["casewarden.dev/role"] = "plan"
    record = observe(document)
    assert record is not None
    assert record.attempt is None


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(
            lambda d: d["metadata"]["labels"].update({"app.kubernetes.io/managed-by": "helm"}), id="another manager"
        ),
        pytest.param(lambda d: d["metadata"]["labels"].update({"casewarden.dev/role": "ledger"}), id="another role"),
        pytest.param(
            lambda d: d["metadata"]["labels"].update({"casewarden.dev/run-uid": "x"}), id="a label of another run"
        ),
        pytest.param(lambda d: d["metadata"].update(ownerReferences=[]), id="nobody's"),
        pytest.param(
            lambda d: d["metadata"]["ownerReferences"][0].update(controller=False), id="owned and not controlled"
        ),
        pytest.param(lambda d: d["metadata"].update(name="kv-0000000000-1"), id="another attempt's name"),
        pytest.param(
            lambda d: d["metadata"]["annotations"].update({"casewarden.dev/attempt": "2"}), id="another attempt"
        ),
        pytest.param(
            lambda d: d["metadata"]["annotations"].update({"casewarden.dev/seed": "many"}), id="a seed of letters"
        ),
        pytest.param(lambda d: _without(d, "metadata", "annotations"), id="no annotations"),
        pytest.param(lambda d: _without(d, "metadata", "uid"), id="no uid"),
        pytest.param(lambda d: d.update(metadata=None), id="no metadata"),
        pytest.param(lambda d: d["status"].update(containerStatuses=[7]), id="a malformed status"),
    ],
)
def test_a_pod_that_is_not_wholly_ours_is_none(change):
    document = pod_json()
    assert observe(document) is not None
    change(document)
    assert observe(document) is None


def test_long_messages_are_cut():
    record = observe(pod_json(None, terminated("task", 1, message="x" * 5000), message="y" * 5000))
    assert record is not None
    task = record.container("task")
    assert task is not None
    assert (len(task.message), len(record.message)) == (MAX_MESSAGE, MAX_MESSAGE)


def test_a_pod_that_no_kubelet_has_seen_is_pending_without_containers():
    document = pod_json(node="")
    document["status"] = {}
    record = observe(document)
    assert record is not None
    assert (record.phase, record.containers, record.started_at) == ("Pending", (), None)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:01:00Z", 60.0),
        ("1970-01-01T00:01:00.5Z", 60.5),
        ("1970-01-01T01:01:00+01:00", 60.0),
        ("1970-01-01T00:01:00", None),
        ("soon", None),
        (None, None),
        (60, None),
    ],
)
def test_times_are_read_with_their_zone(text, seconds):
    assert parse_time(text) == seconds


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(["metadata", "spec", "status"]), _JSON, st.data())
def test_nothing_in_a_pod_makes_the_watch_fail(part, value, data):
    document = pod_json(None, terminated("task", 0))
    inner = document[part]
    document[part] = data.draw(st.sampled_from([value, {**inner, data.draw(st.sampled_from(sorted(inner))): value}]))
    record = observe(document)
    assert record is None or record.run_uid == RUN_UID
