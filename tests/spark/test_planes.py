"""Blocks by planes: what is read is what was written, and numbers take a fraction of their bytes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark")

import sash
from sash.spark.planes import CHECKSUM, LENGTH, MANY, compress, expand


@given(data=st.binary(max_size=200), times=st.integers(1, 50))
def test_what_is_read_is_what_was_written(data, times):
    assert expand(compress(data * times)) == data * times


@pytest.mark.parametrize("n_bytes", [8 * MANY - 1, 8 * MANY, 8 * MANY + 5])
def test_machine_code_reads_and_writes_what_numpy_does(n_bytes, monkeypatch):
    data = np.random.default_rng(n_bytes).integers(0, 40, n_bytes).astype(np.uint8).tobytes()
    written = compress(data)
    monkeypatch.setenv("SASH_JIT", "0")
    assert compress(data) == written
    assert expand(written) == data
    monkeypatch.setenv("SASH_JIT", "1")
    assert expand(written) == data


def test_times_and_quarters_take_a_fraction_of_their_bytes():
    times = 1_700_000_000_000_000 + np.arange(10_000) * 36_000_000
    values = np.random.default_rng(1).integers(0, 1_000, 10_000) / 4
    data = times.tobytes() + values.tobytes()
    assert len(compress(data)) < len(data) / 3


def test_noise_takes_hardly_more_than_it_was():
    data = np.random.default_rng(1).bytes(80_000)
    assert len(compress(data)) < 1.01 * len(data)


@pytest.mark.parametrize("data", [b"", b"short", compress(b"12345678" * 9)[:-3], b"\xff" * 40])
def test_damaged_bytes_are_told(data):
    with pytest.raises(sash.FormatError, match="damaged"):
        expand(data)


@given(data=st.binary(min_size=1, max_size=200), place=st.integers(0), bit=st.integers(0, 7))
def test_any_bit_that_was_turned_is_told(data, place, bit):
    written = bytearray(compress(data * 9))
    written[place % len(written)] ^= 1 << bit
    with pytest.raises(sash.FormatError, match="damaged"):
        expand(bytes(written))


@pytest.mark.parametrize("n_bytes", [1, 8, 1 << 30])
def test_fewer_bytes_than_announced_are_not_filled_up_with_what_memory_held(n_bytes):
    written = compress(b"12345678" * 9)
    longer = LENGTH.pack(72 + n_bytes)
    with pytest.raises(sash.FormatError, match="damaged"):
        expand(written[: CHECKSUM.size] + longer + written[CHECKSUM.size + LENGTH.size :])
