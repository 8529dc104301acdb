"""Windows as bytes: they come back whole or not at all, and reading them never runs anything."""

from __future__ import annotations

import pickle
import struct

import numpy as np
import pytest
import xxhash
from hypothesis import given
from hypothesis import strategies as st

from sash.algebra import codec
from sash.algebra.declaring import aggregate
from sash.algebra.declaring import codec as declare_codec
from sash.compiling.jit import is_enabled
from sash.engine.aggregator import aggregator
from sash.engine.snapshot import HEADER, MAGIC, VERSION
from sash.errors import FormatError
from sash.testing.fifo_suite import fifo_algorithms
from sash.testing.monoids import Bloom, Concat, Max, Mean, Sum

FORMS = [False, True] if is_enabled() else [False]


def filled(algorithm="two_stacks_lite", aggregate=Mean, compiled=False):
    """A window that has slid a little."""
    window = aggregator(algorithm, aggregate, compiled=compiled)
    window.bulk_insert([3, None, 1, 4, 1, 5, 9, 2, 6])
    window.bulk_evict(2)
    window.insert(5)
    return window


def sealed(body, version=VERSION):
    """Plain data under a header whose checksum is right."""
    return HEADER.pack(MAGIC, version, xxhash.xxh3_64_intdigest(body)) + body


def opened(data):
    """The four parts of a snapshot."""
    return codec.decode(data[HEADER.size :])


def refused(data, window=None, match=None):
    """Require that bytes are refused, and that the window stays as it was."""
    window = window or filled()
    before = window.query(), len(window)
    with pytest.raises(FormatError, match=match):
        window.restore(data)
    assert (window.query(), len(window)) == before


@pytest.mark.parametrize("compiled", FORMS, ids=["interpreted", "compiled"][: len(FORMS)])
@pytest.mark.parametrize("algorithm", fifo_algorithms())
def test_a_window_goes_on_where_it_was_saved(algorithm, compiled):
    window = filled(algorithm, Sum, compiled)
    again = aggregator(algorithm, Sum, compiled=compiled)
    again.restore(window.snapshot())
    assert len(again) == len(window)
    for value in range(30):
        for each in (window, again):
            each.insert(value)
            each.evict()
        assert again.query() == window.query()


def test_the_same_window_gives_the_same_bytes():
    assert filled().snapshot() == filled().snapshot()


def test_a_window_that_has_been_large_is_saved_small():
    window = filled()
    small = len(window.snapshot())
    window.bulk_insert(range(1000))
    window.bulk_evict(1000)
    assert len(window) == 8
    assert len(window.snapshot()) < small + 40, "a few registers are longer numbers now"


def test_restoring_replaces_what_was_there():
    window = aggregator("two_stacks_lite", Mean)
    window.bulk_insert(range(100))
    window.restore(filled().snapshot())
    assert window.query() == filled().query()


def test_taking_a_snapshot_changes_nothing():
    window = filled(aggregate=Concat)
    before = window.query()
    window.snapshot()
    window.insert("x")
    window.evict()
    assert window.query() == ",".join([*before.split(",")[1:], "x"])


@given(st.data())
def test_a_flipped_bit_anywhere_is_noticed(data):
    whole = bytearray(filled().snapshot())
    place, bit = data.draw(st.integers(0, len(whole) - 1)), data.draw(st.integers(0, 7))
    whole[place] ^= 1 << bit
    refused(bytes(whole))


def test_truncation_anywhere_is_noticed():
    whole = filled().snapshot()
    window = filled()
    for length in range(len(whole)):
        refused(whole[:length], window)


def test_bytes_after_the_end_are_noticed():
    refused(filled().snapshot() + b"\0", match="checksum")


@given(st.binary(max_size=64))
def test_any_other_bytes_are_refused(data):
    refused(data)


def test_another_algorithm_is_refused():
    refused(filled("recalc").snapshot(), match="this snapshot is of .*recalc.*but the window is of .*two_stacks_lite")


def test_another_aggregate_is_refused():
    refused(filled(aggregate=Max).snapshot(), match="this snapshot is of .*Max.*but the window is of .*Mean")


def test_an_aggregate_of_the_same_name_with_another_state_is_refused():
    @aggregate(state={"n": "i8", "total": "f4"})
    class Mean:
        identity = (0, 0.0)
        lift, combine = staticmethod(lambda x: (1, x)), staticmethod(lambda x, y: (x[0] + y[0], x[1] + y[1]))

    refused(filled(aggregate=Mean).snapshot(), match="float32.*float64")


