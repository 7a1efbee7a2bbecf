"""What the API server answers becomes one error of the port each; nothing it says can break that."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casewarden.adapters.kube.errors import error_from
from casewarden.ports.kube import (
    AlreadyExists,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    KubeError,
    NotFound,
    TooManyRequests,
    Unavailable,
)


@pytest.mark.parametrize(
    ("status", "reason", "kind"),
    [
        (400, "BadRequest", Invalid),
        (401, "Unauthorized", KubeError),
        (403, "Forbidden", Forbidden),
        (404, "NotFound", NotFound),
        (408, "Timeout", Unavailable),
        (409, "AlreadyExists", AlreadyExists),
        (409, "Conflict", Conflict),
        (410, "Expired", Gone),
        (422, "Invalid", Invalid),
        (429, "TooManyRequests", TooManyRequests),
        (500, "InternalError", Unavailable),
        (504, "Timeout", Unavailable),
    ],
)
def test_a_status_becomes_its_error(status: int, reason: str, kind: type[KubeError]) -> None:
    error = error_from(status, json.dumps({"reason": reason, "message": "why"}).encode())
    assert type(error) is kind
    assert (error.status, error.reason, error.message) == (status, reason, "why")


def test_a_terminating_namespace_is_known_by_its_cause() -> None:
    body = {"reason": "Forbidden", "message": "no", "details": {"causes": [{"reason": "NamespaceTerminating"}]}}
    error = error_from(403, body)
    assert isinstance(error, Forbidden)
    assert error.is_terminating


@given(st.integers(300, 599), st.binary(max_size=200))
def test_an_answer_of_a_proxy_is_an_error_too(status: int, body: bytes) -> None:
    assert isinstance(error_from(status, body), KubeError)
