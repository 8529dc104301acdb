"""Suffixes beside prefixes: the same answers as a recalculation, wherever chunks and periods end."""

from __future__ import annotations

import math

import numpy as np
import pytest

import sash
from sash.aggregators import beside
from sash.compiling.jit import interpreted
from sash.engine import parallel, sliding
from tests.aggregators.texts import text_of, texts, windows_of

LENGTHS = (*range(1, 10), 13, 16)  # of chunks
N = 5_000


@pytest.mark.parametrize("length", LENGTHS)
def test_rows_are_combined_in_order_with_their_counts(length, monkeypatch):
    monkeypatch.setattr(beside, "LONGEST", length)
    ops = texts([])
    for rows in (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 40):
        for n in {1, 2, 3, rows, rows + 1, rows + 2, rows + length, 2 * rows + 3, 3 * rows + length + 1}:
            cut, results = beside.plan(rows), ops.results(n)
            beside.build(ops, interpreted, is_answer=False)(text_of(n), 0, n, cut, beside.memory(ops, cut), results)
            assert results == [windows_of(text_of(n), rows)]


@pytest.mark.parametrize("begin", [40, 41, 47, 90])
def test_a_part_begins_where_there_is_a_window_before_it(begin, monkeypatch):
    monkeypatch.setattr(beside, "LONGEST", 7)
    ops, cut, column = texts([]), beside.plan(40), text_of(150)
    results = ops.results(150)
    beside.build(ops, interpreted, is_answer=False)(column, begin, 149, cut, beside.memory(ops, cut), results)
    assert results == [[None] * begin + windows_of(column, 40)[begin:149] + [None]]


@pytest.mark.parametrize("rows", [1024, 2**14])
def test_combines_hardly_more_than_five_times_a_row(rows):
    n, calls = 5 * rows, []
    ops, cut = texts(calls), beside.plan(rows)
    ops = ops._replace(combine=lambda *given: calls.append(1))
    beside.build(ops, interpreted, is_answer=True)("x" * n, 0, n, cut, beside.memory(ops, cut), ops.results(n))
    assert len(calls) < 5.1 * n


@pytest.mark.parametrize("rows", [513, 514, 600, 1024, 1151, 2048, 4999, 5000, 6000])
def test_sums_of_whole_numbers_are_exact_whatever_the_threads(rows, monkeypatch):
    values = np.random.default_rng(rows).integers(-1000, 1000, 3 * N).astype(float)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    wanted = sums[1:] - sums[np.maximum(np.arange(1, len(sums)) - rows, 0)]
    n_rows = np.minimum(np.arange(1, len(sums)), rows)
    for worthwhile in (1 << 19, 1 << 10):
        monkeypatch.setattr(parallel, "WORTHWHILE", worthwhile)
        assert np.array_equal(sash.slide(values, sash.sum(), rows=rows), wanted)
        assert np.array_equal(sash.slide(values, sash.mean(), rows=rows), wanted / n_rows)


@pytest.mark.parametrize("rows", [sliding.SIDE_BY_SIDE[0], sliding.SIDE_BY_SIDE[-1]])
def test_on_both_sides_of_a_change_of_scans_the_answers_are_exact(rows):
    values = np.random.default_rng(1).integers(-1000, 1000, 100_000).astype(float)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    for length in (rows - 1, rows, rows + 1):
        wanted = sums[1:] - sums[np.maximum(np.arange(1, len(sums)) - length, 0)]
        assert np.array_equal(sash.slide(values, sash.sum(), rows=length), wanted)


@pytest.mark.parametrize("hurts", [math.nan, math.inf, -math.inf])
def test_what_hurts_is_in_the_windows_that_hold_it_and_in_no_other(hurts):
    values, rows = np.ones(N), 700
    for row in (0, 3, 100, 2000, N - 1):
        given = values.copy()
        given[row] = hurts
        for aggregate in (sash.sum(), sash.mean()):
            expected = np.ones(N, bool)
            expected[row : row + rows] = False
            assert np.array_equal(np.isfinite(sash.slide(given, aggregate, rows=rows)), expected)


def test_sums_of_minus_zero_are_zero():
    assert not np.signbit(sash.slide(np.full(N, -0.0), sash.sum(), rows=600)).any()
