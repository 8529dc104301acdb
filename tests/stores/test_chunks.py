import os
import pickle
import struct

import numpy as np
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

import sash
from sash.errors import DataError, FormatError, UnsupportedError
from sash.stores import chunks

KEY, EPOCH = b"w/0/000007", 3
ITEMS = np.arange(128.0 * 2)
CHUNK = chunks.encode(KEY, EPOCH, ITEMS.data, 16)

keys = st.binary(min_size=1, max_size=40)
epochs = st.integers(0, 2**64 - 1)


@given(keys, epochs, st.integers(1, 200), st.data())
def test_items_of_one_size_come_back(key, epoch, item_size, data):
    count = data.draw(st.integers(0, chunks.capacity(item_size)))
    items = data.draw(st.binary(min_size=count * item_size, max_size=count * item_size))
    chunk = chunks.encode(key, epoch, items, item_size)
    assert len(chunk) <= 4080
    assert chunks.decode(key, epoch, chunk, item_size) == items


@given(keys, epochs, st.lists(st.binary(max_size=300), max_size=40))
def test_items_of_their_own_length_come_back(key, epoch, items):
    fitting = items[: chunks.n_fitting(items)]
    chunk = chunks.encode_items(key, epoch, fitting)
    assert len(chunk) <= 4080
    assert chunks.decode_items(key, epoch, chunk) == fitting
    if len(fitting) < len(items):
        with pytest.raises(DataError, match="do not fit into a chunk"):
            chunks.encode_items(key, epoch, items[: len(fitting) + 1])


def test_numbers_come_back_without_a_copy_and_aligned():
    found = np.frombuffer(chunks.decode(KEY, EPOCH, CHUNK, 16))
    assert (found == ITEMS).all()
    assert found.flags.aligned
    assert not found.flags.owndata


def test_records_are_items_too():
    records = np.zeros(5, [("n", "i8"), ("flag", "?")])
    records["n"] = range(5)
    size = records.dtype.itemsize
    found = np.frombuffer(chunks.decode(KEY, 1, chunks.encode(KEY, 1, records.data, size), size), records.dtype)
    assert (found == records).all()


@pytest.mark.parametrize("item_size", [*range(1, 300), 2019, 2020, 2021, 4040])
def test_the_capacity_is_the_largest_power_of_two_that_fits(item_size):
    n = chunks.capacity(item_size)
    assert n & (n - 1) == 0
    assert n * item_size <= 4040 < 2 * n * item_size
    assert len(chunks.encode(KEY, EPOCH, bytes(n * item_size), item_size)) <= 4080


def test_the_header_is_what_the_document_says():
    body = struct.pack("<QQHHI", 3, xxhash.xxh3_64_intdigest(KEY), 2, 16, 8) + bytes(16)
    wanted = struct.pack("<4sIQ", b"SWIN", 1, xxhash.xxh3_64_intdigest(body)) + body
    assert chunks.encode(KEY, 3, bytes(16), 8) == wanted


def test_ten_thousand_flipped_bits_are_all_found():
    flips = np.random.default_rng(7).permutation(8 * len(CHUNK))[:10_000]
    damaged = bytearray(CHUNK)
    for flip in flips.tolist():
        damaged[flip // 8] ^= 1 << flip % 8
        with pytest.raises(FormatError, match=r"the chunk b'w/0/000007' cannot be used: "):
            chunks.decode(KEY, EPOCH, bytes(damaged), 16)
        damaged[flip // 8] ^= 1 << flip % 8
    assert bytes(damaged) == CHUNK


def refusal(data, key=KEY, epoch=EPOCH, item_size=16):
    with pytest.raises(FormatError) as refused:
        chunks.decode(key, epoch, data, item_size)
    assert repr(key) in str(refused.value)
    return str(refused.value)


def test_a_chunk_of_another_key_is_named():
    assert "it was written under another key" in refusal(CHUNK, key=b"w/0/000008")


def test_a_stale_chunk_is_named():
    assert "it is of epoch 3, wanted epoch 4" in refusal(CHUNK, epoch=4)


def test_a_chunk_of_a_later_version_is_named():
    later = CHUNK[:4] + struct.pack("<I", 2) + CHUNK[8:]
    assert "it is of version 2; this Sash reads version 1" in refusal(later)


@pytest.mark.parametrize("length", [40, 41, 1000, len(CHUNK) - 1])
def test_a_truncated_chunk_is_named(length):
    assert f"it is truncated: {length - 40} of 2048 bytes" in refusal(CHUNK[:length])


@pytest.mark.parametrize("data", [b"", b"SW", CHUNK[:39], b"something else" * 100])
def test_what_is_no_chunk_is_named(data):
    assert f"no chunk: {len(data)} bytes" in refusal(data)


def test_a_chunk_with_something_after_it_is_damaged():
    assert "it is damaged" in refusal(CHUNK + b"\0")


def test_items_of_another_size_are_named():
    assert "it has 128 items of 16 bytes, wanted items of 8 bytes" in refusal(CHUNK, item_size=8)
    with pytest.raises(FormatError, match="wanted items of their own length each"):
        chunks.decode_items(KEY, EPOCH, CHUNK)
    assert "it has 1 items of 0 bytes, wanted" in refusal(chunks.encode_items(KEY, EPOCH, [b"x"]))


@pytest.mark.parametrize(("count", "payload"), [(2, b"\1\0a"), (1, b"\1\0a\0"), (1, b"\xff\xffa"), (1, b"\1")])
def test_lengths_that_do_not_add_up_are_refused(count, payload):
    forged = chunks._sealed(KEY, EPOCH, count, 0, payload)
    with pytest.raises(FormatError, match="do not fill it exactly"):
        chunks.decode_items(KEY, EPOCH, forged)


@pytest.mark.parametrize("size", [4041, 10**6, 0, -8])
def test_an_item_that_fits_into_no_chunk_is_refused(size):
    for attempt in (lambda: chunks.capacity(size), lambda: chunks.encode(KEY, EPOCH, bytes(5000), size)):
        with pytest.raises(UnsupportedError, match=r"does not fit into a chunk.*smaller state, or keep the window"):
            attempt()


def test_an_object_that_fits_into_no_chunk_is_refused():
    assert chunks.n_fitting([bytes(4038)]) == 1
    with pytest.raises(UnsupportedError, match="an item of 4039 bytes does not fit"):
        chunks.n_fitting([bytes(4039)])


def test_what_is_no_whole_number_of_items_is_refused():
    with pytest.raises(DataError, match="17 bytes are no whole number of items of 8 bytes"):
        chunks.encode(KEY, EPOCH, bytes(17), 8)
    with pytest.raises(DataError, match="4048 bytes do not fit into a chunk, only 256 items"):
        chunks.encode(KEY, EPOCH, bytes(4048), 8)


class Planted:
    """A pickle that makes a directory when it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_planted_pickle_is_refused_and_never_loaded(protocol, tmp_path):
    trace = tmp_path / "the pickle was loaded"
    planted = pickle.dumps(Planted(trace), protocol)
    with sash.open_store("memory:") as store:
        for data in (planted, CHUNK[:40] + planted, chunks.encode_items(KEY, EPOCH, [planted])):
            store.put_many({KEY: data})
            with pytest.raises(FormatError, match="cannot be used"):
                chunks.decode(KEY, EPOCH, store.get_many([KEY])[0], 16)
        assert chunks.decode_items(KEY, EPOCH, store.get_many([KEY])[0]) == [planted]
    assert not trace.exists()
    pickle.loads(planted)
    assert trace.exists()
