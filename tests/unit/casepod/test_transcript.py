"""The transcript keeps what was said, whatever the bytes, up to a size that nobody can push."""

from __future__ import annotations

import base64
import json

from hypothesis import given
from hypothesis import strategies as st

from casewarden.casepod.transcript import Transcript
from casewarden_sdk.bundle import transcript_sha256


def rows(transcript: Transcript) -> list[dict]:
    return [json.loads(line) for line in transcript.data().splitlines()]


def said(row: dict) -> bytes:
    return row["text"].encode() if "text" in row else base64.b64decode(row["base64"])


@given(st.lists(st.tuples(st.sampled_from(["in", "out"]), st.binary(max_size=40)), max_size=8))
def test_rows_keep_every_byte_and_the_digest_is_the_one_of_the_rows(lines):
    transcript = Transcript(lambda: 1.5)
    for direction, data in lines:
        transcript.add(1, direction, data)
    found = rows(transcript)
    assert [(row["dir"], said(row)) for row in found] == lines
    assert transcript.sha256() == transcript_sha256(found)


@given(st.lists(st.binary(max_size=3000), max_size=12))
def test_stderr_is_kept_whole_however_it_arrives(pieces):
    transcript = Transcript(lambda: 0.0)
    for piece in pieces:
        transcript.stderr(1, piece)
    transcript.stderr_end(1)
    whole = b"".join(pieces)
    kept = b"\n".join(said(row) for row in rows(transcript))
    # Rows end at newlines or, in lines that are too long, at 8 KiB.
    assert kept.replace(b"\n", b"") == whole.replace(b"\n", b"")
    assert whole.decode("utf-8", "replace").endswith(transcript.stderr_tail(1)[8:])


def test_stderr_becomes_rows_line_by_line():
    transcript = Transcript(lambda: 0.0)
    for piece in (b"on", b"e\ntwo\nthr", b"ee"):
        transcript.stderr(3, piece)
    transcript.stderr_end(3)
    assert [(row["session"], row["dir"], row["text"]) for row in rows(transcript)] == [
        (3, "err", "one"),
        (3, "err", "two"),
        (3, "err", "three"),
    ]


def test_the_tail_of_stderr_does_not_begin_in_the_middle_of_a_character():
    transcript = Transcript(lambda: 0.0)
    transcript.stderr(1, "é".encode() * 1500 + b"x")
    tail = transcript.stderr_tail(1)
    assert tail == "é" * 1023 + "x"
    assert transcript.stderr_tail(2) == ""


def test_a_full_transcript_says_so_once_and_still_has_a_digest_of_its_rows():
    transcript = Transcript(lambda: 0.0, limit=500)
    for _ in range(50):
        transcript.add(1, "out", b"x" * 50)
    found = rows(transcript)
    assert [row["dir"] for row in found].count("truncated") == 1
    assert found[-1]["dir"] == "truncated"
    assert len(transcript.data()) < 700
    assert transcript.sha256() == transcript_sha256(found)
