"""Four windows at a time: the same answers as a recalculation, wherever pieces, chunks and blocks end."""

from __future__ import annotations

import math

import numpy as np
import pytest

import sash
from sash.aggregators import boundary_scan, four_windows
from sash.compiling.jit import interpreted
from sash.compiling.straight import is_straight
from sash.engine import parallel
from tests.aggregators.texts import text_of, texts, windows_of

FOUR_PIECES = 4 * four_windows.FOUR * four_windows.PIECE
WINDOWS = (*range(8, 17), 67, 68, 71, 72, 73, 100, 1023, 1024, 1027)


@pytest.mark.parametrize("rows", [8, 9, 10, 11, 15, 37, 38, 39, 40, 203])
def test_rows_are_combined_in_order_with_their_counts(rows, monkeypatch):
    monkeypatch.setattr(four_windows, "PIECE", 8)
    monkeypatch.setattr(boundary_scan, "LONGEST", 4)
    monkeypatch.setattr(four_windows, "FEW", 3)
    for n in (1, 3, 7, rows - 1, rows, rows + 1, rows + 5, rows + 35, rows + 130):
        column = text_of(n)
        ops = texts([])
        cut = four_windows.plan(rows)
        results = ops.results(n)
        four_windows.build(ops, interpreted)(column, 0, n, cut, four_windows.memory(ops, cut), results)
        assert results == [windows_of(column, rows)]


@pytest.mark.parametrize("begin", [40, 41, 42, 43])
def test_a_part_begins_where_there_is_a_window_before_it(begin, monkeypatch):
    monkeypatch.setattr(four_windows, "PIECE", 8)
    monkeypatch.setattr(four_windows, "FEW", 3)
    column = text_of(150)
    ops, cut = texts([]), four_windows.plan(40)
    results = ops.results(150)
    four_windows.build(ops, interpreted)(column, begin, 149, cut, four_windows.memory(ops, cut), results)
    assert results == [[None] * begin + windows_of(column, 40)[begin:149] + [None]]


@pytest.mark.parametrize("rows", [1024, 4096, 2**14])
def test_combines_less_than_five_times_a_row(rows):
    n, calls = 5 * rows, []
    ops, cut = texts(calls), four_windows.plan(rows)
    ops = ops._replace(combine=lambda *given: calls.append(1), lower=lambda results, i, partial, n: None)
    four_windows.build(ops, interpreted)("x" * n, 0, n, cut, four_windows.memory(ops, cut), None)
    assert len(calls) < 5 * n


@pytest.mark.parametrize("rows", WINDOWS)
def test_sums_of_whole_numbers_are_exact_whatever_the_threads(rows, monkeypatch):
    values = np.random.default_rng(rows).integers(-1000, 1000, FOUR_PIECES + rows + 3).astype(float)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    wanted = sums[1:] - sums[np.maximum(np.arange(1, len(sums)) - rows, 0)]
    for worthwhile in (1 << 19, 1 << 10):
        monkeypatch.setattr(parallel, "WORTHWHILE", worthwhile)
        assert np.array_equal(sash.slide(values, sash.sum(), rows=rows), wanted)


@pytest.mark.parametrize("rows", [8, 16, 67, 200])
def test_spreads_agree_with_numpy(rows):
    values = np.random.default_rng(rows).normal(1e6, 3.0, FOUR_PIECES)
    views = np.lib.stride_tricks.sliding_window_view(values, rows)
    for aggregate, wanted in ((sash.mean(), views.mean(1)), (sash.std(), views.std(1, ddof=1))):
        assert np.allclose(sash.slide(values, aggregate, rows=rows)[rows - 1 :], wanted, rtol=1e-9)


@pytest.mark.parametrize("hurts", [math.nan, math.inf, -math.inf])
def test_what_hurts_is_in_the_windows_that_hold_it_and_in_no_other(hurts):
    values, rows = np.ones(FOUR_PIECES), 68
    for row in (0, 3, 100, 2000, FOUR_PIECES - 1):
        given = values.copy()
        given[row] = hurts
        for aggregate in (sash.sum(), sash.mean(), sash.std()):
            found = np.isfinite(sash.slide(given, aggregate, rows=rows))
            expected = np.ones(len(values), bool)
            expected[row : row + rows] = False
            expected[0] &= aggregate.card.name != "std"  # null for one row
            assert np.array_equal(found, expected)


def test_sums_of_minus_zero_are_zero():
    assert not np.signbit(sash.slide(np.full(FOUR_PIECES, -0.0), sash.sum(), rows=16)).any()


def test_plain_arithmetic_is_told_from_branches_and_calls():
    def branches(older, newer):
        return newer if newer > older else older

    def divides(older, newer):
        return older % newer

    def calls(x):
        return math.log(x)

    def adds(older, newer):
        return (older[0] + newer[0], older[1] * 2.0)

    def adds_by_another(older, newer):
        return adds(older, newer)

    def circles(x):
        return circles(x)

    assert is_straight(adds)
    assert is_straight(adds_by_another)
    assert not any(is_straight(each) for each in (branches, divides, calls, circles, math.log, None))


def test_what_four_windows_share_is_scanned_as_rows_are():
    assert four_windows.plan(2**20).shared == boundary_scan.plan(2**18 - 1)
    assert four_windows.plan(2**20 + 3).rest == 3
