"""Revisions of rounded answers: a float that was added up in another order is no news, a row in the window is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sash
from sash.streams import chunks, large
from sash.streams.plans import Plan
from sash.streams.touching import touched
from tests.streams.rows import AGGREGATES, SCHEMA, arrivals
from tests.streams.simulating import Stream, split
from tests.streams.test_parity import WINDOWS

pytestmark = pytest.mark.usefixtures("interpreted")

N = 400
FLOATS = pa.schema(
    [("id", pa.int64()), ("k", pa.int64()), ("ts", pa.timestamp("us")), ("x", pa.float64()), ("op", pa.string())]
)
W = sash.window(by="k", order_by="ts")
LATE = {  # windows, and how many other rows the first of all rows is in the windows of
    "range": (W.range("10 ms"), 10),
    "closed right": (W.range("10 ms", closed="right"), 9),
    "lag": (W.range("5 ms", lag="20 ms"), 6),
    "rows": (W.rows(8), 7),
    "two bounds": (W.range("10 ms", rows=8, closed="left"), 8),
    "at least": (W.range("10 ms", min_rows=5), 7),  # those that had fewer before, and have no more now, stay null
    "everything": (W.everything(), N - 1),
}
FEW = settings(max_examples=max(settings.default.max_examples // 5, 1))


def floats():
    values = np.random.default_rng(1).random(N)
    times = pa.array(np.arange(N) * 1_000).cast(pa.timestamp("us"))
    return pa.table(
        {"id": np.arange(N), "k": np.zeros(N, int), "ts": times, "x": values, "op": pa.nulls(N, pa.string())},
        schema=FLOATS,
    )


def running(window, **options):
    spec = window.agg(total=sash.sum("x"), middle=sash.mean("x"))
    spec = spec.stream(emit="revise", lateness="1 hour", **options)
    return Stream(spec, FLOATS, {"total": pa.float64(), "middle": pa.float64()})


@pytest.mark.parametrize("is_large", [False, True], ids=["small", "large"])
@pytest.mark.parametrize("name", LATE)
def test_a_late_row_revises_the_windows_it_is_in_and_no_others(name, is_large, monkeypatch):
    if is_large:
        monkeypatch.setattr(chunks, "ROWS", 32)
        monkeypatch.setattr(large, "LARGE", 64)
    window, n_revised = LATE[name]
    stream, table = running(window), floats()
    for part in split(table.slice(1), [150]):
        stream.push(part)
    assert bool(stream.shards[0].get("spine", 0)) == is_large
    step = stream.push(table.slice(0, 1))
    assert step.counts["revisions"] == n_revised
    assert [row["revision"] for row in step.rows() if row["id"] == 0] == [0]


def test_a_deletion_revises_the_windows_it_was_in_and_no_others():
    stream, table = running(W.range("10 ms"), changes="op"), floats()
    stream.push(table)
    gone = table.slice(100, 1).set_column(4, "op", pa.array(["delete"]))
    assert sorted(row["id"] for row in stream.push(gone).rows()) == list(range(100, 111))


@pytest.mark.parametrize("name", WINDOWS)
@FEW
@given(table=arrivals(), marks=st.integers(0, 2**24))
def test_rows_are_touched_if_a_marked_one_is_in_their_window(name, table, marks):
    window = WINDOWS[name]
    window = replace(window, extent=replace(window.extent, min_rows=0))  # else short windows list nothing
    spec = window.agg(listed=AGGREGATES["listed"])
    given, marked = table.to_pylist(), np.array([bool(marks >> n & 1) for n in range(table.num_rows)], np.bool_)
    wanted = [any(marked[n] for n in ids) for ids in spec(table).column("listed").to_pylist()]
    keys = [repr([row[name] for name in window.by]) for row in given]
    order = sorted(range(len(given)), key=lambda n: (keys[n], [given[n][name] for name in window.order_by], n))
    numbers = np.unique([keys[n] for n in order], return_inverse=True)[1]
    rows = table.take(pa.array(order, pa.int64())).combine_chunks()
    found = touched(Plan((spec,), SCHEMA, {}), rows, numbers, marked[order])
    assert found.tolist() == [wanted[n] for n in order]
