"""Bundles and sealed documents: what is written is read, and nothing else is taken for one."""

from __future__ import annotations

import base64
import io
import json
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casewarden_sdk.bundle import (
    BUNDLE_FILES,
    BundleError,
    TranscriptDigest,
    case_prefix,
    pack_bundle,
    read_sealed,
    sealed_document,
    transcript_row,
    transcript_sha256,
    unpack_bundle,
)
from casewarden_sdk.canonical import canonical


def same(data: bytes, limit: int = 1 << 30) -> bytes:
    if len(data) > limit:
        raise ValueError("too large")
    return data


SEALED = sealed_document("u", 17, "a-case", 0, 1, "p", "d" * 64, "failed", "10", None, "wrong", 1.5)


@given(st.dictionaries(st.sampled_from(BUNDLE_FILES), st.binary(max_size=2000)))
def test_a_bundle_reads_back_and_its_bytes_depend_on_its_files_alone(files):
    data = pack_bundle(files, same)
    assert unpack_bundle(data, same) == files
    assert pack_bundle(dict(reversed(files.items())), same) == data


def test_only_files_of_a_bundle_go_in_and_come_out():
    with pytest.raises(BundleError, match="no file of a bundle"):
        pack_bundle({"../evil": b""}, same)
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("evil"))
    with pytest.raises(BundleError, match="evil"):
        unpack_bundle(buffer.getvalue(), same)


@given(st.binary(max_size=1000))
def test_any_other_bytes_are_no_bundle(data):
    try:
        files = unpack_bundle(data, same)
    except BundleError:
        return
    assert files == {}


@given(st.binary(max_size=20))
def test_a_row_keeps_every_byte_that_was_said(data):
    row = transcript_row(0.5, 1, "out", data)
    kept = row["text"].encode() if "text" in row else base64.b64decode(row["base64"])
    assert kept == data
    json.loads(canonical(row))


_ROWS = st.lists(
    st.tuples(
        st.floats(0, 9), st.integers(1, 3), st.sampled_from(["in", "out", "err", "exit"]), st.binary(max_size=5)
    ).map(lambda row: transcript_row(*row)),
    max_size=6,
)


@given(_ROWS)
def test_the_transcripts_digest_is_of_what_was_exchanged_and_of_no_times(rows):
    exchanged = [row for row in rows if row["dir"] in ("in", "out")]
    assert transcript_sha256(rows) == transcript_sha256({**row, "t": 99} for row in exchanged)
    running = TranscriptDigest()
    for row in rows:
        running.add(row)
    assert running.hexdigest() == transcript_sha256(rows)


def test_text_cannot_pose_as_bytes():
    said = {"t": 0, "session": 1, "dir": "out", "base64": "eA=="}
    assert transcript_sha256([said]) != transcript_sha256([{"t": 0, "session": 1, "dir": "out", "text": "eA=="}])


def test_a_sealed_document_reads_back():
    assert read_sealed(canonical(SEALED)) == SEALED
    assert read_sealed(json.dumps({**SEALED, "later": 1}))["later"] == 1


@pytest.mark.parametrize(
    "change",
    [
        {"v": 2},
        {"status": "environment_error", "checks": "--"},
        {"status": "fine"},
        {"checks": ""},
        {"checks": "1-"},
        {"seed": "17"},
        {"attempt": True},
        {"digest": None},
    ],
)
def test_what_commits_nothing_is_no_sealed_document(change):
    with pytest.raises(BundleError):
        read_sealed(json.dumps({**SEALED, **change}))


@pytest.mark.parametrize("text", ["", "[]", "null", "[" * 9999, "{}"])
def test_what_is_no_document_is_refused(text):
    with pytest.raises(BundleError):
        read_sealed(text)


def test_a_case_has_its_place_in_the_store():
    assert case_prefix("u", 17, "a-case", 2) == "runs/u/17/a-case/2"
