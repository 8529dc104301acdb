"""Plain data to bytes and back: everything survives, and nothing that is read is ever run."""

from __future__ import annotations

import collections
import fractions
import pickle

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from sash.algebra.codec import ARRAY, DEEPEST, INTEGER, TUPLE, decode, encode
from sash.algebra.laws.sameness import same
from sash.errors import FormatError, UnsupportedError

KEYS = st.integers() | st.text(max_size=5) | st.booleans() | st.tuples(st.integers(), st.text(max_size=3))
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10) | st.binary(max_size=10)
PLAIN = st.recursive(
    LEAVES | st.sets(KEYS, max_size=4) | st.frozensets(KEYS, max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.tuples(inner, inner) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
NUMBERS = npst.boolean_dtypes() | npst.integer_dtypes() | npst.floating_dtypes(sizes=(32, 64))


def spelled(value):
    """A value with the types of everything in it."""
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [spelled(item) for item in value]
    if isinstance(value, dict):
        return "dict", [(spelled(key), spelled(item)) for key, item in value.items()]
    if isinstance(value, (set, frozenset)):
        return type(value).__name__, sorted(map(repr, map(spelled, value)))
    return type(value).__name__, repr(value)


@given(PLAIN)
def test_plain_data_come_back_as_they_were_types_included(value):
    assert spelled(decode(encode(value))) == spelled(value)


@given(PLAIN)
def test_the_same_value_has_the_same_bytes(value):
    assert encode(value) == encode(decode(encode(value)))


def test_equal_sets_have_equal_bytes_however_they_were_made():
    rising, falling = set(), set()
    for number in range(0, 80, 8):
        rising.add(number)
        falling.add(72 - number)
    assert encode(rising) == encode(falling)


@given(npst.arrays(NUMBERS, npst.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)))
def test_arrays_of_numbers_come_back_with_type_and_shape(array):
    back = decode(encode(array))
    assert back.dtype == array.dtype
    assert back.shape == array.shape
    assert same(back, array)
    assert back.flags.writeable


@pytest.mark.parametrize("layout", [np.asfortranarray, lambda a: a[::2], lambda a: a.T, lambda a: a[::-1]])
def test_arrays_of_any_layout_come_back(layout):
    array = layout(np.arange(12.0).reshape(4, 3))
    assert np.array_equal(decode(encode(array)), array)


@pytest.mark.parametrize("number", [np.float32(0.1), np.int8(-3), np.uint64(2**64 - 1), np.bool_(1), np.float64(0.1)])
def test_numpy_numbers_keep_their_type(number):
    back = decode(encode([number]))[0]
    assert type(back) is type(number)
    assert back == number


@pytest.mark.parametrize("value", [object(), fractions.Fraction(1, 3), collections.Counter("abc"), len, 1j])
def test_what_is_no_plain_data_is_refused_with_the_way_out(value):
    with pytest.raises(UnsupportedError, match=r"cannot be written to bytes\. Declare a codec on the aggregate"):
        encode([value])


def test_an_array_of_objects_is_refused():
    with pytest.raises(UnsupportedError, match="ndarray cannot be written"):
        encode(np.array([object()]))


@given(st.binary(max_size=60))
def test_any_bytes_at_all_give_a_value_or_a_format_error(data):
    try:
        value = decode(data)
    except FormatError:
        return
    assert spelled(decode(encode(value))) == spelled(value)


@given(PLAIN.filter(lambda value: len(encode(value)) > 1), st.data())
def test_truncated_data_are_refused(value, data):
    whole = encode(value)
    with pytest.raises(FormatError):
        decode(whole[: data.draw(st.integers(0, len(whole) - 1))])


class Bomb:
    """Unpickling this would make a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_planted_pickle_is_never_run(tmp_path, protocol):
    trap = tmp_path / "sprung"
    planted = pickle.dumps(Bomb(str(trap)), protocol)
    for data in (planted, encode(planted), msgpack.packb(msgpack.ExtType(ARRAY, encode(["O", [1], planted])))):
        try:
            assert decode(data) == planted
        except FormatError:
            continue
    assert not trap.exists()


@pytest.mark.parametrize(
    "data",
    [
        msgpack.packb(msgpack.ExtType(99, b"")),
        msgpack.packb(msgpack.ExtType(TUPLE, b"")),
        msgpack.packb(msgpack.ExtType(TUPLE, encode(5))),
        msgpack.packb(msgpack.ExtType(ARRAY, encode(["|O", [1], b"12345678"]))),
        msgpack.packb(msgpack.ExtType(ARRAY, encode(["<f8", [3], b"12345678"]))),
        msgpack.packb(msgpack.ExtType(ARRAY, encode(["nonsense", [1], b"1"]))),
        msgpack.packb(msgpack.ExtType(ARRAY, encode(["<f8", [-1, -1], b"12345678"]))),
        b"\x93",
        b"",
    ],
)
def test_bytes_that_are_nearly_plain_data_are_a_format_error(data):
    with pytest.raises(FormatError):
        decode(data)


def test_an_empty_integer_extension_is_zero_and_a_long_one_is_long():
    assert decode(msgpack.packb(msgpack.ExtType(INTEGER, b""))) == 0
    assert decode(encode(-(2**200))) == -(2**200)


def test_what_is_nested_too_deep_to_be_read_is_not_written():
    nested = ()
    for _ in range(DEEPEST - 1):
        nested = (nested,)
    assert decode(encode(nested)) == nested
    with pytest.raises(UnsupportedError, match="nested more than"):
        encode((nested,))


def test_text_that_is_no_unicode_is_refused():
    with pytest.raises(UnsupportedError, match="cannot be written to bytes"):
        encode("\ud800")


def test_nesting_without_end_is_a_format_error_not_a_crash():
    data = encode(1)
    for _ in range(3000):
        data = msgpack.packb(msgpack.ExtType(TUPLE, b"\x91" + data))
    with pytest.raises(FormatError):
        decode(data)
