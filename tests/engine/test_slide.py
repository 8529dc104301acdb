"""`sash.slide` against recalculation, for every way in, every window and every algorithm."""

from __future__ import annotations

import fractions
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sash
from sash.aggregators import ALGORITHMS, boundary_scan
from sash.compiling.jit import is_enabled
from sash.engine import parallel, sliding

LENGTHS = (0, 1, 2, 7, 8, 9, 40, 333)
WINDOWS = (1, 2, 3, 8, 9, 33, 1000)
ANY = [name for name, a in ALGORITHMS.items() if a.card.needs == "associative" and a.card.order == "in order"]


@sash.aggregate(state={"a": "i8", "b": "i8"})
class Affine:
    """Composition of x -> a x + b modulo a small prime: any lost or swapped row shows."""

    identity = (1, 0)

    def lift(x):
        return (x % 997 + 1, (x * 31 + 7) % 1009)

    def combine(older, newer):
        return (older[0] * newer[0] % 65521, (newer[0] * older[1] + newer[1]) % 65521)


@sash.aggregate(state="f8")
class Largest:
    """A user's copy of max."""

    identity = -math.inf

    def lift(x):
        return x

    def combine(older, newer):
        return newer if newer > older else older


def recalculated(values, rows, answer):
    return [answer(values[max(0, i + 1 - rows) : i + 1]) for i in range(len(values))]


def fold_affine(values):
    partial = (1, 0)
    for value in values:
        partial = Affine.combine(partial, Affine.lift(int(value)))
    return partial


@pytest.mark.parametrize("algorithm", ANY)
@pytest.mark.parametrize("rows", WINDOWS)
def test_every_algorithm_composes_rows_in_order(algorithm, rows, monkeypatch):
    monkeypatch.setattr(parallel, "SHORTEST", 1)
    for n in LENGTHS:
        values = np.random.default_rng(n).integers(0, 1000, n)
        answers = sash.slide(values, Affine, rows=rows, algorithm=algorithm)
        assert [tuple(answer) for answer in answers.tolist()] == recalculated(values, rows, fold_affine)


@pytest.mark.parametrize("longest", [4, 16, 64])
def test_a_scan_in_many_short_chunks_gives_the_same(longest, monkeypatch):
    monkeypatch.setattr(boundary_scan, "LONGEST", longest)
    for n, rows in itertools.product((63, 500, 1001), (17, 64, 65, 100, 127, 500)):
        values = np.random.default_rng(n).integers(0, 1000, n)
        answers = sash.slide(values, Affine, rows=rows, algorithm="sba")
        assert [tuple(answer) for answer in answers.tolist()] == recalculated(values, rows, fold_affine)


@pytest.mark.parametrize("rows", [1, 2, 16, 100])
def test_graded_aggregates_agree_with_numpy(rows):
    values = np.random.default_rng(0).normal(1e6, 3.0, 400)
    aggregates = {"mean": sash.mean(), "var": sash.var(population=True), "std": sash.std()}
    found = sash.slide(values, aggregates, rows=rows)
    assert np.allclose(found["mean"], recalculated(values, rows, np.mean), rtol=1e-14)
    assert np.allclose(found["var"], recalculated(values, rows, np.var), rtol=1e-7, atol=1e-9)
    wanted = recalculated(values, rows, lambda window: np.std(window, ddof=1) if len(window) > 1 else np.nan)
    assert np.allclose(found["std"], wanted, rtol=1e-7, equal_nan=True)


@given(
    values=st.lists(st.one_of(st.integers(-50, 50), st.none()), max_size=30),
    rows=st.integers(1, 35),
)
def test_nulls_are_ignored_and_a_window_of_nulls_is_null(values, rows):
    present = recalculated(values, rows, lambda window: [value for value in window if value is not None])
    column = np.ma.MaskedArray([value or 0 for value in values], [value is None for value in values], dtype="i8")
    found = sash.slide(column, [sash.sum(), sash.max()], rows=rows)
    assert found[0].tolist() == [sum(window) if window else None for window in present]
    assert found[1].tolist() == [max(window) if window else None for window in present]


