"""Histogram, Bloom filter, HyperLogLog, count-min: laws, errors, and one hash for two worlds."""

from __future__ import annotations

import math
from collections import Counter
from functools import lru_cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sash.algebra.hashing import hash_float, hash_integer, hash_value, hasher, mixed
from sash.algebra.sketching import (
    bloom,
    bloom_contains,
    count_min,
    count_min_estimate,
    histogram,
    hyperloglog,
)  # fmt: skip
from sash.compiling.jit import entry, is_enabled
from sash.engine.aggregator import aggregator
from sash.errors import DataError, DeclarationError, UnsupportedError

SKETCHES = {
    "histogram": histogram(None, -10, 10, 8),
    "bloom": bloom(bits=1024),
    "hyperloglog": hyperloglog(precision=5),
    "count_min": count_min(depth=3, width=50),
}
each_sketch = pytest.mark.parametrize("sketch", SKETCHES.values(), ids=SKETCHES)
both_forms = pytest.mark.parametrize("compiled", [False, True], ids=["interpreted", "compiled"])
numbers = st.floats() | st.floats(-12, 12) | st.integers(-20, 20).map(float)
integers = st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 5)


def lifted(monoid, x):
    row = np.full(monoid.state.width, 99, monoid.state.dtype)
    monoid.lift(x, row)
    return row


def combined(monoid, older, newer):
    out = np.full(monoid.state.width, 99, monoid.state.dtype)
    monoid.combine(older, newer, out)
    return out


def folded(monoid, values):
    row = np.full(monoid.state.width, monoid.identity, monoid.state.dtype)
    for x in values:
        monoid.combine(row, lifted(monoid, x), row)
    return row


@each_sketch
@given(parts=st.lists(st.lists(numbers, max_size=5), min_size=3, max_size=3))
def test_sketches_obey_the_laws_of_a_commutative_monoid(sketch, parts):
    monoid = sketch.bind(np.dtype("f8"))
    x, y, z = (folded(monoid, part) for part in parts)
    before = x.copy(), y.copy()
    identity = folded(monoid, [])
    xy = combined(monoid, x, y)
    assert np.array_equal(combined(monoid, xy, z), combined(monoid, x, combined(monoid, y, z)))
    assert np.array_equal(combined(monoid, identity, x), x)
    assert np.array_equal(combined(monoid, x, identity), x)
    assert np.array_equal(xy, combined(monoid, y, x))
    assert np.array_equal(x, before[0])
    assert np.array_equal(y, before[1])
    monoid.combine(x, y, y)
    assert np.array_equal(y, xy)


@each_sketch
@given(older=st.lists(numbers), newer=st.lists(numbers))
def test_counting_sketches_give_back_what_was_added(sketch, older, newer):
    monoid = sketch.bind(np.dtype("f8"))
    assert (monoid.invert is not None) == sketch.card.invertible == (monoid.state.dtype.kind == "i")
    if monoid.invert is not None:
        x, y = folded(monoid, older), folded(monoid, newer)
        whole = combined(monoid, x, y)
        monoid.invert(whole, x, whole)
        assert np.array_equal(whole, y)


@each_sketch
@both_forms
@given(values=st.lists(numbers, min_size=1, max_size=30), size=st.integers(1, 8))
def test_a_sliding_window_holds_the_sketch_of_its_rows(sketch, compiled, values, size):
    window = aggregator("two_stacks_lite", sketch, compiled=compiled)
    monoid = sketch.bind(None)
    for end, x in enumerate(values, start=1):
        window.insert(x)
        if len(window) > size:
            window.evict()
        row = folded(monoid, values[max(0, end - size) : end])
        assert np.array_equal(window.query(), monoid.lower(row) if monoid.lower else row)


@each_sketch
@both_forms
def test_a_window_comes_back_from_its_bytes(sketch, compiled):
    window = aggregator("two_stacks_lite", sketch, compiled=compiled)
    window.bulk_insert([1.5, -2.0, None, 7.25, 1.5])
    window.evict()
    window.insert(3.0)
    again = aggregator("two_stacks_lite", sketch, compiled=compiled)
    again.restore(window.snapshot())
    window.evict()
    again.evict()
    assert np.array_equal(window.query(), again.query())
    assert len(again) == 4


@each_sketch
@both_forms
def test_a_window_without_values_answers_null_or_counts_none(sketch, compiled):
    nothing = 0.0 if sketch.name == "hyperloglog" else None
    window = aggregator("two_stacks_lite", sketch, compiled=compiled)
    assert window.query() == nothing
    window.insert(None)
    assert window.query() == nothing


