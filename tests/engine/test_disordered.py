"""Rows in order of arrival, against the definition: for every end of the window, every key, every late row."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import sash
from sash.engine import disordered
from sash.engine.disordered import AS_OF
from sash.testing.counting import counting
from sash.testing.monoids import Affine, Concat, Sum
from sash.windows.frames import CLOSED

KEYS = st.integers(0, 2)
TIMES = st.integers(-6, 12)  # few, so that equal times are frequent
ROWS = st.lists(st.tuples(TIMES, KEYS), min_size=1, max_size=40)


def holds(time, now, span, closed):
    """Whether a window that ends now holds a time."""
    age = 0 if now == time else now - time  # two infinite times may be the same
    after_start = age <= span if closed in ("both", "left") else age < span
    return after_start and (age >= 0 if closed in ("both", "right") else age > 0)


def members(times, i, span, closed, as_of, keys):
    """The definition: of what has arrived of its key, the rows in the window, in order of time."""
    arrived = [j for j in range(i + 1) if keys[j] == keys[i]]
    now = max(times[j] for j in arrived) if as_of == "newest" else times[i]
    return sorted((j for j in arrived if holds(times[j], now, span, closed)), key=lambda j: times[j])


def concatenated(values, rows):
    return ",".join(str(values[j]) for j in rows) if rows else None


def composed(values, rows):
    return Affine.lower(functools.reduce(Affine.combine, (Affine.lift(values[j]) for j in rows))) if rows else None


@pytest.mark.parametrize("closed", CLOSED)
@pytest.mark.parametrize("as_of", AS_OF)
@given(rows=ROWS, span=st.integers(0, 8))
def test_each_answer_is_that_of_what_had_arrived(closed, as_of, rows, span):
    times, keys = (list(column) for column in zip(*rows, strict=True))
    values = list(range(len(rows)))
    found = sash.slide(values, Concat, times=times, span=span, closed=closed, ordered=False, as_of=as_of)
    alone = [0] * len(rows)
    wanted = [concatenated(values, members(times, i, span, closed, as_of, alone)) for i in values]
    assert found.tolist() == wanted
    found = sash.slide(values, Concat, times=times, span=span, closed=closed, ordered=False, as_of=as_of, keys=keys)
    assert found.tolist() == [concatenated(values, members(times, i, span, closed, as_of, keys)) for i in values]


@pytest.mark.parametrize("closed", CLOSED)
@pytest.mark.parametrize("as_of", AS_OF)
@given(rows=ROWS, span=st.integers(0, 8))
@settings(max_examples=15)
def test_machine_code_composes_rows_in_order_of_time(closed, as_of, rows, span):
    times, keys = (list(column) for column in zip(*rows, strict=True))
    values = list(range(len(rows)))
    found = sash.slide(values, Affine, times=times, span=span, closed=closed, ordered=False, as_of=as_of, keys=keys)
    answers = [None if answer != answer else answer for answer in found.tolist()]  # all null, not compiled: all NaN
    assert answers == [composed(values, members(times, i, span, closed, as_of, keys)) for i in values]


@pytest.mark.parametrize("as_of", AS_OF)
@pytest.mark.parametrize("lateness", [0, 3, 40, 1000])
def test_long_columns_outgrow_the_first_room(as_of, lateness):
    generator = np.random.default_rng(lateness)
    n, span = 700, 150
    times = np.arange(n) - generator.integers(0, lateness + 1, n)
    values, keys = generator.integers(0, 1000, n), generator.integers(0, 2, n)
    found = sash.slide(values, Affine, times=times, span=span, ordered=False, as_of=as_of, keys=keys)
    values, times, keys = values.tolist(), times.tolist(), keys.tolist()
    for i in range(0, n, 7):
        assert found[i] == composed(values, members(times, i, span, "both", as_of, keys))


@pytest.mark.parametrize("closed", CLOSED)
@pytest.mark.parametrize("as_of", AS_OF)
def test_times_at_both_ends_of_int64(closed, as_of):
    low, high = -(2**63), 2**63 - 1
    times = [0, low, high, low + 1, high - 1, -1, low, high, 5]
    values = list(range(len(times)))
    spans = [0, 1, 2, 2**62, high - 1, high]
    columns = np.array(times)
    found = sash.slide(values, Concat, times=columns, span=spans, closed=closed, ordered=False, as_of=as_of)
    for span, answers in zip(spans, found, strict=True):
        wanted = [concatenated(values, members(times, i, span, closed, as_of, [0] * 9)) for i in values]
        assert answers.tolist() == wanted


FLOATS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, -0.0, 5e-324, 2.0**-53, 0.1, 0.2, 0.3, 1.0, 1.0 - 2.0**-53, 1e16, 1e16 + 2]),
    st.integers(-20, 20).map(lambda k: k * 0.1),
)


@pytest.mark.parametrize("closed", ["both", "right"])
@given(times=st.lists(FLOATS, min_size=1, max_size=12), span=st.one_of(FLOATS.map(abs), st.just(math.inf)))
@example(times=[0.9 * 2.0**-53, 1.0], span=1.0 - 2.0**-53)  # the first time in the window is far from 1.0 - span
@example(times=[-math.inf, 0.0, math.inf], span=1.0)
def test_floats_in_order_get_the_windows_of_ordered_input(closed, times, span):
    times = sorted(times)
    window = {"times": times, "span": span, "closed": closed}
    wanted = sash.slide(range(len(times)), Concat, ties="upto", **window)
    for as_of in AS_OF:
        found = sash.slide(range(len(times)), Concat, ordered=False, as_of=as_of, **window)
        assert found.tolist() == wanted.tolist()


@pytest.mark.parametrize("closed", CLOSED)
@pytest.mark.parametrize("as_of", AS_OF)
def test_infinite_times_and_spans(closed, as_of):
    inf, spans = math.inf, [0.0, 3.0, math.inf]
    for times in (
        [-inf, -5.0, 0.0, 5.0, inf, inf],
        [inf, 0.0, -inf, 5.0, -5.0, inf, -inf],
        [-inf, -inf, 1.0, -2.0, inf, 2.0],
        [-5.0, inf],
    ):
        values = list(range(len(times)))
        found = sash.slide(values, Concat, times=times, span=spans, closed=closed, ordered=False, as_of=as_of)
        for span, answers in zip(spans, found, strict=True):
            alone = [0] * len(times)
            wanted = [concatenated(values, members(times, i, span, closed, as_of, alone)) for i in values]
            assert answers.tolist() == wanted


def test_float_times_in_machine_code():
    generator = np.random.default_rng(3)
    times = np.round(generator.random(300) * 64) / 8  # dyadic, so that the definition is exact
    values = generator.integers(0, 1000, 300)
    found = sash.slide(values, Affine, times=times, span=1.5, ordered=False, as_of="row")
    alone = [0] * 300
    for i in range(300):
        assert found[i] == composed(values.tolist(), members(times.tolist(), i, 1.5, "both", "row", alone))


def test_datetimes_take_a_timedelta():
    times = np.array(["2018-06-01T10:00", "2018-06-01T12:00", "2018-06-01T11:00", "2018-06-01T09:00"], "M8[m]")
    window = {"times": times, "span": np.timedelta64(1, "h"), "ordered": False}
    assert sash.slide(list("abcd"), Concat, **window).tolist() == ["a", "b", "c,b", "c,b"]
    assert sash.slide(list("abcd"), Concat, as_of="row", **window).tolist() == ["a", "b", "a,c", "d"]


def test_a_late_row_outside_the_window_gets_the_window_as_it_is():
    window = {"times": [0, 100, 3, 100], "span": 10, "ordered": False}
    assert sash.slide(list("abcd"), Concat, **window).tolist() == ["a", "b", "b", "b,d"]


@pytest.mark.parametrize(
    "keys",
    [
        [7, -3, 7, 7, -3],
        np.array([1, 0, 1, 1, 0], np.uint8),
        ["b", "a", "b", "b", "a"],
        [1.5, 0.5, 1.5, 1.5, 0.5],
        [(1, "x"), None, (1, "x"), (1, "x"), None],
        np.array(["2018-01-02", "2018-01-01", "2018-01-02", "2018-01-02", "2018-01-01"], "M8[D]"),
        [True, False, True, True, False],
    ],
    ids=lambda keys: type(keys[0]).__name__,
)
def test_keys_of_any_kind_have_windows_of_their_own(keys):
    window = {"times": [5, 50, 3, 6, 45], "span": 2, "ordered": False}
    found = sash.slide([1, 2, 4, 8, 16], Concat, keys=keys, as_of="row", **window)
    assert found.tolist() == ["1", "2", "4", "1,8", "16"]


def test_several_aggregates_nulls_and_conditions(monkeypatch):
    monkeypatch.setenv("SASH_JIT", "0")  # compiling them would take longer than all else here
    columns = {"x": np.ma.MaskedArray([1, 2, 4, 8], [False, False, True, False]), "paid": [True, False, True, True]}
    aggregates = {"all": sash.sum("x"), "paid": sash.sum("x").where("paid"), "n": sash.count()}
    found = sash.slide(columns, aggregates, times=[3, 9, 1, 2], span=1, ordered=False, as_of="row")
    assert found["all"].tolist() == [1, 2, None, 8]
    assert found["paid"].tolist() == [1, None, None, 8]
    assert found["n"].tolist() == [1, 1, 1, 2]


def test_what_no_later_row_asks_for_is_forgotten(monkeypatch):
    sizes = []

    def spied(wanted):
        trees, drive = disordered.build_trees(wanted), made(wanted)

        def driven(tree, *arguments):
            done = drive(tree, *arguments)
            sizes.append(trees.timed.size(tree))
            return done

        return driven

    made = disordered._driver
    monkeypatch.setattr(disordered, "_driver", spied)
    times = [*range(1000), 995]  # the last row reaches back to 985
    sash.slide(times, Concat, times=times, span=10, ordered=False, as_of="row")
    assert sizes[-1] == 15
    assert max(sizes) == 15


def test_rows_in_order_cost_a_constant_number_of_combines(monkeypatch):
    monkeypatch.setenv("SASH_JIT", "0")  # machine code cannot be counted
    for n in (500, 5000):
        counted, calls = counting(Sum)
        sash.slide(range(n), counted, times=np.arange(n), span=n // 4, ordered=False)
        assert calls.combine < 14 * n


def test_no_rows_give_no_answers():
    assert sash.slide(np.empty(0), sash.max(), times=[], span=3, ordered=False).tolist() == []
    assert [a.tolist() for a in sash.slide([], sash.sum(), times=[], span=[3, 4], ordered=False)] == [[], []]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"as_of": "now"}, sash.DeclarationError, "as_of must be one of newest, row, got 'now'"),
        ({"closed": "inner"}, sash.DeclarationError, "closed must be one of"),
        ({"ties": "upto"}, sash.DeclarationError, "no row after this one is there yet"),
        ({"times": None}, sash.DeclarationError, "ordered=False needs times"),
        ({"span": None}, sash.DeclarationError, "ordered=False needs times"),
        ({"times": None, "span": None, "rows": 3}, sash.DeclarationError, "ordered=False needs times"),
        ({"times": [1]}, sash.DeclarationError, "2 values but 1 times"),
        ({"keys": [1]}, sash.DataError, "2 times but 1 keys"),
        ({"span": -1}, sash.DeclarationError, "must not be negative"),
        ({"span": []}, sash.DeclarationError, "has no spans"),
        ({"times": [1.0, math.nan]}, sash.DataError, "row 1 has no time"),
        ({"times": np.ma.MaskedArray([1, 2], [False, True])}, sash.DataError, "row 1 has no time"),
        ({"times": ["a", "b"]}, sash.DataError, "numbers or datetimes"),
        ({"algorithm": "daba"}, sash.UnsupportedError, "fiba can"),
        ({"ordered": True, "keys": [1, 2]}, sash.UnsupportedError, "go with ordered=False"),
        ({"ordered": True, "as_of": "row"}, sash.UnsupportedError, "go with ordered=False"),
        ({"every": 2, "keys": [1, 2]}, sash.UnsupportedError, "without every="),
    ],
)
def test_what_makes_no_sense_is_refused(arguments, error, message):
    window = {"times": [2, 1], "span": 5, "ordered": False, **arguments}
    with pytest.raises(error, match=message):
        sash.slide(np.array([1.0, 2.0]), sash.max(), **window)


def test_an_unknown_argument_is_refused():
    with pytest.raises(TypeError, match="orderd"):
        sash.slide(np.zeros(2), sash.max(), rows=2, orderd=False)