def test_the_three_conventions_of_time_windows():
    """Spark's RANGE and DuckDB, Polars' default, and pandas with both bounds, as measured on them."""
    times, values = [0, 10, 10, 20, 30, 30, 70], np.array([1, 2, 4, 8, 16, 32, 64])
    window = {"times": times, "span": 20}
    assert sash.slide(values, sash.sum(), **window).tolist() == [1, 7, 7, 15, 62, 62, 64]
    assert sash.slide(values, sash.sum(), closed="right", **window).tolist() == [1, 7, 7, 14, 56, 56, 64]
    assert sash.slide(values, sash.sum(), closed="right", ties="upto", **window).tolist() == [1, 3, 7, 14, 24, 56, 64]
    assert sash.slide(values, sash.sum(), ties="upto", **window).tolist() == [1, 3, 7, 15, 30, 62, 64]
    left = sash.slide(values, sash.sum(), closed="left", **window)
    assert left.tolist() == [None, 1, 1, 7, 14, 14, None]


@pytest.mark.parametrize("algorithm", [name for name in ANY if not ALGORITHMS[name].card.fixed])
def test_time_windows_compose_rows_in_order(algorithm):
    generator = np.random.default_rng(3)
    times = np.cumsum(generator.integers(0, 4, 200))
    values = generator.integers(0, 1000, 200)
    answers = sash.slide(values, Affine, times=times, span=17, algorithm=algorithm)
    for i, answer in enumerate(answers.tolist()):
        inside = (times >= times[i] - 17) & (times <= times[i])
        assert tuple(answer) == fold_affine(values[inside])


def test_several_aggregates_share_a_structure():
    values = np.array([3.0, 1.0, 2.0, 5.0])
    largest, total = sash.slide(values, [sash.max(), sash.sum()], rows=2, algorithm="daba_lite")
    assert largest.tolist() == [3, 3, 2, 5]
    assert total.tolist() == [3, 4, 3, 7]


def test_columns_are_found_by_name_and_conditions_apply():
    columns = {"x": [1, 2, 3, 4], "paid": [True, False, True, True]}
    found = sash.slide(columns, {"paid": sash.sum("x").where("paid"), "all": sash.sum("x"), "n": sash.count()}, rows=2)
    assert found["paid"].tolist() == [1, 1, 3, 7]
    assert found["all"].tolist() == [1, 3, 5, 7]
    assert found["n"].tolist() == [1, 2, 2, 2]


def test_argmax_gives_positions_unless_told_otherwise():
    values = np.array([1.0, 5.0, 5.0, 2.0, 1.0])
    assert sash.slide(values, sash.argmax(), rows=3).tolist() == [0, 1, 1, 1, 2]
    names = np.array([10, 20, 30, 40, 50])
    assert sash.slide((values, names), sash.argmax(), rows=3).tolist() == [10, 20, 20, 20, 30]


@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4", "i2", "u1", "u8", "?", ">f8"])
def test_types_of_input_and_output(dtype):
    values = np.array([1, 0, 1, 1], dtype)
    largest = sash.slide(values, sash.max(), rows=2)
    assert largest.dtype == np.dtype(dtype).newbyteorder("=")
    assert largest.tolist() == [1, 1, 1, 1]
    total = sash.slide(values, sash.sum(), rows=3)
    assert total.dtype == ("f8" if np.dtype(dtype).kind == "f" else "i8")
    assert total.tolist() == [1, 1, 2, 2]


def test_read_only_and_strided_input_work():
    values = np.arange(20.0)
    values.flags.writeable = False
    assert sash.slide(values[::2], sash.max(), rows=2).tolist() == values[::2].tolist()
    assert sash.slide(values[::-1], sash.max(), rows=3)[5] == values[::-1][3]


def test_several_answers_a_row_and_null_ones():
    x, y = np.array([1.0, 2.0, 3.0, 3.0]), np.array([2.0, 4.0, 6.0, 7.0])
    found = sash.slide((x, y), sash.trend(), rows=2)
    assert found["slope"].tolist() == [None, 2.0, 2.0, None]
    masked = np.ma.MaskedArray([5, 1, 9], [False, True, True])
    assert sash.slide(masked, sash.range(), rows=1).tolist() == [0, None, None]


