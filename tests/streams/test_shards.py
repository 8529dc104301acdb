"""What a shard does with rows it cannot place, rows taken back, keys that fall silent; and what that costs."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sash
from sash.streams import held, pages
from sash.streams.contract import HASH
from sash.streams.plans import Plan
from sash.streams.shard import take
from tests.streams.rows import AGGREGATES, LATENESS_US, SCHEMA, Affine, arrivals, cuts
from tests.streams.simulating import FAR_AHEAD, Memory, Stream, announced, far_ahead, multiset, split, with_hash

pytestmark = pytest.mark.usefixtures("interpreted")

MS = 1_000
SMALL = pa.schema([("id", pa.int64()), ("k", pa.int64()), ("ts", pa.timestamp("us")), ("x", pa.int64())])
W = sash.window(by="k", order_by="ts")
COUNTED = W.range("5 ms").agg(n=sash.count(), ids=sash.collect("id"))
TYPES = {"n": pa.int64(), "ids": pa.list_(pa.int64())}


def small(*rows, far=None):
    """Rows of (id, key, milliseconds or None)."""
    given = [{"id": n, "k": k, "ts": None if ms is None else int(ms * MS), "x": n % 10} for n, k, ms in rows]
    table = with_hash(pa.Table.from_pylist(given, SMALL), ["k"])
    return table if far is None else far_ahead(table, far)


def plan_of(spec, types=None, schema=SMALL):
    return Plan((spec,), schema, TYPES if types is None else types)


def answers(outcome):
    return {row["id"]: row["ids"] for table in outcome.tables for row in table.to_pylist()}


# --- rows that cannot be placed --------------------------------------------------------------------


@pytest.mark.parametrize("emit", ["final", "eager", "revise"])
def test_late_rows_are_dropped_and_counted(emit):
    plan, blocks = plan_of(COUNTED.stream(emit=emit, lateness="1 ms")), Memory()
    found = answers(take(plan, blocks, small((0, 1, 10)), None))
    outcome = take(plan, blocks, small((1, 1, 8), (2, 1, 9), (3, 1, 12)), 9 * MS)  # at the watermark is not late
    found |= answers(outcome)
    found |= answers(take(plan, blocks, None, 100 * MS))
    assert (outcome.counts.rows, outcome.counts.late) == (3, 1)
    assert found == {0: [0] if emit == "eager" else [2, 0], 2: [2], 3: [2, 0, 3]}


def test_late_rows_are_an_error_that_names_the_first():
    plan, blocks = plan_of(COUNTED.stream(late="raise", lateness="1 ms")), Memory()
    take(plan, blocks, small((0, 1, 10)), None)
    before = blocks.copy()
    with pytest.raises(sash.DataError, match=r"1 rows are behind the watermark \(1970-01-01T00:00:00.009.*'id': 1"):
        take(plan, blocks, small((1, 1, 8), (2, 1, 9)), 9 * MS)
    assert blocks == before


@pytest.mark.parametrize("emit", ["final", "eager", "revise"])
def test_rows_aside_are_marked_and_have_no_answers(emit):
    plan, blocks = plan_of(COUNTED.stream(emit=emit, late="aside")), Memory()
    rows = small((0, 1, 1), (1, 1, 9), (2, None, None), (3, 1, 99), far=[False, False, False, True])
    outcome = take(plan, blocks, rows, 5 * MS)
    flushed = take(plan, blocks, None, 100 * MS)
    given = [row for each in (outcome, flushed) for table in each.tables for row in table.to_pylist()]
    assert {row["id"]: (row["is_late"], row["n"], row["ids"]) for row in given} == {
        0: (True, None, None), 1: (False, 1, [1]), 2: (True, None, None), 3: (True, None, None),
    }  # fmt: skip
    counts = outcome.counts
    assert (counts.rows, counts.late, counts.without_time, counts.far) == (4, 1, 1, 1)


@pytest.mark.parametrize("emit", ["final", "eager", "revise"])
def test_rows_too_far_ahead_and_without_a_time_are_dropped_and_counted(emit):
    plan, blocks = plan_of(COUNTED.stream(emit=emit)), Memory()
    outcome = take(plan, blocks, small((0, 1, None), (1, 1, 10), (2, 1, 900), far=[False, False, True]), None)
    found = answers(outcome) | answers(take(plan, blocks, None, FAR_AHEAD))
    assert found == {1: [1]}
    assert (outcome.counts.late, outcome.counts.without_time, outcome.counts.far) == (0, 1, 1)


def test_a_watermark_that_falls_is_not_believed():
    plan, blocks = plan_of(COUNTED.stream()), Memory()
    take(plan, blocks, small((0, 1, 10)), 9 * MS)
    assert take(plan, blocks, small((1, 1, 5)), 2 * MS).counts.late == 1
    assert take(plan, blocks, small((2, 1, 5)), None).counts.late == 1


@pytest.mark.parametrize("emit", ["final", "eager", "revise"])
def test_a_shard_knows_how_far_its_own_rows_move_the_watermark(emit):
    plan, blocks = plan_of(COUNTED.stream(emit=emit, lateness="1 ms")), Memory()
    first = take(plan, blocks, small((0, 1, 1), (1, 1, 8), (2, 1, 10)), None)
    assert answers(first) == {0: [0], 1: [1]} | ({} if emit == "final" else {2: [1, 2]}), "8 is due, at 9"
    assert take(plan, blocks, small((3, 1, 8)), None).counts.late == 1, "even if Spark says less"


def test_far_past_and_far_future_times_leave_other_keys_alone():
    plan, blocks = plan_of(COUNTED.stream(emit="eager", lateness="146000 days")), Memory()
    ages = 200 * 365 * 86_400_000  # 200 years
    found = answers(take(plan, blocks, small((0, 1, 10), (1, 2, -ages), (2, 3, ages)), None))
    found |= answers(take(plan, blocks, small((3, 1, 11), (4, 2, 10), (5, 3, 11)), None))
    assert found == {0: [0], 1: [1], 2: [2], 3: [0, 3], 4: [4], 5: [5]}


@pytest.mark.parametrize("emit", ["final", "eager", "revise"])
@pytest.mark.parametrize("window", [W.range("5 ms"), W.session("5 ms"), W.rows(3), W.since("b"),
                                    W.delta("x", 3, ties="upto")],
                         ids=["range", "session", "rows", "since", "delta"])  # fmt: skip
def test_nothing_comes_of_nothing(emit, window):
    schema = pa.schema([*SMALL, ("b", pa.bool_())])
    plan, blocks = plan_of(window.agg(n=sash.count()).stream(emit=emit), {"n": pa.int64()}, schema), Memory()
    for watermark in (None, 5 * MS, FAR_AHEAD):
        for rows in (None, with_hash(schema.empty_table(), ["k"])):
            outcome = take(plan, blocks, rows, watermark)
            assert (outcome.tables, outcome.next_due, outcome.counts.rows) == ([], None, 0)


@pytest.mark.parametrize("emit", ["final", "eager", "revise"])
def test_an_aggregate_of_records_answers_batches_in_which_all_is_null(emit):
    @sash.aggregate(state={"a": "i8", "b": "i8"})
    class Both:
        identity = (0, 0)

        def lift(x):
            return (x, 1)

        def combine(older, newer):
            return (older[0] + newer[0], older[1] + newer[1])

    spec = W.rows(2).agg(own=sash.agg(Both, "x")).stream(emit=emit)
    rows = [{"id": 0, "k": 1, "ts": 0, "x": None}, {"id": 1, "k": 1, "ts": 10, "x": 3}]
    table = pa.Table.from_pylist(rows, SMALL)
    stream = Stream(spec, SMALL, announced(spec, table))
    steps = [
        stream.push(table.slice(0, 0)),
        stream.push(table.slice(0, 1)),
        stream.push(table.slice(1)),
        stream.finish(),
    ]
    found = [row["own"] for step in steps for row in step.rows()]
    assert found == spec(table).column("own").to_pylist()


def test_more_instants_than_anyone_wants_of_a_silence_are_refused_with_the_remedy(monkeypatch):
    monkeypatch.setattr(held, "MOST_INSTANTS", 100)
    types = {"ts": pa.timestamp("us"), "n": pa.int64()}

    def given(rows, watermark, blocks, **options):
        plan = plan_of(W.rows(3).every("1 ms").agg(n=sash.count()).stream(**options), types)
        return [row for table in take(plan, blocks, rows, watermark).tables for row in table.to_pylist()]

    blocks = Memory()
    assert len(given(small((0, 1, 7), (1, 1, 106)), None, blocks)) == 1, "the first is due"
    assert len(given(None, 200 * MS, blocks)) == 99, "and as many as may be"
    assert len(given(small((2, 1, 207)), 200 * MS, blocks)) == 0
    with pytest.raises(sash.DataError, match=r"101 instants .*'k': 1.*101 milliseconds.*at most 100 .*idle="):
        given(None, 300 * MS, blocks.copy())
    assert [row["n"] for row in given(None, 300 * MS, blocks, idle="50 ms")] == [1]


# --- rows taken back and corrected -----------------------------------------------------------------

CHANGING = pa.schema([*SCHEMA, ("op", pa.string())])


@st.composite
def feeds(draw):
    """Rows that come, and changes of some that have come: (operation, row), in order; and what is left at the end."""
    table = draw(arrivals(max_size=12))
    left, feed = {}, []
    for row in table.to_pylist():
        feed.append((draw(st.sampled_from(["insert", None, "I", "update_postimage"])), row))
        left[row["id"]] = row
        if left and draw(st.integers(0, 2)) == 0:
            old = left.pop(draw(st.sampled_from(sorted(left))))
            if draw(st.booleans()):
                feed.append((draw(st.sampled_from(["delete", "D", "-d"])), old))
            else:
                new = {**old, "i": 77, "s": "corrected"}
                feed += [("update_preimage", old), ("update_postimage", new)]
                left[new["id"]] = new
    return feed, list(left.values())


TIED = sash.window(by="k", order_by=["ts", "id"])  # a correction keeps its place


@pytest.mark.parametrize("window", [TIED.range("4 ms"), TIED.rows(3), TIED.session("2 ms"), TIED.since("b")],
                         ids=["range", "rows", "session", "since"])  # fmt: skip
@settings(max_examples=max(settings.default.max_examples // 2, 1))
@given(given=feeds(), sizes=cuts, n_shards=st.integers(1, 3))
def test_last_revisions_of_rows_that_are_left_are_those_of_batch_over_them(window, given, sizes, n_shards):
    feed, left = given
    rows = pa.Table.from_pylist([{**row, "op": op} for op, row in feed], CHANGING)
    spec = window.agg(n=AGGREGATES["n"], total=AGGREGATES["total"], joined=AGGREGATES["joined"])
    stream_spec = spec.stream(emit="revise", lateness="1 hour", changes="op")
    stream = Stream(stream_spec, CHANGING, announced(spec, rows), n_shards)
    standing = {}
    for part in split(rows, sizes):
        for row in stream.push(part).rows():
            _apply(standing, row)
    wanted = spec(pa.Table.from_pylist(left, SCHEMA)).to_pylist()
    assert multiset(standing.values()) == multiset(wanted)


def _apply(standing, row):
    """What a reader of the answers does with one of them: a deletion takes back, all else replaces."""
    op, _ = row.pop("op"), row.pop("revision")
    identity = tuple(repr(row[name]) for name in SCHEMA.names)
    if op == "delete":
        del standing[identity]
    else:
        standing[identity] = row


def changing(*rows):
    given = [{"id": n, "k": 1, "ts": int(ms * MS), "x": 0, "op": op} for n, ms, op in rows]
    return with_hash(pa.Table.from_pylist(given, CHANGES_SMALL), ["k"])


CHANGES_SMALL = pa.schema([*SMALL, ("op", pa.string())])


def changes_plan():
    return plan_of(COUNTED.stream(emit="revise", changes="op", lateness="9 ms"), schema=CHANGES_SMALL)


def test_a_row_taken_back_is_given_out_as_a_deletion_and_others_are_revised():
    plan, blocks = changes_plan(), Memory()
    take(plan, blocks, changing((0, 1, "insert"), (1, 2, None), (2, 3, "insert")), None)
    outcome = take(plan, blocks, changing((1, 2, "delete")), None)
    rows = [row for table in outcome.tables for row in table.to_pylist()]
    given = {row["id"]: (row["op"], row["revision"], row["n"], row["ids"]) for row in rows}
    assert given == {1: ("delete", 1, None, None), 2: ("insert", 1, 2, [0, 2])}
    assert (outcome.counts.revisions, outcome.counts.unmatched) == (2, 0)


def test_deletions_of_rows_that_are_not_there_are_counted():
    plan, blocks = changes_plan(), Memory()
    take(plan, blocks, changing((0, 1, "insert")), None)
    outcome = take(plan, blocks, changing((0, 2, "delete"), (9, 1, "delete"), (0, 1, "delete"), (0, 1, "delete")), None)
    assert outcome.counts.unmatched == 3
    rows = [row for table in outcome.tables for row in table.to_pylist()]
    assert [(row["id"], row["op"]) for row in rows] == [(0, "delete")]


def test_of_equal_rows_a_deletion_takes_back_one():
    plan, blocks = changes_plan(), Memory()
    take(plan, blocks, changing((0, 1, "insert"), (0, 1, "insert")), None)
    outcome = take(plan, blocks, changing((0, 1, "delete")), None)
    rows = [row for table in outcome.tables for row in table.to_pylist()]
    assert sorted((row["op"], row["revision"], row["n"]) for row in rows if row["op"] == "insert") == [("insert", 1, 1)]
    assert sum(row["op"] == "delete" for row in rows) == 1


def test_a_row_that_comes_and_goes_in_one_micro_batch_leaves_no_trace():
    plan, blocks = changes_plan(), Memory()
    outcome = take(plan, blocks, changing((0, 1, "insert"), (1, 2, "insert"), (0, 1, "delete")), None)
    assert answers(outcome) == {1: [1]}


@settings(max_examples=max(settings.default.max_examples // 2, 1))
@given(given=feeds(), sizes=cuts, data=st.data())
def test_the_order_of_changes_within_a_micro_batch_is_not_looked_at(given, sizes, data):
    """Spark brings rows of several partitions in any order."""
    feed, left = given
    spec = TIED.range("4 ms").agg(n=AGGREGATES["n"], total=AGGREGATES["total"], joined=AGGREGATES["joined"])
    rows = pa.Table.from_pylist([{**row, "op": op} for op, row in feed], CHANGING)
    stream_spec = spec.stream(emit="revise", lateness="1 hour", changes="op")
    stream, standing = Stream(stream_spec, CHANGING, announced(spec, rows)), {}
    for part in split(rows, sizes):
        order = data.draw(st.permutations(range(part.num_rows)))
        given_out = stream.push(part.take(pa.array(order, pa.int64()))).rows()
        for row in sorted(given_out, key=lambda row: row["op"] != "delete"):
            _apply(standing, row)
    assert multiset(standing.values()) == multiset(spec(pa.Table.from_pylist(left, SCHEMA)).to_pylist())


def test_a_deletion_of_what_is_not_there_is_counted_unless_an_equal_row_comes_with_it():
    plan, apart, together = changes_plan(), Memory(), Memory()
    counts = [take(plan, apart, changing((0, 1, op)), None).counts for op in ("delete", "insert")]
    assert [(each.unmatched, each.answers) for each in counts] == [(1, 0), (0, 1)]
    counts = take(plan, together, changing((0, 1, "delete"), (0, 1, "insert")), None).counts
    assert (counts.unmatched, counts.answers) == (0, 0), "as if the deletion had come last"


def test_an_unknown_operation_is_named():
    with pytest.raises(sash.DataError, match=r"'op' says 'upsert'.*delete"):
        take(changes_plan(), Memory(), changing((0, 1, "upsert")), None)


# --- silence, other specs --------------------------------------------------------------------------


@pytest.mark.parametrize("emit", ["final", "eager"])
def test_a_key_that_was_silent_for_too_long_begins_anew(emit):
    spec = W.rows(3).agg(ids=sash.collect("id")).stream(emit=emit, idle="50 ms")
    plan, blocks, found = plan_of(spec, {"ids": TYPES["ids"]}), Memory(), {}
    for rows, watermark in [
        (small((0, 1, 0), (1, 2, 0)), None), (small((2, 2, 40)), 30 * MS), (small((3, 3, 70)), 41 * MS),
        (small((4, 1, 90), (5, 2, 90)), 70 * MS), (None, FAR_AHEAD),
    ]:  # fmt: skip
        found |= answers(take(plan, blocks, rows, watermark))
    assert found[4] == [4], "silent since 0"
    assert found[5] == [1, 2, 5], "silent since 40"


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (W.range("6 ms").agg(n=sash.count(), ids=sash.collect("id")), r"was .*5 milliseconds.*now it is .*6 milli"),
        (W.range("5 ms").agg(n=sash.count("x"), ids=sash.collect("id")), r"spec 0 was .*columns was"),
        (COUNTED.stream(emit="eager"), "emit was final, now it is eager"),
        (sash.window(order_by="ts").range("5 ms").agg(n=sash.count(), ids=sash.collect("id")), r"by was \('k',\)"),
    ],
    ids=["span", "aggregate", "emit", "by"],
)  # fmt: skip
def test_state_of_another_spec_is_refused_with_what_differs(spec, said):
    blocks = Memory()
    take(plan_of(COUNTED.stream()), blocks, small((0, 1, 10)), None)
    with pytest.raises(sash.FormatError, match=rf"another query: .*{said}.*checkpointLocation"):
        take(plan_of(spec), blocks, small((1, 1, 11)), None)


def test_options_that_state_does_not_depend_on_may_change():
    blocks = Memory()
    take(plan_of(COUNTED.stream(lateness="1 ms")), blocks, small((0, 1, 10)), None)
    later = plan_of(COUNTED.stream(lateness="9 ms", late="raise", idle="1 day", future=None))
    assert answers(take(later, blocks, small((1, 1, 11)), 11 * MS)) == {0: [0]}


def test_another_number_of_shards_is_refused():
    blocks = Memory()
    take(Plan((COUNTED.stream(),), SMALL, TYPES, 8), blocks, small((0, 1, 10)), None)
    with pytest.raises(sash.FormatError, match="shards was 8, now it is 9"):
        take(Plan((COUNTED.stream(),), SMALL, TYPES, 9), blocks, small((1, 1, 11)), None)


@pytest.mark.parametrize("kind", ["head", "page", "piece"])
def test_damaged_state_is_an_error_of_ours(kind):
    emit = "final" if kind == "piece" else "eager"
    plan, blocks = plan_of(COUNTED.stream(emit=emit)), Memory()
    take(plan, blocks, small(*((n, 1, 10) for n in range(50))), None)
    place = next(each for each in blocks if each[0] == kind)
    for damaged in (blocks[place][: len(blocks[place]) // 2], b"", b"\x80\x04N."):
        with pytest.raises(sash.SashError):
            take(plan, Memory({**blocks, place: damaged}), small((1, 1, 11)), FAR_AHEAD)


@given(table=arrivals(), sizes=cuts)
def test_the_same_micro_batch_again_gives_the_same_answers_and_blocks(table, sizes):
    spec = W.range("4 ms").agg(n=sash.count(), own=sash.agg(Affine, "i")).stream(emit="revise", lateness="3 ms")
    types, blocks, watermark = announced(spec, table), Memory(), None
    for part in split(table, sizes):
        plan, rows = Plan((spec,), SCHEMA, types), with_hash(part, ["k"])
        once, twice = blocks.copy(), blocks.copy()
        outcomes = [take(plan, each, rows, watermark) for each in (once, twice)]
        assert once == twice
        assert len({repr([table.to_pylist() for table in each.tables]) for each in outcomes}) == 1
        blocks = once
        if part.num_rows:
            watermark = max(part.column("ts").cast(pa.int64()).to_pylist()) - LATENESS_US
            watermark -= watermark % MS


# --- what it costs ---------------------------------------------------------------------------------


@pytest.mark.parametrize("emit", ["final", "eager", "revise"])
def test_state_does_not_grow_with_the_stream(emit):
    plan, blocks, sizes = plan_of(COUNTED.stream(emit=emit)), Memory(), []
    for batch in range(60):  # two keys that stay, and one that is never seen again
        rows = small(*((10 * batch + n, (1, 2, 100 + batch)[n % 3], 3 * batch) for n in range(9)))
        take(plan, blocks, rows, (3 * batch - 6) * MS)
        sizes.append(blocks.n_bytes)
    assert max(sizes[30:]) <= 1.1 * max(sizes[10:30])


@pytest.mark.parametrize("emit", ["final", "eager", "revise"])
def test_rows_of_keys_never_seen_again_are_forgotten(emit):
    plan, blocks = plan_of(COUNTED.stream(emit=emit)), Memory()
    for batch in range(40):  # 200 keys at a time, each once: pages divide
        rows = small(*((n, 200 * batch + n, 10 * batch) for n in range(200)))
        pages = take(plan, blocks, rows, (10 * batch - 1) * MS).counts.pages
        if batch == 20:
            half_way = blocks.n_bytes
    assert blocks.n_bytes <= 1.5 * half_way
    for batch in range(40, 40 + 3 * pages):
        take(plan, blocks, small((0, 1, 10 * batch)), 10 * batch * MS)
    assert blocks.n_bytes < 2_000


@pytest.mark.parametrize("emit", ["final", "eager", "revise"])
def test_bytes_follow_the_keys_that_are_touched(emit, monkeypatch):
    monkeypatch.setattr(pages, "SIZE", 2_048)  # so that a few thousand keys are enough for small pages

    def moved(n_keys):
        plan, blocks = plan_of(W.range("1 hour").agg(n=sash.count()).stream(emit=emit), {"n": pa.int64()}), Memory()
        for round_ in range(3):
            rows = small(*((n, n % n_keys, 100 * round_) for n in range(2 * n_keys)))
            take(plan, blocks, rows, (100 * round_ - 1) * MS)
        take(plan, blocks, small((0, 0, 300)), 300 * MS)
        outcome = take(plan, blocks, small(*((n, 7 * n, 400) for n in range(10))), 301 * MS)
        outcome = take(plan, blocks, small(*((n, 7 * n, 500) for n in range(10))), 401 * MS)
        return outcome.counts.bytes_read + outcome.counts.bytes_written

    assert moved(100) < 2 * 2 * pages.LARGE * pages.SIZE, "two large pages, read and written"
    few = 1.5 * 11 * 2 * pages.SIZE  # some are not divided yet, and are twice as large as those that are
    assert moved(10_000) < few, "ten small pages and the one that is swept, read and written"


def test_hidden_columns_are_not_given_out():
    plan = plan_of(COUNTED.stream(emit="revise", late="aside"))
    outcome = take(plan, Memory(), small((0, 1, 10), far=[False]), None)
    assert outcome.tables[0].schema.names == ["id", "k", "ts", "x", "n", "ids", "revision", "is_late"]
    assert HASH not in outcome.tables[0].schema.names
