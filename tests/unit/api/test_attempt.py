"""The last words of an attempt survive the way, or are known not to have."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casewarden.api.attempt import BadMessageError, SealedDocument, TerminationMessage
from casewarden_sdk.termination import encode_termination

DIGEST = "a" * 64
SEALED = {
    "v": 1, "run_uid": "u", "seed": 17, "case_id": "a", "repeat": 0, "attempt": 1, "pod_uid": "p", "digest": DIGEST,
    "status": "passed", "checks": "11", "reason": None, "error": None, "seconds": 1.5,
}  # fmt: skip


@given(error=st.none() | st.text(), bits=st.text("01", min_size=1, max_size=40), seconds=st.floats(0, 1e6))
def test_a_message_comes_back_and_fits_the_kubelets_share(error: str | None, bits: str, seconds: float) -> None:
    status = "failed" if "0" in bits else "passed"
    message = TerminationMessage(status=status, checks=bits, digest=DIGEST, error=error, seconds=seconds)
    text = message.format()
    assert len(text.encode()) <= 1024
    back = TerminationMessage.parse(text)
    assert (back.status, back.checks, back.digest, back.seconds) == (status, bits, DIGEST, seconds)
    assert error is None or error.startswith(back.error or "")


@given(st.text())
def test_what_the_driver_writes_is_what_the_operator_reads(error: str) -> None:
    text = encode_termination("agent_error", "0-0".replace("-", "1"), DIGEST, "Exited", error, 2)
    back = TerminationMessage.parse(text)
    assert (back.status, back.checks, back.reason, back.seconds) == ("agent_error", "010", "Exited", 2.0)


def test_a_lost_claim_has_no_checks() -> None:
    assert TerminationMessage.parse(encode_termination("superseded")).status == "superseded"


@given(st.integers(min_value=1, max_value=200))
def test_a_message_that_was_cut_is_not_believed(cut: int) -> None:
    text = encode_termination("passed", "1", DIGEST, error="x" * 150)
    with pytest.raises(BadMessageError):
        TerminationMessage.parse(text[:-cut])


def test_a_message_with_another_verdict_and_the_old_checksum_is_not_believed() -> None:
    text = encode_termination("failed", "0", DIGEST)
    with pytest.raises(BadMessageError, match="checksum"):
        TerminationMessage.parse(text.replace('"failed"', '"passed"'))


@pytest.mark.parametrize(
    ("status", "checks"),
    [
        ("passed", "10"),
        ("passed", ""),
        ("failed", "11"),
        ("failed", "1-"),
        ("environment_error", "0"),
        ("agent_error", "1"),
    ],
)
def test_checks_that_contradict_the_status_are_refused_even_with_a_good_checksum(status: str, checks: str) -> None:
    with pytest.raises(BadMessageError, match="do not fit"):
        TerminationMessage.parse(encode_termination(status, checks, DIGEST))
    with pytest.raises(BadMessageError, match="do not fit"):
        SealedDocument.parse(json.dumps({**SEALED, "status": status, "checks": checks}))


@pytest.mark.parametrize("text", ["", "null", "[]", "{", '{"a": NaN}', "[" * 100_000, '{"sum": 1}'])
def test_what_is_no_message_is_said_to_be_none(text: str) -> None:
    with pytest.raises(BadMessageError):
        TerminationMessage.parse(text)
    with pytest.raises(BadMessageError):
        SealedDocument.parse(text)


def test_a_sealed_document_is_read_as_strictly_as_it_is_written() -> None:
    assert SealedDocument.parse(json.dumps(SEALED).encode()).seconds == 1.5
    for name in ("seed", "case_id", "attempt", "digest", "status"):
        with pytest.raises(BadMessageError):
            SealedDocument.parse(json.dumps({key: value for key, value in SEALED.items() if key != name}))
    with pytest.raises(BadMessageError, match="extra"):
        SealedDocument.parse(json.dumps({**SEALED, "extra": 1}))
