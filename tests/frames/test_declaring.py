"""Windows and specs as values; and what a newcomer is told who gets one wrong."""

from __future__ import annotations

import dataclasses
import sys
from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sash
from sash.errors import DataError, DeclarationError, UnknownNameError, UnsupportedError

pytestmark = pytest.mark.usefixtures("interpreted")

W = sash.window(by="k", order_by="t")


def at_most_two(total, old):
    return total.n - old.n >= 2


SHOWN = [
    (W.rows(100), ".rows(100)"),
    (W.rows(100, min_rows=10), ".rows(100, min_rows=10)"),
    (W.range("60 min"), ".range('1 hour')"),
    (W.range(10, closed="right", ties="upto"), ".range(10, closed='right', ties='upto')"),
    (W.range("1h30m", rows=1000), ".range('1 hour 30 minutes', rows=1000)"),
    (W.range("1 hour", lag="10 minutes"), ".range('1 hour', lag='10 minutes')"),
    (W.everything(), ".everything()"),
    (W.session("30 minutes"), ".session('30 minutes')"),
    (W.delta("odometer", 100), ".delta('odometer', 100)"),
    (W.delta("odometer", 100, ties="upto"), ".delta('odometer', 100, ties='upto')"),
    (W.since("is_reset"), ".since('is_reset')"),
    (W.evict_while(at_most_two, n=sash.count()), ".evict_while(at_most_two, n=count())"),
    (W.range("1 hour").every("1 minute"), ".range('1 hour').every('1 minute')"),
    (W.range("1 hour").every(rows=10), ".range('1 hour').every(rows=10)"),
    (W.tumbling("1 hour", origin="2024-01-01T00:15"), ".tumbling('1 hour', origin='2024-01-01T00:15:00')"),
]


@pytest.mark.parametrize(("window", "shown"), SHOWN, ids=[shown for _, shown in SHOWN])
def test_a_window_shows_itself_as_it_is_written(window, shown):
    assert repr(window) == "sash.window(by='k', order_by='t')" + shown


@pytest.mark.parametrize("window", [window for window, _ in SHOWN if "evict" not in repr(window)], ids=repr)
def test_what_is_shown_makes_an_equal_window(window):
    again = eval(repr(window), {"sash": sash})
    assert again == window
    assert hash(again) == hash(window)


def test_windows_differ_in_whatever_they_differ_in():
    windows = [window for window, _ in SHOWN]
    assert len(set(windows)) == len(windows)
    assert W.range("1 hour") == W.range(timedelta(hours=1)) == W.range(np.timedelta64(60, "m"))
    assert W.range("1 hour") != sash.window(order_by="t").range("1 hour")


def test_windows_and_specs_cannot_be_changed():
    spec = W.rows(3).agg(n=sash.count())
    for value, name in ((W, "by"), (spec, "forced")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, name, "x")


def test_a_spec_is_a_value_too():
    spec = W.rows(3).agg(n=sash.count(), top=sash.max("x").where("paid"))
    assert spec == W.rows(3).agg(n=sash.count(), top=sash.max("x").where("paid"))
    assert hash(spec) == hash(W.rows(3).agg(n=sash.count(), top=sash.max("x").where("paid")))
    assert spec.algorithm("daba_lite") != spec
    text = "sash.window(by='k', order_by='t').rows(3).agg(n=count(), top=max('x').where('paid'))"
    assert repr(spec) == text
    streamed = spec.algorithm("daba_lite").stream(lateness="10 minutes", late="raise")
    assert repr(streamed) == (text + ".algorithm('daba_lite').stream(lateness='10 minutes', late='raise')")


def test_a_batch_does_not_look_at_how_a_stream_answers():
    spec = W.rows(2).agg(n=sash.count())
    table = pa.table({"k": ["a", "a"], "t": [1, 2]})
    assert spec.stream(emit="eager", lateness="1 hour")(table).equals(spec(table))


def test_a_policy_slides_a_window():
    table = pa.table({"k": ["a"] * 4 + ["b"], "t": [1, 2, 3, 4, 0], "x": [1, 2, 3, 4, 5]})
    window = W.evict_while(at_most_two, n=sash.count())
    assert window.agg(total=sash.sum("x"))(table)["total"].to_pylist() == [1, 3, 5, 7, 5]


def test_together_prints_and_compares():
    hour, day = W.range("1 hour").agg(h=sash.count()), W.range("1 day").agg(d=sash.count())
    assert sash.together(hour, day) == sash.together(hour, day)
    assert repr(sash.together(hour, day)) == f"sash.together({hour!r}, {day!r})"
    assert sash.together(sash.together(hour), day) == sash.together(hour, day)