def test_arrow_columns_with_and_without_nulls():
    pa = pytest.importorskip("pyarrow")
    found = sash.slide(pa.array([1, None, 3, None, None]), sash.sum(), rows=2)
    assert found.tolist() == [1, 1, 3, 3, None]
    chunked = pa.chunked_array([[1.0, 2.0], [4.0]])
    assert sash.slide(chunked, sash.sum(), rows=2).tolist() == [1, 3, 6]
    assert sash.slide(pa.array([None, None], pa.int64()), sash.sum(), rows=2).tolist() == [None, None]


def test_objects_are_aggregated_interpreted():
    assert sash.slide(list("abcd"), sash.concat(), rows=3).tolist() == ["a", "ab", "abc", "bcd"]
    assert sash.slide(["b", None, "a"], sash.max(), rows=2).tolist() == ["b", "b", "a"]
    halves = [fractions.Fraction(1, 2)] * 3
    assert sash.slide(halves, sash.sum(), rows=2).tolist() == [halves[0], 1, 1]


def test_an_integer_sum_widens_or_raises_but_never_wraps():
    large = np.array([2**62, 2**62, -(2**62), 5])
    with pytest.raises(sash.SumOverflowError, match="row 1"):
        sash.slide(large, sash.sum(), rows=2)
    assert sash.slide(large, sash.sum(), rows=1).tolist() == large.tolist()
    back = np.array([2**62, 2**62, -(2**62), -(2**62)])
    assert sash.slide(back[[0, 2, 1, 3]], sash.sum(), rows=4).tolist() == [2**62, 0, 2**62, 0]


def test_the_exact_sum_does_not_depend_on_the_algorithm():
    values = np.random.default_rng(5).normal(0, 1, 300) * 10.0 ** np.random.default_rng(6).integers(-200, 200, 300)
    wanted = recalculated(values, 50, math.fsum)
    for algorithm in ("two_stacks_lite", "daba", "subtract_on_evict", "flat_fit"):
        assert sash.slide(values, sash.sum(exact=True), rows=50, algorithm=algorithm).tolist() == wanted


def test_nan_leaves_the_window_with_its_row():
    values = np.array([1.0, np.nan, 2.0, 3.0, 4.0])
    for aggregate in (sash.sum(), sash.mean(), sash.max()):
        found = sash.slide(values, aggregate, rows=2)
        assert np.isnan(found).tolist() == [False, True, True, False, False]
    assert sash.slide(values, sash.min(), rows=2).tolist()[1:3] == [1.0, 2.0]


def test_a_users_aggregate_is_an_aggregate():
    values = np.random.default_rng(1).random(100)
    assert sash.slide(values, Largest, rows=9).tolist() == recalculated(values, 9, max)


@pytest.mark.skipif(not is_enabled(), reason="interpreted, any Python goes")
def test_what_cannot_be_compiled_is_named_with_a_remedy():
    @sash.aggregate(state="f8")
    class Worded:
        identity = 0.0

        def lift(x):
            return len(f"{x} minutes")

        def combine(older, newer):
            return older + newer

    with pytest.raises(sash.DeclarationError, match=r"Worded cannot be compiled: .* state=object"):
        sash.slide(np.zeros(3), Worded, rows=2)


def test_functions_of_pythons_own_and_helpers_are_compiled_too():
    @sash.aggregate(state="f8")
    class Product:
        identity = 0.0
        lift = math.log
        lower = math.exp

        def combine(older, newer):
            return added(older, newer)

    assert np.allclose(sash.slide(np.array([1.0, 2.0, 3.0]), Product, rows=2), [1, 2, 6])


def added(older, newer):
    return older + newer


def test_no_rows_give_no_answers():
    assert sash.slide(np.empty(0), sash.max(), rows=3).tolist() == []
    assert sash.slide([], sash.sum(), rows=3).tolist() == []
    assert sash.slide(np.empty(0, "i8"), sash.sum(), times=[], span=3).tolist() == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rows": 0}, "rows must be a positive integer, got 0"),
        ({"rows": -3}, "got -3"),
        ({"rows": 2.5}, "got 2.5"),
        ({}, "a window needs a length"),
        ({"times": [1, 2]}, "a window needs a length"),
        ({"rows": 3, "span": 2}, "not both"),
        ({"times": [1], "span": 2}, "2 values but 1 times"),
        ({"rows": 3, "algorithm": "two_stack_lite"}, "Did you mean 'two_stacks_lite'"),
        ({"times": [1, 2], "span": 2, "algorithm": "sba"}, "two_stacks_lite"),
    ],
)
def test_windows_that_make_no_sense_are_refused(arguments, message):
    with pytest.raises(sash.DeclarationError, match=message):
        sash.slide(np.array([1.0, 2.0]), sash.max(), **arguments)


