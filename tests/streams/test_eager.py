"""Eager answers against a model in plain Python: of the rows that have come, which are in the window of this one.

The model shares nothing with the engine. It also says what becomes of late rows, and that a late row changes no answer
that was given: each row is answered once, with the micro-batch it comes in.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sash
from tests.streams.rows import LATENESS_US, SCHEMA, TICK, arrivals, cuts
from tests.streams.simulating import Stream, announced, on_time, split

pytestmark = pytest.mark.usefixtures("interpreted")

W = sash.window(by="k", order_by=["ts", "id"])
FEW = settings(max_examples=max(settings.default.max_examples // 2, 1))


def upto(rows, row):
    """Rows not after this one, in order."""
    return [each for each in rows if (each["us"], each["id"]) <= (row["us"], row["id"])]


def of_rows(rows, row):
    return upto(rows, row)[-3:]


def of_range(rows, row):
    return [each for each in rows if 0 <= row["us"] - each["us"] <= 8 * TICK]


def of_range_upto(rows, row):
    return [each for each in upto(rows, row) if row["us"] - each["us"] < 8 * TICK]


def of_lag(rows, row):
    return [each for each in rows if 4 * TICK <= row["us"] - each["us"] <= 10 * TICK]


def of_session(rows, row):
    window = [each for each in rows if each["us"] == row["us"]]
    for each in reversed([each for each in rows if each["us"] < row["us"]]):
        if window[0]["us"] - each["us"] > 4 * TICK:
            break
        window.insert(0, each)
    return window


def of_since(rows, row):
    window = upto(rows, row)
    marks = [place for place, each in enumerate(window) if each["b"]]
    return window[marks[-1] if marks else 0 :]


def of_everything(rows, row):
    return [each for each in rows if each["us"] <= row["us"]]


WINDOWS = {
    "rows": (W.rows(3), of_rows),
    "range": (W.range("4 ms"), of_range),
    "range, closed right, ties upto": (W.range("4 ms", closed="right", ties="upto"), of_range_upto),
    "lag": (W.range("3 ms", lag="2 ms"), of_lag),
    "session": (W.session("2 ms"), of_session),
    "since": (W.since("b"), of_since),
    "everything": (W.everything(), of_everything),
}


@pytest.mark.parametrize("name", WINDOWS)
@FEW
@given(table=arrivals(within=4 * LATENESS_US), sizes=cuts, n_shards=st.integers(1, 3))
def test_an_eager_answer_is_over_the_rows_that_have_come_and_are_not_late(name, table, sizes, n_shards):
    window, model = WINDOWS[name]
    spec = window.agg(ids=sash.collect("id"), total=sash.sum("i"), top=sash.max("i"))
    spec = spec.stream(emit="eager", lateness=f"{LATENESS_US} us")
    stream, come = Stream(spec, SCHEMA, announced(spec, table), n_shards), []
    parts = split(table, sizes)
    for part, fits in zip(parts, on_time(parts, "ts", LATENESS_US), strict=True):
        times = part.column("ts").cast("int64").to_pylist()
        rows = [{**row, "us": us} for row, us in zip(part.to_pylist(), times, strict=True)]
        new = [row for row, fit in zip(rows, fits, strict=True) if fit]
        come = sorted([*come, *new], key=lambda row: (row["us"], row["id"]))
        step = stream.push(part)
        found = {row["id"]: (row["ids"], row["total"], row["top"]) for row in step.rows()}
        assert found == {row["id"]: answer(model([each for each in come if each["k"] == row["k"]], row)) for row in new}
        assert (len(step.rows()), step.counts["late"]) == (len(new), len(rows) - len(new))
    assert stream.finish().rows() == []


def answer(window):
    values = [row["i"] for row in window if row["i"] is not None]
    return [row["id"] for row in window], sum(values) if values else None, max(values, default=None)
