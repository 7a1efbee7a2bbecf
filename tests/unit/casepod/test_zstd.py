"""Compression that cannot be used against the one who unpacks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casewarden.casepod.zstd import compress, decompress


@given(st.binary(max_size=5000))
def test_what_is_compressed_reads_back_and_equal_data_gives_equal_bytes(data):
    packed = compress(data)
    assert decompress(packed, len(data)) == data
    assert compress(data) == packed


@given(st.binary(min_size=1, max_size=3000), st.data())
def test_a_cut_frame_is_noticed(data, draw):
    packed = compress(data)
    with pytest.raises(ValueError, match="zstandard"):
        decompress(packed[: draw.draw(st.integers(0, len(packed) - 1))], 5000)


def test_a_bomb_is_not_unpacked():
    with pytest.raises(ValueError, match="more than 1000000 bytes"):
        decompress(compress(b"\0" * (1 << 26)), 1_000_000)


@pytest.mark.parametrize("data", [b"", b"no zstandard at all"])
def test_other_bytes_are_refused(data):
    with pytest.raises(ValueError, match="zstandard"):
        decompress(data, 1000)
