"""Machine code and Python give the same answers, for every type of column and every length."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import sash
from sash.algebra.laws.sameness import same
from sash.compiling.compiled_cells import LINE, compiled_cells
from sash.compiling.jit import is_enabled
from sash.engine.aggregator import aggregator
from sash.testing.fifo_suite import fifo_algorithms
from sash.testing.monoids import Affine, ArgMax, Bloom, Max, Mean, Sum, folded, reciprocal, times
from sash.testing.strategies import columns

pytestmark = pytest.mark.skipif(not is_enabled(), reason="without the JIT there is nothing to compare with")

DTYPES = ["f8", "f4", "i8", "i4", "u1"]
WINDOW = 9  # larger than the smallest ring, so that rings grow and wrap
LENGTHS = [0, 1, WINDOW - 1, WINDOW, WINDOW + 1, 3 * WINDOW]
AGGREGATES = [Sum, Max, Mean, ArgMax, Affine, Bloom]


def slid(window, rows):
    """The answers of a window of WINDOW rows as it slides over some rows."""
    answers = [window.query()]
    for row in rows:
        if len(window) == WINDOW:
            window.evict()
        window.insert(*row)
        answers.append(window.query())
    return answers


def rows_of(values, aggregate):
    """Rows for an aggregate, positions beside the values if it wants two."""
    return [(value, k % 100) if aggregate is ArgMax else (value,) for k, value in enumerate(values)]


@pytest.mark.parametrize("aggregate", AGGREGATES, ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("dtype", DTYPES)
def test_compiled_equals_interpreted_for_every_type_and_length(dtype, aggregate):
    numbers = np.random.default_rng(11).integers(0, 50, max(LENGTHS)).astype(dtype)
    for length in LENGTHS:
        rows = rows_of(numbers[:length].tolist(), aggregate)
        compiled = slid(aggregator("two_stacks_lite", aggregate, dtype=dtype, compiled=True), rows)
        assert same(compiled, slid(aggregator("recalc", aggregate), rows))


@pytest.mark.parametrize("algorithm", fifo_algorithms())
@pytest.mark.parametrize("dtype", DTYPES)
@given(data=st.data())
@settings(max_examples=10)
def test_every_algorithm_compiled_equals_itself_interpreted(algorithm, dtype, data):
    rows = rows_of(data.draw(columns(dtype, max_size=40)).tolist(), Sum)
    compiled = slid(aggregator(algorithm, Sum, dtype=dtype, compiled=True), rows)
    assert compiled == slid(aggregator(algorithm, Sum, dtype=dtype), rows)


@given(st.lists(st.none() | st.floats(width=64), max_size=40))
@example([None, math.nan])
@settings(max_examples=50)
def test_nan_infinities_and_negative_zero_go_the_same_way_in_machine_code(values):
    rows = [(value,) for value in values]
    compiled = slid(aggregator("two_stacks_lite", Max, compiled=True), rows)
    interpreted = slid(aggregator("two_stacks_lite", Max), rows)
    assert same(compiled, interpreted)
    assert [_sign(answer) for answer in compiled] == [_sign(answer) for answer in interpreted]


def _sign(answer):
    return None if answer is None or math.isnan(answer) else math.copysign(1.0, answer)


@pytest.mark.parametrize("number", [2**62, -(2**62), 2**53 + 1, 0])
def test_whole_numbers_beyond_the_reach_of_floats_survive(number):
    window = aggregator("two_stacks_lite", Sum, dtype="i8", compiled=True)
    window.bulk_insert([number, 1, -1])
    assert window.query() == number


def test_a_number_that_does_not_fit_its_column_is_an_error():
    window = aggregator("two_stacks_lite", Sum, dtype="u1", compiled=True)
    with pytest.raises(OverflowError):
        window.insert(300)


@given(st.integers(0, 2**61 - 2), st.integers(0, 2**61 - 2))
def test_products_modulo_the_prime_never_overflow(x, y):
    prime = 2**61 - 1
    assert times(x, y) == x * y % prime
    assert folded(x + y) == (x + y) % prime
    if x:
        assert times(x, reciprocal(x)) == 1


@given(st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=30))
@settings(max_examples=50)
def test_composed_maps_are_the_same_number_compiled_and_interpreted(values):
    rows = [(value,) for value in values]
    compiled = slid(aggregator("daba_lite", Affine, dtype="i8", compiled=True), rows)
    assert compiled == slid(aggregator("recalc", Affine), rows)


def test_several_aggregates_in_one_structure_equal_each_alone():
    together = aggregator("two_stacks_lite", {"a": Sum, "b": Mean, "c": Max}, dtype="i8", compiled=True)
    rows = [(value,) for value in (3, None, 1, 4, None, None, 1, 5, 9, 2, 6, None)]
    answers = slid(together, rows)
    for name, aggregate in (("a", Sum), ("b", Mean), ("c", Max)):
        alone = slid(aggregator("two_stacks_lite", aggregate, dtype="i8", compiled=True), rows)
        assert [answer[name] for answer in answers] == alone


def test_rows_begin_at_a_line_of_the_caches():
    for rows in (1, 3, 1000):
        pool = compiled_cells(sash.bloom().bind(np.dtype("i8"))).allocate(rows)
        assert pool.ctypes.data % LINE == 0
        assert pool.shape[0] == rows
        assert pool.flags.c_contiguous
