"""What the operator writes into the pod is what the recorder reads."""

from __future__ import annotations

import json

import pytest
from support.attempt import attempt_document
from support.packs import cases

from casewarden.casepod.settings import Settings, SettingsError

CASE = cases(17)[0]


def read(document: object, **variables: str) -> Settings:
    return Settings.from_environment({"CASEWARDEN_ATTEMPT": json.dumps(document), **variables})


def test_an_attempt_is_read_from_the_environment():
    candidate = {
        "argv": ["./agent"],
        "default_argv": ["x"],
        "env": [{"name": "A", "value": "b"}],
        "network": "none",
        "workspace_digest": "d" * 64,
        "fetch_workspace": True,
    }
    settings = read(attempt_document(CASE, candidate=candidate), CASEWARDEN_POD_UID="uid-of-the-pod")
    assert settings.pod_uid == "uid-of-the-pod"
    assert settings.limits.hold_seconds == 5.0
    assert settings.limits.actions is None
    assert settings.candidate is not None
    assert settings.candidate.argv == ("./agent",)
    assert settings.candidate.env == (("A", "b"),)
    assert settings.candidate.fetch_workspace
    assert settings.told_limits["output_bytes"] == 65536


def test_a_kind_of_case_may_have_no_candidate():
    assert read(attempt_document(CASE, candidate=None)).candidate is None


def test_the_pods_uid_comes_from_the_downward_api():
    document = attempt_document(CASE)
    del document["pod_uid"]
    assert read(document, CASEWARDEN_POD_UID="u").pod_uid == "u"
    with pytest.raises(SettingsError, match="pod_uid"):
        read(document)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": "17"}, "seed is '17'"),
        ({"repeat": True}, "repeat is True"),
        ({"limits": None}, "limits is None"),
        ({"limits": {}}, "case_seconds is None"),
        ({"candidate": {"default_argv": []}}, "default_argv is \\[\\]"),
        ({"candidate": {"default_argv": ["a"], "argv": "sh -c x"}}, "argv is 'sh -c x'"),
        ({"dimensions": []}, "dimensions is"),
        ({"case_sha256": ""}, "case_sha256 is ''"),
    ],
)
def test_what_is_missing_or_of_another_type_is_named(change, message):
    with pytest.raises(SettingsError, match=message):
        read(attempt_document(CASE, **change))


@pytest.mark.parametrize("text", ["", "[", "[]", "null"])
def test_what_is_no_object_is_refused(text):
    with pytest.raises(SettingsError, match="CASEWARDEN_ATTEMPT"):
        Settings.from_environment({"CASEWARDEN_ATTEMPT": text})
    with pytest.raises(SettingsError, match="not set"):
        Settings.from_environment({})
