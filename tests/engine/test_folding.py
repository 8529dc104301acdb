"""Rows folded by group, against the definition: the rows of each group, one after the other, as they come."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sash
from sash.engine.folding import fold_groups
from sash.engine.tasks import tasks_of
from sash.errors import SumOverflowError
from sash.testing.counting import counting
from sash.testing.monoids import Affine, Concat

CODES = st.lists(st.integers(0, 9), max_size=60).map(lambda codes: np.array(codes, np.int64))
N_CODES = 12  # more than there are groups


def folded(aggregates, values, codes):
    return fold_groups(tasks_of(values, aggregates), codes, N_CODES)


def groups(codes):
    """The rows of each group, groups in the order of their first rows."""
    return [np.flatnonzero(codes == code).tolist() for code in dict.fromkeys(codes.tolist())]


def composed(values):
    return Affine.lower(functools.reduce(Affine.combine, map(Affine.lift, values)))


@given(codes=CODES)
def test_groups_are_in_the_order_of_their_first_rows_and_rows_as_they_come(codes):
    found = folded([Concat, sash.agg(Affine)], np.arange(len(codes)), codes)
    assert found.rows.tolist() == [rows[0] for rows in groups(codes)]
    concatenated, affine = (column.values.tolist() for column in found.answers)
    assert concatenated == [",".join(map(str, rows)) for rows in groups(codes)]
    assert affine == [composed(rows) for rows in groups(codes)]


@given(codes=CODES, salt=st.integers(0, 100))
def test_machine_code_takes_rows_in_the_same_order(codes, salt):
    values = np.arange(len(codes)) + salt
    found = folded(Affine, values, codes)
    assert found.answers[0].values.tolist() == [composed(values[rows].tolist()) for rows in groups(codes)]


@given(codes=CODES, valid=st.integers(0, 2**60 - 1))
def test_nulls_are_left_out_and_groups_of_nothing_else_are_null(codes, valid):
    there = np.array([bool(valid >> k & 1) for k in range(len(codes))], np.bool_)
    values = np.ma.MaskedArray(np.arange(len(codes)) * 1.5, ~there)
    maximum, n = folded([sash.max(), sash.count()], values, codes).answers
    wanted = [[row * 1.5 for row in rows if there[row]] for rows in groups(codes)]
    assert n.values.tolist() == [len(rows) for rows in groups(codes)]
    is_there = np.ones(len(wanted), np.bool_) if maximum.valid is None else maximum.valid
    found = [value if ok else None for value, ok in zip(maximum.values.tolist(), is_there, strict=True)]
    assert found == [max(each, default=None) for each in wanted]


@given(codes=CODES)
def test_a_combine_for_each_row_but_the_first_of_a_group(codes):
    counted, calls = counting(Concat)
    found = folded(counted, np.arange(len(codes)), codes)
    assert (calls.lift, calls.combine) == (len(codes), len(codes) - len(found.rows))


def test_nan_infinities_and_zeros_are_what_windows_make_of_them():
    values, codes = np.array([np.nan, 1.0, -0.0, 0.0, -np.inf]), np.array([0, 0, 1, 1, 2])
    low, high, total = (column.values for column in folded([sash.min(), sash.max(), sash.sum()], values, codes).answers)
    assert low.tolist() == [1.0, 0.0, -np.inf]
    assert np.signbit(low[1])
    assert np.isnan(high[0])
    assert np.isnan(total[0])
    assert not np.signbit(total[1])


def test_columns_that_must_not_be_written_are_only_read():
    values, codes = np.arange(4.0), np.array([1, 0, 1, 0])
    for array in (values, codes):
        array.flags.writeable = False
    assert folded(sash.sum(), values, codes).answers[0].values.tolist() == [2.0, 4.0]


def test_a_sum_of_integers_that_does_not_fit_raises():
    values, codes = np.array([2**62, 1, 2**62, 2**62]), np.array([0, 1, 0, 0])
    with pytest.raises(SumOverflowError):
        folded(sash.sum(), values, codes)