@each_sketch
def test_one_declaration_makes_one_monoid(sketch):
    assert sketch.bind(np.dtype("f8")) is sketch.bind(np.dtype("f8"))
    assert bloom("x", bits=128) == bloom("x", bits=128)
    assert bloom(bits=128).bind(None) is bloom(bits=128).bind(None)


@given(integers, numbers)
def test_numbers_hash_alike_interpreted_and_compiled(integer, number):
    assert machine_code(hash_integer)(integer) == hash_integer(integer) == hash_value(integer)
    assert machine_code(hash_float)(number) == hash_float(number) == hash_value(number)


@pytest.mark.parametrize("dtype", ["?", "i1", "u1", "i8", "u8", "f4", "f8"])
def test_columns_of_every_type_of_number_hash_as_their_values_do(dtype):
    extremes = [0, 1] if dtype == "?" else [np.finfo(dtype).max, 0.5] if dtype[0] == "f" else None
    column = np.array(extremes or [np.iinfo(dtype).min, np.iinfo(dtype).max], dtype)
    compiled_hash = machine_code(hasher(np.dtype(dtype)))
    assert [compiled_hash(x) for x in column] == [hash_value(x) for x in column.tolist()]


@lru_cache
def machine_code(function):
    return entry(function) if is_enabled() else function


@given(st.integers(-(2**64), 2**64) | st.integers(-(10**30), 10**30))
def test_numbers_that_are_equal_hash_alike(n):
    if -(2**63) <= n < 2**64:
        assert hash_value(n) == hash_integer(n)
    if float(n) == n:
        assert hash_value(n) == hash_value(float(n)) == hash_float(float(n))


def test_zeros_hash_alike_and_so_do_all_nans_and_truth_values():
    quiet = np.array([0x7FF8000000000001, 0xFFF8000000000000], "u8").view("f8")
    assert len({hash_value(x) for x in (0, 0.0, -0.0, False, np.False_, np.int8(0))}) == 1
    assert len({hash_value(x) for x in (math.nan, *quiet)}) == 1
    assert hash_value(np.float32(0.5)) == hash_value(0.5)
    assert hash_value(True) == hash_value(1)


def test_values_of_different_kinds_hash_apart():
    values = ["1", b"1", 1, 1.5, ("1",), (1,), 2**64, 2**100 + 1, -(2**63) - 1, math.inf, -math.inf, math.nan]
    assert len({hash_value(value) for value in values}) == len(values)
    with pytest.raises(UnsupportedError, match="object"):
        hash_value(object())


def test_hashes_never_change_because_snapshots_hold_them():
    assert hash_value(0.1) == (3447010036, 3824836424)
    assert hash_value("sash") == (2134112108, 2544370473)


def test_every_bit_of_a_value_moves_half_of_the_bits_of_its_hash():
    rng, flips = np.random.default_rng(5), np.zeros(64)
    for value in rng.integers(0, 2**63, 200):
        number = int(value)
        whole = _joined(mixed(number >> 32, number & 0xFFFFFFFF))
        for bit in range(64):
            other = number ^ (1 << bit)
            flips[bit] += (whole ^ _joined(mixed(other >> 32, other & 0xFFFFFFFF))).bit_count()
    assert np.abs(flips / 200 - 32).max() < 6 * 4 / math.sqrt(200)


def _joined(found):
    return found[0] << 32 | found[1]


@given(st.lists(numbers | st.text() | st.binary() | st.integers() | st.tuples(st.text(), st.integers())))
def test_a_bloom_filter_never_denies_what_was_there(values):
    row = folded(bloom(bits=256).bind(None), values)
    assert all(bloom_contains(row, value) for value in values)


def test_a_bloom_filter_claims_as_few_others_as_it_says():
    row = folded(bloom().bind(None), range(1000))
    claimed = sum(bloom_contains(row, value) for value in range(1000, 21000))
    expected = 20000 * (1 - math.exp(-4 * 1000 / 2**14)) ** 4
    assert 0.5 * expected < claimed < 1.5 * expected


def test_more_hashes_must_be_asked_for_with_as_many():
    row = folded(bloom(hashes=7).bind(None), ["a", "b"])
    assert bloom_contains(row, "a", hashes=7)
    assert not bloom_contains(row, "c", hashes=7)


@pytest.mark.parametrize("n", [1, 10, 100, 1000, 4000, 20000])
def test_hyperloglog_is_within_three_standard_errors(n):
    monoid = hyperloglog().bind(np.dtype("i8"))
    estimate = monoid.lower(folded(monoid, range(n)))
    assert abs(estimate - n) <= max(0.5, 3 * 1.04 / math.sqrt(4096) * n)