def test_grids_together_are_one_table():
    every = {"k": ["a", "a", "b"], "t": [1, 7, 3], "x": [1, 2, 4]}
    short = W.range(5).every(5).agg(n=sash.count())
    long = W.range(10).every(5).agg(total=sash.sum("x"))
    assert sash.together(short, long)(pa.table(every)).to_pydict() == {
        "k": ["a", "a", "b"], "t": [5, 10, 5], "n": [1, 1, 1], "total": [1, 3, 4],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("origin", "wanted"),
    [
        (None, datetime(2024, 1, 2)),
        ("6 hours", datetime(2024, 1, 1, 6)),
        ("2024-03-01T06:00", datetime(2024, 1, 1, 6)),
        (datetime(2000, 1, 1, 6), datetime(2024, 1, 1, 6)),
        (pd.Timestamp("2000-01-01 06:00"), datetime(2024, 1, 1, 6)),
        (np.datetime64("2000-01-01T06"), datetime(2024, 1, 1, 6)),
    ],
)
def test_a_grid_has_its_points_where_its_origin_says(origin, wanted):
    table = pa.table({"t": [datetime(2024, 1, 1, 3)]})
    found = sash.window(order_by="t").range("1 day").every("1 day", origin=origin).agg(n=sash.count())(table)
    assert found["t"].to_pylist() == [wanted]


def test_an_origin_without_zone_is_local_time_in_the_zone_of_the_column():
    zoned = pa.array([datetime(2024, 1, 1, 3, tzinfo=UTC)], pa.timestamp("us", "Asia/Tokyo"))  # noon in Tokyo
    spec = sash.window(order_by="t").tumbling("1 day", origin="2024-01-01").agg(n=sash.count())
    found = spec(pa.table({"t": zoned}))
    assert found.schema.field("t").type == zoned.type
    assert [each.as_py().isoformat() for each in (found["t_start"][0], found["t"][0])] == [
        "2024-01-01T00:00:00+09:00", "2024-01-02T00:00:00+09:00",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("column", "step", "wanted"),
    [
        (pa.array([datetime(2024, 1, 1).date()]), "12 hours", pa.timestamp("s")),
        (pa.array([datetime(2024, 1, 1).date()]), "2 days", pa.date32()),
        (pa.array([0], pa.timestamp("s")), "250 ms", pa.timestamp("ms")),
        (pa.array([0], pa.duration("s")), "500 us", pa.duration("us")),
        (pa.array([1.5]), 0.5, pa.float64()),
        (pa.array([1], pa.int16()), 2, pa.int16()),
    ],
)
def test_points_of_a_grid_have_the_type_of_the_column_if_they_are_among_its_values(column, step, wanted):
    found = sash.window(order_by="t").tumbling(step).agg(n=sash.count())(pa.table({"t": column}))
    assert (found.schema.field("t").type, found["n"].to_pylist()) == (wanted, [1])


def test_an_explanation_says_what_runs_and_why():
    spec = W.range("1 hour").agg(n=sash.count(), top=sash.max("x"), often=sash.mode("x"))
    for told in (spec.explain(), spec.explain(pl.DataFrame({"k": ["a"], "t": [datetime(2024, 1, 1)], "x": [1]}))):
        assert repr(told) == str(told)
        for word in ("range('1 hour')", "two_stacks_lite", "n, top", "combine a row", "bytes", "otherwise"):
            assert word in told
    assert "x int64" in told
    assert "daba_lite" in spec.algorithm("daba_lite").explain()


@pytest.mark.parametrize("window", [window for window, _ in SHOWN], ids=repr)
def test_every_window_can_be_explained_without_a_table(window):
    assert repr(window.extent) in window.agg(n=sash.count(), flag=sash.any("f")).explain()


# --- mistakes --------------------------------------------------------------------------------------