def test_columns_that_do_not_fit_are_refused():
    with pytest.raises(sash.DataError, match="differ in length"):
        sash.slide((np.zeros(3), np.zeros(4)), sash.cov(), rows=2)
    with pytest.raises(sash.DataError, match="complex128"):
        sash.slide(np.zeros(3, complex), sash.sum(), rows=2)
    with pytest.raises(sash.DataError, match="one dimension"):
        sash.slide(np.zeros((3, 3)), sash.sum(), rows=2)
    with pytest.raises(sash.UnknownNameError, match="Did you mean 'price'"):
        sash.slide({"price": [1.0]}, sash.sum("prices"), rows=2)
    with pytest.raises(sash.DataError, match="dict of columns"):
        sash.slide(np.zeros(3), sash.sum().where("paid"), rows=2)


def test_an_unknown_aggregate_names_the_nearest():
    with pytest.raises(AttributeError, match="Did you mean 'argmax'"):
        sash.argmx  # noqa: B018
    with pytest.raises(sash.DeclarationError, match="is no aggregate"):
        sash.slide(np.zeros(3), "max", rows=2)


def test_an_inverse_is_needed_by_those_who_subtract():
    with pytest.raises(sash.UnsupportedError, match="two_stacks_lite"):
        sash.slide(np.zeros(3), sash.max(), rows=2, algorithm="subtract_on_evict")
    with pytest.raises(sash.UnsupportedError, match="drift"):
        sash.slide(np.zeros(3), sash.sum(), rows=2, algorithm="subtract_on_evict")
    assert sash.slide(np.arange(4), sash.sum(), rows=2, algorithm="subtract_on_evict").tolist() == [0, 1, 3, 5]


TROUBLE = [1.0, 0.0, 4.0, -1.0, 2.0, np.nan, 3.0, np.inf, 1e308, 1.7e308, np.finfo(float).max, 5e-324, -0.0, 2.0]


@pytest.mark.parametrize("rows", [1, 2, 3, 20])
def test_logarithms_of_whole_columns_give_the_means_that_those_of_single_rows_give(rows):
    for column in (np.array(TROUBLE), np.array([0.5, 0.0, 2.0, -1.0], np.float32), np.array([1, 2, 0, 4, 9])):
        by_row = sash.slide(column, sash.geomean(), rows=rows, algorithm="two_stacks_lite")
        np.testing.assert_allclose(sash.slide(column, sash.geomean(), rows=rows), by_row, rtol=1e-12)
    masked = sash.slide(np.ma.array([1.0, 4.0], mask=[False, False]), sash.geomean(), rows=rows)
    assert isinstance(masked, np.ma.MaskedArray)
    assert masked[0] == 1.0


@pytest.mark.parametrize("rows", [1, 2, 15, 16, 17, 48, 49, 60])
def test_logarithms_are_taken_of_some_rows_after_the_other(monkeypatch, rows):
    monkeypatch.setattr(sliding, "AT_ONCE", 10)
    monkeypatch.setattr(sliding, "FAR", 1)
    column = np.random.default_rng(rows).random(333) + 0.5
    by_row = sash.slide(column, sash.geomean(), rows=rows, algorithm="two_stacks_lite")
    np.testing.assert_allclose(sash.slide(column, sash.geomean(), rows=rows), by_row, rtol=1e-12)


def test_logarithms_are_taken_by_several_threads(monkeypatch):
    monkeypatch.setenv("SASH_THREADS", "2")
    column = np.random.default_rng(3).random(2 * parallel.WORTHWHILE + 7) + 0.5
    found = sash.slide(column, sash.geomean(), rows=1_000)
    totals = np.concatenate([[0.0], np.cumsum(np.log(column))])
    wanted = np.exp((totals[1_000:] - totals[:-1_000]) / 1_000)
    np.testing.assert_allclose(found[999:], wanted, rtol=1e-9)
