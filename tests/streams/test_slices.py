"""Slices: rows of a grid that are put together answer what they would answer one by one, and take less."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sash
from sash.streams.plans import Plan
from sash.streams.shard import take
from sash.streams.slices import slicing_of
from sash.streams.timing import due_at, instants_of, times_of
from tests.streams.rows import LATENESS_US, SCHEMA, arrivals, cuts
from tests.streams.simulating import FAR_AHEAD, Memory, Stream, announced, far_ahead, multiset, split, with_hash

pytestmark = pytest.mark.usefixtures("interpreted")

W = sash.window(by="k", order_by="ts")
TIED = sash.window(by=["k", "j"], order_by=["ts", "q"])
WINDOWS = {
    "tumbling": W.tumbling("3 ms"),
    "tumbling from an origin": W.tumbling("3 ms", origin="1 ms"),
    "closed left": W.range("4 ms", closed="left").every("2 ms"),
    "closed right, from an origin": W.range("6 ms", closed="right").every("2 ms", origin="500 us"),
    "lag": W.range("4 ms", closed="right", lag="2 ms").every("2 ms"),
    "a tie-breaker": TIED.range("3 ms", closed="left").every("1500 us"),
    "a key that breaks ties": sash.window(by=["k", "j"], order_by=["ts", "k", "q"]).tumbling("2 ms"),
    "one key": sash.window(order_by="ts").tumbling("2 ms"),
}
AGGREGATES = {
    "n": sash.count(),
    "some": sash.count("i"),
    "marked": sash.count("i").where("b"),
    "total": sash.sum("i"),
    "paid": sash.sum("i").where("b"),
    "top": sash.max("x"),  # among equals the first: 0.0 and -0.0 are
    "low": sash.min("x").where("b"),
    "least": sash.min("q"),
    "any": sash.max("b"),
}
KEPT_ROW_BY_ROW = {
    "both ends": W.range("4 ms").every("2 ms").agg(n=sash.count()),
    "no whole number of steps": W.range("5 ms", closed="left").every("2 ms").agg(n=sash.count()),
    "a lag between": W.range("4 ms", closed="left", lag="1 ms").every("2 ms").agg(n=sash.count()),
    "at least": W.range("4 ms", closed="left", min_rows=2).every("2 ms").agg(n=sash.count()),
    "two bounds": W.range("4 ms", closed="left", rows=2).every("2 ms").agg(n=sash.count()),
    "rows": W.rows(3).every("2 ms").agg(n=sash.count()),
    "every so many rows": W.range("4 ms").every(rows=2).agg(n=sash.count()),
    "at rows": W.range("4 ms", closed="left").agg(n=sash.count()),
    "order": W.tumbling("2 ms").agg(n=sash.count(), ids=sash.collect("id")),
    "exact sums": W.tumbling("2 ms").agg(total=sash.sum("x", exact=True)),
    "text": W.tumbling("2 ms").agg(top=sash.max("s")),
    "means of integers": W.tumbling("2 ms").agg(mean=sash.mean("i")),
}
some = st.lists(st.sampled_from(sorted(AGGREGATES)), min_size=1, max_size=4, unique=True)


def plan_of(spec, table):
    return Plan((spec,), SCHEMA, announced(spec, table))


def slicing(spec, table):
    found = slicing_of(plan_of(spec, table))
    assert found is not None
    return found


@pytest.mark.parametrize("name", WINDOWS)
@given(table=arrivals(), sizes=cuts, names=some, n_shards=st.integers(1, 3))
def test_however_a_stream_is_cut_slices_answer_what_batch_answers(name, table, sizes, names, n_shards):
    spec = WINDOWS[name].agg(**{each: AGGREGATES[each] for each in names}).stream(lateness=f"{LATENESS_US} us")
    slicing(spec, table)
    stream = Stream(spec, SCHEMA, announced(spec, table), n_shards)
    found = [row for part in split(table, sizes) for row in stream.push(part).rows()] + stream.finish().rows()
    assert multiset(found) == multiset(spec(table).to_pylist())


@given(table=arrivals(), sizes=cuts)
def test_specs_together_share_their_slices(table, sizes):
    grid = {"closed": "left"}
    specs = sash.together(
        W.range("2 ms", **grid).every("2 ms").agg(n=sash.count(), top=sash.max("i")),
        W.range("6 ms", **grid).every("2 ms").agg(total=sash.sum("i"), before=sash.max("i")),
    ).stream(lateness=f"{LATENESS_US} us")
    plan = Plan(specs.specs, SCHEMA, announced(specs, table))
    found = slicing_of(plan)
    assert found is not None
    assert [name for name, _ in found.folded].count("__sash_partial1") == 1
    assert len([name for name, _ in found.folded if "partial" in name]) == 3, "the maximum is kept once"
    stream = Stream(specs, SCHEMA, announced(specs, table))
    rows = [row for part in split(table, sizes) for row in stream.push(part).rows()] + stream.finish().rows()
    assert multiset(rows) == multiset(specs(table).to_pylist())


@given(table=arrivals())
def test_means_of_floats_that_add_up_exactly(table):
    places = pa.array([float(each) for each in range(table.num_rows)])
    table = table.set_column(SCHEMA.get_field_index("x"), "x", places)
    spec = W.range("4 ms", closed="left").every("2 ms").agg(mean=sash.mean("x"), total=sash.sum("x"))
    spec = spec.stream(lateness=f"{LATENESS_US} us")
    slicing(spec, table)
    stream = Stream(spec, SCHEMA, announced(spec, table))
    assert multiset(stream.push(table).rows() + stream.finish().rows()) == multiset(spec(table).to_pylist())


@pytest.mark.parametrize("name", WINDOWS)
@given(table=arrivals())
def test_i1_a_row_of_a_slice_is_due_when_its_rows_are(name, table):
    spec = WINDOWS[name].agg(n=sash.count(), top=sash.max("x")).stream()
    own = slicing(spec, table)
    instants = instants_of(plan_of(spec, table))
    rows = with_hash(table, spec.window.by)
    folded = own.fold(rows)
    dues = lambda given: due_at(times_of(given.column("ts")), instants).tolist()  # noqa: E731
    key = lambda given: given.select(list(spec.window.by)).to_pylist() or [{}] * given.num_rows  # noqa: E731
    pairs = {(repr(each), due) for each, due in zip(key(rows), dues(rows), strict=True)}
    assert pairs == {(repr(each), due) for each, due in zip(key(folded), dues(folded), strict=True)}


@pytest.mark.parametrize("name", WINDOWS)
@given(table=arrivals(), sizes=cuts)
def test_rows_put_together_where_they_are_read_answer_the_same(name, table, sizes):
    spec = (
        WINDOWS[name].agg(n=sash.count(), total=sash.sum("i"), top=sash.max("x")).stream(lateness=f"{LATENESS_US} us")
    )
    own, stream = slicing(spec, table), Stream(spec, SCHEMA, announced(spec, table), 2)
    folded = [own.fold(with_hash(part, spec.window.by)) for part in split(table, sizes)]
    steps = [*(stream.push(part) for part in folded), stream.finish()]
    assert multiset(row for step in steps for row in step.rows()) == multiset(spec(table).to_pylist())
    assert sum(step.counts["rows"] for step in steps) == table.num_rows, "rows are counted, and not slices"


def test_a_zero_is_a_row_of_its_own_only_where_it_may_be_the_answer():
    values = {"a": [0.0, 5.0, -0.0], "b": [-1.0, -0.0, None, 0.0], "c": [None, None]}
    rows = [(key, x) for key, own in values.items() for x in own]
    table = pa.Table.from_pylist([{"id": n, "k": k, "ts": n, "q": 0, "x": x} for n, (k, x) in enumerate(rows)], SCHEMA)
    own = slicing(W.tumbling("1 ms").agg(n=sash.count(), top=sash.max("x")).stream(), SCHEMA.empty_table())
    folded = own.fold(with_hash(table, ["k"])).select(["k", "__sash_rows", "__sash_partial1"]).to_pylist()
    wanted = [("a", 3, 5.0), ("b", 2, -1.0), ("b", 1, -0.0), ("b", 1, 0.0), ("c", 2, None)]
    found = [tuple(row.values()) for row in folded]
    assert sorted(map(repr, found)) == sorted(map(repr, wanted))


def test_rows_without_a_place_are_counted_one_by_one():
    times = [5_000, None, 9_000_000, 5_500, None]
    rows = [{"id": k, "k": "a", "ts": time, "q": 0, "i": 1} for k, time in enumerate(times)]
    table = far_ahead(with_hash(pa.Table.from_pylist(rows, SCHEMA), ["k"]), [time == 9_000_000 for time in times])
    plan = plan_of(W.tumbling("2 ms").agg(n=sash.count()).stream(), SCHEMA.empty_table())
    folded = slicing_of(plan).fold(table)
    assert folded.num_rows == 4, "the two with a place are one"
    counts = take(plan, Memory(), folded, None).counts
    assert (counts.rows, counts.without_time, counts.far, counts.late) == (5, 2, 1, 0)


def test_rows_of_a_slice_are_late_when_it_has_been_answered_and_not_before():
    def given(*times):
        rows = [{"id": k, "k": "a", "ts": time, "q": 0, "i": 1} for k, time in enumerate(times)]
        return with_hash(pa.Table.from_pylist(rows, SCHEMA), ["k"])

    plan, blocks = plan_of(W.tumbling("2 ms").agg(n=sash.count()).stream(), SCHEMA.empty_table()), Memory()
    take(plan, blocks, given(0, 100, 3_900), None)
    found = take(plan, blocks, given(1_999, 1_000, 2_000, 2_100), 3_000)  # the watermark is in the middle of a slice
    assert found.counts.late == 2
    answers = [row["n"] for each in (found, take(plan, blocks, None, FAR_AHEAD)) for row in rows_of(each)]
    assert answers == [3], "the first was answered when its own rows had moved the watermark"


def test_i1_rows_of_other_keys_read_beside_it_do_not_move_a_slice():
    def given(*rows):
        rows = [{"id": k, "k": key, "ts": time, "q": 0, "i": 1} for k, (key, time) in enumerate(rows)]
        return with_hash(pa.Table.from_pylist(rows, SCHEMA), ["k"])

    spec = W.tumbling("10 ms").agg(n=sash.count()).stream(lateness="5 ms")
    plan, blocks = plan_of(spec, SCHEMA.empty_table()), Memory()
    folded = slicing_of(plan).fold(given(("a", -9_000), ("b", -1_000)))  # b is of another shard
    take(plan, blocks, folded.filter(pc.equal(folded.column("k"), "a")), None)  # Spark has no watermark before 1970
    assert take(plan, blocks, given(("a", -11_000)), None).counts.late == 0, "a has not come so far"


def rows_of(outcome):
    return [row for table in outcome.tables for row in table.to_pylist()]


@pytest.mark.parametrize("name", KEPT_ROW_BY_ROW)
def test_what_slices_cannot_answer_is_kept_row_by_row(name):
    spec = KEPT_ROW_BY_ROW[name]
    assert slicing_of(plan_of(spec.stream(), SCHEMA.empty_table())) is None


def test_a_key_that_is_forgotten_is_kept_row_by_row():
    spec = W.tumbling("2 ms").agg(n=sash.count()).stream(idle="1 hour")
    assert slicing_of(plan_of(spec, SCHEMA.empty_table())) is None


def test_state_of_slices_is_not_gone_on_with_row_by_row():
    rows = pa.Table.from_pylist([{"id": 0, "k": "a", "ts": 0, "q": 0, "i": 1}], SCHEMA)
    spec = W.tumbling("2 ms").agg(n=sash.count())
    stream = Stream(spec.stream(), SCHEMA, announced(spec, rows))
    stream.push(rows)
    stream.spec = spec.stream(idle="1 hour")
    with pytest.raises(sash.FormatError, match="columns was"):
        stream.push(rows)


def test_state_is_as_large_as_slices_and_not_as_rows():
    def n_bytes(n):
        rows = [{"id": k, "k": "a", "ts": k * 1_000 // n, "q": 0, "i": k} for k in range(n)]
        spec = W.tumbling("1 second").agg(n=sash.count(), total=sash.sum("i")).stream()
        stream = Stream(spec, SCHEMA, announced(spec, SCHEMA.empty_table()))
        stream.push(pa.Table.from_pylist(rows, SCHEMA))
        return stream.n_bytes

    assert n_bytes(1_000) == n_bytes(10)


def test_two_rows_fifty_years_apart_are_two_slices():
    rows = [{"id": k, "k": "a", "ts": ts, "q": 0, "i": 1} for k, ts in enumerate((0, 50 * 365 * 86_400 * 10**6))]
    table = pa.Table.from_pylist(rows, SCHEMA)
    spec = W.tumbling("1 ms").agg(n=sash.count()).stream()
    assert slicing(spec, SCHEMA.empty_table()).fold(with_hash(table, ["k"])).num_rows == 2
