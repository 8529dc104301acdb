"""Keys that fall silent: after more than `idle` a key begins anew, as if it were another one, however a stream is cut.

The model gives each stretch of a key between two such silences a number of its own, and asks batch.
"""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sash
from sash.streams import chunks, large
from sash.streams.plans import Plan
from sash.streams.shard import take
from tests.streams.rows import AGGREGATES, LATENESS_US, SCHEMA, TICK, arrivals, cuts
from tests.streams.simulating import FAR_AHEAD, Memory, Stream, announced, multiset, split, with_hash

pytestmark = pytest.mark.usefixtures("interpreted")

W = sash.window(by="k", order_by=["ts", "id"])
ROWS = {
    "rows": W.rows(3),
    "range": W.range("4 ms"),
    "lag": W.range("3 ms", lag="2 ms"),
    "everything": W.everything(),
    "session": W.session("2 ms"),
    "since": W.since("b"),
}
GRIDS = {
    "every 2 rows": W.rows(4).every(rows=2),
    "tumbling": W.tumbling("3 ms"),
    "everything on a grid": W.everything().every("4 ms"),
    "closed none on a grid": W.range("3 ms", closed="none").every("2500 us"),
}
STRETCH = "__stretch"
FEW = settings(max_examples=max(settings.default.max_examples // 5, 1))
idles = st.sampled_from([2 * TICK, 6 * TICK, 15 * TICK])


def batch(window, table, idle):
    """What batch says of keys that begin anew after a silence."""
    last, numbers, stretches = {}, {}, {}
    for row in sorted(table.to_pylist(), key=lambda row: (row["ts"], row["id"])):
        key, time = row["k"], row["ts"]
        if key in last and (time - last[key]).total_seconds() * 1_000_000 > idle:
            numbers[key] += 1
        last[key] = time
        stretches[row["id"]] = numbers.setdefault(key, 0)
    marked = table.append_column(STRETCH, pa.array([stretches[each] for each in table.column("id").to_pylist()]))
    answered = replace(window, by=("k", STRETCH)).agg(n=AGGREGATES["n"], listed=AGGREGATES["listed"])(marked)
    return answered.drop_columns([STRETCH]).to_pylist()


def spec_of(window, emit, idle):
    spec = window.agg(n=AGGREGATES["n"], listed=AGGREGATES["listed"])
    return spec.stream(emit=emit, lateness=f"{LATENESS_US} us", idle=f"{idle} us")


@pytest.mark.parametrize("name", [*ROWS, *GRIDS])
@FEW
@given(table=arrivals(), sizes=cuts, n_shards=st.integers(1, 2), idle=idles)
def test_final_answers_are_those_of_batch_over_stretches(name, table, sizes, n_shards, idle):
    window = (ROWS | GRIDS)[name]
    spec = spec_of(window, "final", idle)
    stream = Stream(spec, SCHEMA, announced(spec, table), n_shards)
    found = [row for part in split(table, sizes) for row in stream.push(part).rows()] + stream.finish().rows()
    assert multiset(found) == multiset(batch(window, table, idle))


@pytest.mark.parametrize("name", ROWS)
@FEW
@given(table=arrivals(), sizes=cuts, n_shards=st.integers(1, 2), idle=idles)
def test_eager_answers_and_last_revisions_are_those_of_batch_over_stretches(name, table, sizes, n_shards, idle):
    for emit in ("eager", "revise"):
        spec, arrived, known = spec_of(ROWS[name], emit, idle), 0, {}
        stream = Stream(spec, SCHEMA, announced(spec, table), n_shards)
        for part in split(table, sizes):
            rows = stream.push(part).rows()
            known |= {row["id"]: {name: row[name] for name in row if name != "revision"} for row in rows}
            arrived += part.num_rows
            said = batch(ROWS[name], table.slice(0, arrived), idle)
            if emit == "revise":
                assert multiset(known.values()) == multiset(said)
            else:
                assert multiset(rows) == multiset(said[arrived - part.num_rows :])


def test_on_a_grid_a_row_that_waits_for_its_instant_breaks_a_silence():
    spec = W.everything().every("10 ms").agg(ids=sash.collect("id")).stream(idle="5 ms")
    given = [(0, "a", 8), (1, "b", 9), (2, "a", 12), (3, "b", 19), (4, "b", 31)]  # a waits for 20, b goes on
    rows = [{"id": n, "k": k, "ts": 1_000 * ms} for n, k, ms in given]
    table = pa.Table.from_pylist(rows, SCHEMA)
    for sizes in ([], [1] * 5):
        stream = Stream(spec, SCHEMA, announced(spec, table))
        found = [row for part in split(table, sizes) for row in stream.push(part).rows()] + stream.finish().rows()
        assert [row["ids"] for row in found if row["k"] == "a"] == [[0], [0, 2]]


@pytest.mark.parametrize("emit", ["final", "eager", "revise"])
def test_keys_in_chunks_cannot_begin_anew_which_is_said(emit, monkeypatch):
    monkeypatch.setattr(chunks, "ROWS", 3)
    monkeypatch.setattr(large, "LARGE", 5)
    spec = sash.window(by="k", order_by="ts").range("1 hour").agg(n=sash.count())

    def rows(*ids):
        return with_hash(pa.Table.from_pylist([{"id": n, "k": "a", "ts": 1_000 * n} for n in ids], SCHEMA), ["k"])

    def plan(**options):
        return Plan((spec.stream(emit=emit, **options),), SCHEMA, {"n": pa.int64()})

    blocks = Memory()
    take(plan(), blocks, rows(*range(30)), None)
    with pytest.raises(sash.FormatError, match=r"1 keys with .* in chunks.*idle=.*another checkpointLocation"):
        take(plan(idle="1 day"), blocks.copy(), rows(30), 29_000)
    tables = take(plan(), blocks, rows(30), 29_000).tables + take(plan(), blocks, None, FAR_AHEAD).tables
    assert max(row["n"] for table in tables for row in table.to_pylist()) == 31, "without it the stream goes on"