MISTAKES = {
    "no order": (lambda: sash.window(by="k"), "a window needs an order"),
    "an empty order": (lambda: sash.window(order_by=[]), "order_by is empty"),
    "a number for a column": (lambda: sash.window(by=1, order_by="t"), "by must be the name of a column, got 1"),
    "a key twice": (lambda: sash.window(by=["k", "k"], order_by="t"), "by names 'k' twice"),
    "no extent": (lambda: W.agg(n=sash.count()), "comes after how far back the window reaches: .rows(100)"),
    "two extents": (lambda: W.rows(3).range("1 hour"), "this window is rows(3) already"),
    "no rows": (lambda: W.rows(0), "rows(...) must be a positive integer, got 0"),
    "a duration for rows": (lambda: W.rows("1 hour"), "For a length of time use range('1 hour')"),
    "a negative span": (lambda: W.range("-1 hour"), "the span of range must be more than zero, got '-1 hour'"),
    "a span of zero": (lambda: W.range(0), "the span of range must be more than zero"),
    "a month": (lambda: W.range("1 month"), "months and years differ. Say it in days"),
    "a gap of zero": (lambda: W.session(timedelta(0)), "the gap of a session must be more than zero"),
    "a grid of zero": (lambda: W.rows(3).every(0), "the step of a grid must be more than zero, got 0"),
    "a grid of no rows": (lambda: W.rows(3).every(rows=0), "every(rows=...) must be a positive integer"),
    "a grid of nothing": (lambda: W.rows(3).every(), "every('1 minute'), or rows, as in every(rows=10)"),
    "two grids": (lambda: W.tumbling("1 hour").every("1 minute"), "answers by tumbling('1 hour') already"),
    "a grid before its window": (lambda: W.every("1 hour"), ".every(...) comes after"),
    "a session on a grid": (lambda: W.session("1 hour").every("1 hour"), "has no meaning at an instant"),
    "an unknown end": (lambda: W.range(1, closed="neither"), "closed must be one of both, right, left, none"),
    "an unknown tie": (lambda: W.everything(ties="first"), "ties must be one of peers, upto"),
    "a negative lag": (lambda: W.range(1, lag=-1), "lag must be zero or more"),
    "a policy that is none": (lambda: W.evict_while(3, n=sash.count()), "evict_while needs a function"),
    "a policy of nothing": (lambda: W.evict_while(at_most_two), "needs the aggregates its policy looks at"),
    "nothing to compute": (lambda: W.rows(3).agg(), "agg() computes nothing"),
    "no name": (lambda: W.rows(3).agg(sash.count()), "Name each answer, as in agg(rides=sash.count())"),
    "Python's own sum": (lambda: W.rows(3).agg(s=sum), "takes an aggregate such as sash.sum('x')"),
    "a text": (lambda: W.rows(3).agg(s="x"), "takes an aggregate such as sash.sum('x') or sash.count(), got 'x'"),
    "no column": (lambda: W.rows(3).agg(s=sash.max()), "names no column to read. Write sash.max('x')"),
    "no payload": (lambda: W.rows(3).agg(s=sash.argmax("x")), "sash.argmax('x', 'ride_id')"),
    "an unknown algorithm": (lambda: W.rows(3).agg(n=sash.count()).algorithm("daba_light"), "Did you mean 'daba_lite'"),
    "an unknown way to emit": (lambda: W.rows(3).agg(n=sash.count()).stream(emit="now"), "emit must be one of final"),
    "an unknown way to fail": (lambda: W.rows(3).agg(n=sash.count()).stream(failing="no"), "failing must be one of"),
    "a checkpoint that is no path": (lambda: W.rows(3).agg(n=sash.count()).stream(checkpoint=1), "is the path"),
    "a lateness without unit": (lambda: W.rows(3).agg(n=sash.count()).stream(lateness=5), "lateness needs a unit"),
    "nothing together": (lambda: sash.together(), "together() needs specs"),
    "a window together": (lambda: sash.together(W.rows(3)), "Add .agg(...) to the window first"),
    "other keys together": (
        lambda: sash.together(W.rows(3).agg(n=sash.count()), sash.window(order_by="t").rows(3).agg(m=sash.count())),
        "have the same by and order_by",
    ),
    "rows and grids together": (
        lambda: sash.together(W.rows(3).agg(n=sash.count()), W.tumbling(3).agg(m=sash.count())),
        "one answers at every row and another tumbling(3)",
    ),
    "a name twice together": (
        lambda: sash.together(W.rows(3).agg(n=sash.count()), W.rows(4).agg(n=sash.count())),
        "two specs both answer 'n'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_declaration_that_makes_no_sense_is_told_so_at_once(mistake):
    make, told = MISTAKES[mistake]
    with pytest.raises(DeclarationError) as caught:
        make()
    assert told in str(caught.value)


TABLE = {
    "k": ["a", "b"], "t": [datetime(2024, 1, 1), datetime(2024, 1, 2)], "i": [1, 2], "s": ["x", "y"],
    "f": [1.0, float("nan")], "flag": [True, False], "fall": [2, 1],
}  # fmt: skip


def windowed(**by):
    return sash.window(**{"order_by": "t", **by})


CALLS = {
    "an unknown key": (windowed(by="key").rows(3), UnknownNameError, "by: unknown column 'key'"),
    "an unknown order": (windowed(order_by="time").rows(3), UnknownNameError, "order_by: unknown column 'time'"),
    "an unknown mark": (windowed().since("flags"), UnknownNameError, "column 'flags'. Did you mean 'flag'?"),
    "a duration on integers": (windowed(order_by="i").range("1 hour"), DeclarationError, "if it counts seconds, 3600"),
    "a number on times": (windowed().range(3600), DeclarationError, "Write '3600 seconds'"),
    "a span on texts": (windowed(order_by="s").range(1), DataError, "Parse it into a timestamp or a number first"),
    "a session on texts": (windowed(order_by="s").session("1 hour"), DataError, "or count rows with rows(...)"),
    "NaN for an order": (windowed(order_by="f").rows(2), DataError, "row 1 has"),
    "marks that are no truth": (windowed().since("i"), DataError, "since('i') needs a boolean column"),
    "a delta of time on integers": (windowed().delta("i", "1 hour"), DeclarationError, "whose unit only you know"),
    "a delta that falls": (windowed().delta("fall", 1), DataError, "row 1 has 1 after 2 in row 0. Order by it"),
    "a zoned origin without zones": (
        windowed().tumbling("1 day", origin="2024-01-01T00:00+01:00"), DeclarationError, "as the clock on the wall",
    ),
    "a time for the origin of integers": (
        windowed(order_by="i").tumbling(2, origin="2024-01-01"), DeclarationError, "give a number or a duration",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mistake", CALLS)
@pytest.mark.parametrize("make", [pa.table, pl.DataFrame, pd.DataFrame])
def test_a_window_that_does_not_fit_the_table_is_told_why(mistake, make):
    window, error, told = CALLS[mistake]
    with_nan = pd.arrays.ArrowExtensionArray(pa.array([1.0, float("nan")]))
    given = TABLE if make is not pd.DataFrame else {**TABLE, "f": with_nan}
    with pytest.raises(error) as caught:
        window.agg(n=sash.count())(make(given))
    assert told in str(caught.value)


def test_names_that_would_be_lost_are_refused():
    with pytest.raises(DeclarationError, match=r"the answer 'i' would replace a column .* agg\(i_window=...\)"):
        windowed().rows(2).agg(i=sash.sum("i"))(pl.DataFrame(TABLE))
    with pytest.raises(DeclarationError, match="the answer 't_start' would replace"):
        windowed().tumbling("1 day").agg(t_start=sash.count())(pl.DataFrame(TABLE))
    assert windowed().tumbling("1 day").agg(i=sash.sum("i"))(pl.DataFrame(TABLE))["i"].to_list() == [1, 2]


@pytest.mark.parametrize(
    ("aggregate", "told"),
    [
        (sash.sum("I"), "sum('I'): unknown column 'I'"),
        (sash.argmax("i", "falls"), "argmax('i', 'falls'): unknown column 'falls'. Did you mean 'fall'?"),
        (sash.count().where("flags"), "count().where('flags'): unknown column 'flags'. Did you mean 'flag'?"),
    ],
)
def test_an_aggregate_of_an_unknown_column_says_which(aggregate, told):
    with pytest.raises(UnknownNameError) as caught:
        windowed().rows(2).agg(answer=aggregate)(pa.table(TABLE))
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("table", "told"),
    [
        (TABLE, "Call spec.columns(...) with it"),
        (pl.LazyFrame(TABLE), "Call spec(frame.collect())"),
        (pl.Series([1]), "is a single column"),
        (pd.Series([1]), "is a single column"),
        (pd.DataFrame(TABLE).groupby("k"), "say by=... in sash.window"),
        ([1, 2], "cannot read a table from builtins.list"),
        (None, "Pass a pandas or Polars DataFrame"),
    ],
)
def test_what_is_no_table_is_answered_with_what_to_pass(table, told):
    with pytest.raises(DataError) as caught:
        windowed().rows(2).agg(n=sash.count())(table)
    assert told in str(caught.value)


def test_a_spark_table_without_the_packages_for_it_is_told_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sash.spark", None)
    spark = type("DataFrame", (), {"__module__": "pyspark.sql.classic.dataframe"})
    with pytest.raises(UnsupportedError, match=r"sash\[spark\]"):
        windowed().rows(2).agg(n=sash.count())(spark())


def test_pandas_columns_of_mixed_objects_and_of_one_name_are_refused():
    count = windowed().rows(2).agg(n=sash.count("o"))
    with pytest.raises(DataError, match="objects of several types"):
        count(pd.DataFrame({"t": [1, 2], "o": [1, "a"]}))
    twice = pd.DataFrame([[1, 2, 3]], columns=["t", "o", "o"])
    with pytest.raises(DataError, match="2 columns of the name 'o'"):
        count(twice)