@pytest.mark.skipif(not is_enabled(), reason="without the JIT there is one form only")
def test_the_other_form_is_refused():
    refused(filled(compiled=True).snapshot(), match="compiled.*interpreted")


def test_several_aggregates_are_not_one():
    both = aggregator("two_stacks_lite", {"a": Mean, "b": Sum})
    refused(both.snapshot(), match="Sum")


@pytest.mark.parametrize("version", [0, VERSION + 1, 255])
def test_a_version_of_the_future_or_of_no_time_is_refused(version):
    body = filled().snapshot()[HEADER.size :]
    refused(sealed(body, version), match=f"a snapshot of version {version}; this Sash reads version {VERSION}")


class Bomb:
    """Unpickling this would make a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (self.path, "w"))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_planted_pickle_is_refused_and_never_run(tmp_path, protocol):
    trap = tmp_path / "sprung"
    planted = pickle.dumps(Bomb(str(trap)), protocol)
    refused(planted)
    refused(sealed(planted))
    parts = opened(filled().snapshot())
    for place in range(4):
        changed = [*parts]
        changed[place] = planted
        refused(sealed(codec.encode(changed)))
    parts[3][0][0][0] = planted
    window = filled()
    window.restore(sealed(codec.encode(parts)))  # a pickle in the place of a partial is a value like any other
    assert not trap.exists()


def with_part(place, change, compiled=False):
    """A snapshot with a right checksum and one part changed."""
    parts = opened(filled(compiled=compiled).snapshot())
    parts[place] = change(parts[place])
    return sealed(codec.encode(parts))


@pytest.mark.parametrize(
    "body",
    [None, 5, "text", [], [1, 2, 3], {}, [[], [], [], []]],
    ids=repr,
)
def test_plain_data_that_are_no_snapshot_are_refused(body):
    refused(sealed(codec.encode(body)))


@pytest.mark.parametrize(
    ("part", "change"),
    [
        (1, lambda registers: registers[:-1]),
        (1, lambda registers: [*registers, 0]),
        (1, lambda registers: ["x", *registers[1:]]),
        (1, lambda registers: [*registers[:2], 2**40 - 1, *registers[3:]]),
        (1, lambda registers: [*registers[:2], 6, *registers[3:]]),
        (1, lambda registers: [*registers[:2], -1, *registers[3:]]),
        (1, lambda registers: [5, 4, *registers[2:]]),
        (1, lambda registers: [-1, *registers[1:]]),
        (1, lambda registers: [registers[0], 2**70, *registers[2:]]),
        (2, lambda links: [*links, 0]),
        (2, lambda links: None),
        (3, lambda pools: []),
        (3, lambda pools: [pools[0], pools[0]]),
        (3, lambda pools: [[part[:-1] for part in pools[0]]]),
        (3, lambda pools: [None]),
    ],
)
def test_parts_that_do_not_fit_together_are_refused(part, change):
    refused(with_part(part, change))


@pytest.mark.skipif(not is_enabled(), reason="about arrays, which only machine code keeps")
@pytest.mark.parametrize(
    "change",
    [
        lambda part: part.astype("f4"),
        lambda part: part[:-1],
        lambda part: part.reshape(-1, 1),
        lambda part: part.tolist(),
        lambda part: np.array(1.0),
        lambda part: b"",
    ],
)
def test_cells_of_another_type_or_shape_are_refused(change):
    def swapped(pools):
        *parts, last = pools[0]
        return [[*parts, change(last)]]

    refused(with_part(3, swapped, compiled=True), filled(compiled=True))


def test_a_codec_that_cannot_read_its_bytes_makes_a_format_error():
    def read(data):
        return struct.unpack(">q", data)[0]

    @aggregate(state=object)
    class Packed:
        lift, combine = staticmethod(int), staticmethod(lambda older, newer: older + newer)
        codec = declare_codec(lambda number: struct.pack(">q", number), read)

    window = filled(aggregate=Packed)
    parts = opened(window.snapshot())
    parts[3][0][0][2] = b"short"
    refused(sealed(codec.encode(parts)), window, match="do not fit together")


@pytest.mark.parametrize("compiled", FORMS)
def test_rows_survive(compiled):
    window = filled(aggregate=Bloom, compiled=compiled)
    again = aggregator("two_stacks_lite", Bloom, compiled=compiled)
    again.restore(window.snapshot())
    assert np.array_equal(again.query(), window.query())