@pytest.mark.parametrize("n", [50, 300, 640, 900, 3000])
def test_hyperloglog_has_no_bias_where_the_classical_estimator_has(n):
    monoid = hyperloglog(precision=8).bind(None)
    estimates = [monoid.lower(folded(monoid, range(seed * 10**6, seed * 10**6 + n))) for seed in range(16)]
    assert abs(np.mean(estimates) / n - 1) < 4 * 1.04 / math.sqrt(256) / math.sqrt(16)
    assert np.std(np.array(estimates) / n) < 1.6 * 1.04 / math.sqrt(256)


@given(st.lists(st.text()), st.integers(1, 4))
def test_hyperloglog_does_not_count_a_value_twice(values, times):
    monoid = hyperloglog(precision=6).bind(None)
    assert np.array_equal(folded(monoid, values), folded(monoid, values * times))


def test_hyperloglog_reads_registers_from_empty_to_full():
    lower = hyperloglog(precision=4).bind(None).lower
    estimates = [lower(np.full(16, rank, np.uint8)) for rank in range(62)]
    assert estimates[0] == 0.0
    assert all(2 * a < 1.01 * b for a, b in pairwise(estimates[:58]))
    assert estimates[57] < estimates[61] < math.inf


@given(st.lists(st.integers(0, 30) | st.text(max_size=2), max_size=200))
def test_count_min_never_counts_too_few(values):
    row = folded(count_min(depth=2, width=16).bind(None), values)
    for value, n in Counter(values).items():
        assert count_min_estimate(row, value, depth=2) >= n


def test_count_min_is_seldom_beyond_its_bound():
    rng = np.random.default_rng(11)
    values = rng.zipf(1.3, 5000).tolist()
    row, truth = folded(count_min().bind(None), values), Counter(values)
    beyond = [value for value, n in truth.items() if count_min_estimate(row, value) > n + math.e * len(values) / 256]
    assert len(beyond) <= math.exp(-4) * len(truth)
    assert int(row.sum()) == 4 * len(values)


@given(
    st.lists(st.floats(-5, 5) | st.sampled_from([-1.0, -0.7, -0.1, 0.2, 0.8, 2.0])),
    st.sampled_from([(-1.0, 2.0, 10), (-1, 2, 3), (0.1, 0.7, 6), (-5.0, 5.0, 1)]),
)
def test_the_bins_are_those_of_numpy(values, bounds):
    low, high, bins = bounds
    row = folded(histogram("x", low, high, bins).bind(np.dtype("f8")), values)
    assert row[1:-1].tolist() == np.histogram(values, bins, (low, high))[0].tolist()
    assert row[0] == sum(x < low for x in values)
    assert row[-1] == sum(x > high for x in values)


def test_nan_and_infinities_fall_into_the_outer_bins():
    row = folded(histogram(None, 0, 1, 2).bind(None), [math.nan, math.inf, -math.inf, 1, 0, True])
    assert row.tolist() == [1, 1, 2, 2]


def test_columns_of_32_bits_are_binned_in_64():
    sketch = histogram(None, 0.1, 0.7, 6)
    window = aggregator("two_stacks_lite", sketch, dtype="f4", compiled=True)
    values = np.linspace(0.1, 0.7, 25, dtype="f4")
    window.bulk_insert(values.tolist())
    assert np.array_equal(window.query(), folded(sketch.bind(None), values))


def test_a_histogram_of_text_is_refused_but_other_sketches_take_it():
    with pytest.raises(DataError, match="histogram got values of type"):
        histogram("x").bind(np.dtype("U3"))
    assert np.array_equal(lifted(bloom().bind(np.dtype("U3")), "abc"), lifted(bloom().bind(None), "abc"))


@pytest.mark.parametrize(
    ("make", "wanted"),
    [
        (lambda: histogram("x", 1, 1, 5), "low < high"),
        (lambda: histogram("x", -1e308, 1e308, 5), "finite"),
        (lambda: histogram("x", 0, 1, 0), "bins=0"),
        (lambda: bloom("x", bits=100), "multiple of 64"),
        (lambda: bloom("x", bits=0), "bits=0"),
        (lambda: bloom("x", hashes=0), "hashes=0"),
        (lambda: hyperloglog("x", precision=3), "precision=3"),
        (lambda: count_min("x", depth=0), "depth=0"),
        (lambda: count_min("x", width=2.5), "width=2.5"),
    ],
)
def test_sizes_that_make_no_sense_are_refused(make, wanted):
    with pytest.raises(DeclarationError, match=wanted):
        make()


def test_reading_a_row_of_another_sketch_is_an_error():
    with pytest.raises(DataError, match="not a row of bloom"):
        bloom_contains(np.zeros(4, np.int64), 1)
    with pytest.raises(DataError, match="no count-min sketch of depth 3"):
        count_min_estimate(np.zeros(1024, np.int64), 1, depth=3)
