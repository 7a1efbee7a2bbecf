"""The frame codec: what is written is read back, and what is no frame ends the connection."""

from __future__ import annotations

import asyncio
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casewarden_sdk.wire import MAX_HEADER, WireError, encode, read_frame

_HEADERS = st.dictionaries(
    st.text(max_size=5).filter(lambda name: name != "n"), st.none() | st.integers() | st.text(max_size=9), max_size=4
)


def read(data: bytes):
    async def run():
        reader = asyncio.StreamReader()
        reader.feed_data(data)
        reader.feed_eof()
        frames = []
        try:
            while True:
                frames.append(await read_frame(reader))
        except asyncio.IncompleteReadError:
            return frames

    return asyncio.run(run())


@given(st.lists(st.tuples(_HEADERS, st.binary(max_size=300)), max_size=4))
def test_frames_are_read_back_in_order(frames):
    data = b"".join(encode(header, payload) for header, payload in frames)
    assert read(data) == [({**header, "n": len(payload)} if payload else header, payload) for header, payload in frames]


@given(st.binary(max_size=200))
def test_no_bytes_whatever_raise_anything_but_a_wire_error(data):
    try:
        read(data)
    except WireError:
        return


@pytest.mark.parametrize(
    "header",
    [b"[]", b"nul", b"{", b'{"n": -1}', b'{"n": 1.5}', b'{"n": true}', b'{"n": 99999999999}', b"\xff\xff", b"[" * 5000],
)
def test_a_header_that_is_none_is_refused(header):
    with pytest.raises(WireError):
        read(struct.pack(">I", len(header)) + header)


def test_a_header_beyond_the_limit_is_refused_before_it_is_read():
    with pytest.raises(WireError, match="out of range"):
        read(struct.pack(">I", MAX_HEADER + 1))


def test_what_is_over_the_limit_is_not_even_written():
    with pytest.raises(WireError, match="over the limit"):
        encode({"text": "x" * MAX_HEADER})
