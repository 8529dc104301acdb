"""Rows sorted by key and order, compiled: brought together by places, or sorted by NumPy, to the same effect."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import sash
from sash.frames import keys

W = sash.window(by="k", order_by="t")


@pytest.mark.parametrize("n_keys", [1, 3, 50_000])
@pytest.mark.parametrize("is_by_time", [True, False])
def test_many_rows_are_sorted_by_counting(monkeypatch, n_keys, is_by_time):
    """Compiled, and against NumPy's stable sort: rows by time and rows by nothing, one column and two."""
    monkeypatch.setattr("sash.engine.placing.SMALLEST", 0)
    random = np.random.default_rng(n_keys)
    n = 20_000
    codes = keys.Codes(random.integers(0, n_keys, n), n_keys)
    times = np.sort(random.integers(0, 500, n))
    times = times if is_by_time else random.permutation(times)
    for columns in ([times], [times > 7, times], [times.astype(np.float64)]):
        wanted = np.lexsort([*reversed(columns), codes.codes])
        moves, begins = keys.sort(codes, columns)
        assert (moves is None) == np.array_equal(wanted, np.arange(n))
        if moves is not None:
            assert np.array_equal(moves.numbers, wanted)
            assert np.array_equal(moves.sorted(times), times[wanted])
            assert np.array_equal(moves.put_back(moves.sorted(times)), times)
        assert np.array_equal(begins, np.diff(codes.codes[wanted], prepend=-1) != 0)


@pytest.mark.parametrize("n_keys", [1, 7])
@pytest.mark.parametrize("is_by_time", [True, False])
def test_few_rows_are_sorted_to_the_same_effect(n_keys, is_by_time):
    random = np.random.default_rng(n_keys)
    codes = keys.Codes(random.integers(0, n_keys, 300), n_keys)
    times = np.sort(random.integers(0, 50, 300))
    times = times if is_by_time else random.permutation(times)
    wanted = np.lexsort([times, codes.codes])
    moves, begins = keys.sort(codes, [times])
    assert np.array_equal(np.arange(300) if moves is None else moves.numbers, wanted)
    assert np.array_equal(begins, np.diff(codes.codes[wanted], prepend=-1) != 0)


@pytest.mark.parametrize("window", [W.rows(5, min_rows=3), W.range("3 seconds")])
def test_rows_that_were_brought_together_are_answered_as_any_others(monkeypatch, window):
    """The same table by places and by NumPy's sort: numbers, nulls, texts, records and lists go there and back."""
    random = np.random.default_rng(5)
    table = pa.table(
        {
            "k": random.integers(3, 9, 400),
            "t": pa.array(np.sort(random.integers(0, 10**5, 400)), pa.timestamp("ms")),
            "x": pa.array(random.integers(-9, 9, 400).astype(np.float64), mask=random.random(400) < 0.2),
            "name": random.choice(["a", "b", "c"], 400),
            "ok": random.random(400) < 0.5,
        }
    )
    spec = window.agg(four=sash.m4("x"), middle=sash.median("x"), latest=sash.last("name"), names=sash.collect("ok"))
    wanted = spec(table)
    monkeypatch.setattr("sash.engine.placing.SMALLEST", 0)
    assert spec(table).equals(wanted)


@pytest.mark.parametrize(
    ("arrow_type", "leasts"),
    [
        (pa.int8(), [0, 1, 40, -7]),
        (pa.uint8(), [0, 1, 40]),
        (pa.int32(), [0, 1, 40, -7]),
        (pa.int64(), [0, 1, 40, -7, 2**62]),
        (pa.uint64(), [0, 1, 40, 2**62, 2**63 + 5]),
        (pa.timestamp("us"), [0, 1, 40, -7, 2**62]),
    ],
    ids=str,
)
def test_integers_in_a_narrow_range_are_coded_by_themselves_wherever_it_begins(arrow_type, leasts):
    whole = pa.uint64() if pa.types.is_unsigned_integer(arrow_type) else pa.int64()
    values = [[least, least + 3, None, least + 3, least + 1] for least in leasts]
    for given in (*values, *([value for value in each if value is not None] for each in values)):
        codes, n_codes = keys.codes_of(pa.array(given, whole).cast(arrow_type))
        assert codes.dtype == np.int64
        assert 0 <= codes.min() <= codes.max() < n_codes <= 12
        assert [codes[0] == code for code in codes] == [given[0] == value for value in given]
        assert len(set(codes.tolist())) == len(set(given))


@pytest.mark.parametrize("categories", [["a", "b", "c"], ["a", "b", "a"], ["a", None, "c"], [7, 5, 6]], ids=str)
@pytest.mark.parametrize("places", [[0, 1, 2, 0], [2, 2, 0, 1], [0, None, 1, None]], ids=str)
def test_categories_are_coded_by_what_they_stand_for(categories, places):
    array = pa.DictionaryArray.from_arrays(pa.array(places, pa.int8()), pa.array(categories))
    codes, n_codes = keys.codes_of(array)
    values = array.to_pylist()
    assert codes.dtype == np.int64
    assert 0 <= codes.min() <= codes.max() < n_codes
    assert np.array_equal(codes[:, None] == codes, [[one == other for other in values] for one in values])


def test_booleans_that_are_all_true_are_one_key():
    assert len(set(keys.codes_of(pa.array([True, True])).codes.tolist())) == 1


def test_a_sorted_table_is_not_sorted_again():
    codes = keys.Codes(np.array([0, 0, 1, 2, 2]), 3)
    assert keys.sorting(codes, [np.array([1, 1, 0, 5, 6])]) is None
    assert keys.sorting(codes, [np.array([1, 0, 0, 5, 6])]).tolist() == [1, 0, 2, 3, 4]


def test_rows_without_a_place_in_the_order_are_counted_first_whatever_stands_under_the_null():
    given = pa.array([2.0, np.nan, 1.0], mask=np.array([False, True, False]))
    found = sash.window(order_by="t").rows(2).agg(total=sash.sum("x"))(pa.table({"t": given, "x": [1.0, 2.0, 4.0]}))
    assert found["total"].to_pylist() == [5.0, 2.0, 6.0]
