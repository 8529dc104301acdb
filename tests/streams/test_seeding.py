"""A stream that begins with history: its answers are those of batch over both, as far as they are the stream's.

How history comes to a shard in pieces is tested in tests/spark/test_seeding.py.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sash
from sash.streams import chunks, large
from sash.streams.contract import HASH
from sash.streams.plans import Plan
from sash.streams.shard import seed
from sash.streams.timing import NEVER, due_at, instants_of, watermark_after
from tests.streams.rows import LATENESS_US, SCHEMA, arrivals, as_table, cuts
from tests.streams.simulating import (
    Stream,
    announced,
    due_of,
    far_ahead,
    multiset,
    on_time,
    specs_of,
    split,
    with_hash,
)  # fmt: skip
from tests.streams.test_parity import GRIDS, WINDOWS, W, aggregates, shards, spec_of

pytestmark = pytest.mark.usefixtures("interpreted")

ON_GRIDS = [name for name, window in GRIDS.items() if window.grid is not None and window.grid.rows is None]
AT_ROWS = [name for name in [*WINDOWS, *GRIDS] if name not in ON_GRIDS]
unordered = arrivals(within=8 * LATENESS_US)
n_history = st.integers(0, 16)


class Seeded(Stream):
    """A stream whose shards have been given rows of history."""

    def seed(self, history):
        """Let all rows of a table be those before the stream."""
        plan = Plan(specs_of(self.spec), self.schema, self.types, self.n_shards)
        history = history if HASH in history.schema.names else with_hash(history, plan.window.by)
        hashes = history.column(HASH)
        places = hashes.fill_null(0).to_numpy().view(np.uint64) % np.uint64(self.n_shards)
        times = history.column(self.time).filter(hashes.is_valid()).cast(pa.int64()).drop_null().to_pylist()
        for number, blocks in enumerate(self.shards):
            mine = history.filter(pa.array(places == number))
            outcome = seed(plan, blocks, mine if mine.num_rows else None, max(times, default=None))
            self.dues[number] = outcome.next_due
        return self


def seeded(spec, history, like=None, n_shards=1):
    """A stream after some history; the types of its answers are those over another table, which has rows."""
    like = history if like is None else like
    return Seeded(
        spec, like.drop_columns([HASH] if HASH in like.schema.names else []).schema, announced(spec, like), n_shards
    ).seed(history)


def in_time(history, parts, due=lambda time: time + 1):
    """For each micro-batch, which rows are not late: as if history had been the first of them."""
    return on_time([history, *parts], "ts", LATENESS_US, due)[1:]


def without_late(parts, fits):
    """All rows that are not late."""
    return pa.concat_tables([part.filter(pa.array(fit, pa.bool_())) for part, fit in zip(parts, fits, strict=True)])


def answered(stream, parts):
    """What a stream gives out for all its rows."""
    steps = [*(stream.push(part) for part in parts), stream.finish()]
    return [row for step in steps for row in step.rows()], sum(step.counts["late"] for step in steps)


@given(name=st.sampled_from(AT_ROWS), table=unordered, n=n_history, sizes=cuts, n_shards=shards, names=aggregates)
def test_final_answers_after_history_are_those_of_batch_over_both(name, table, n, sizes, n_shards, names):
    spec = spec_of((WINDOWS | GRIDS)[name], names, "final")
    history, parts = table.slice(0, n), split(table.slice(n), sizes)
    fits = in_time(history, parts)
    if name.startswith("policy") and history.num_rows:
        end = max(history.column("ts").to_pylist())
        after = [[time > end for time in part.column("ts").to_pylist()] for part in parts]
        fits = [[*map(all, zip(*both, strict=True))] for both in zip(fits, after, strict=True)]
    rows, late = answered(seeded(spec, history, table, n_shards), parts)
    kept = without_late(parts, fits)
    wanted = spec(pa.concat_tables([history, kept])).to_pylist()
    assert multiset(rows) == multiset(row for row in wanted if row["id"] >= history.num_rows)
    assert late == table.num_rows - history.num_rows - kept.num_rows


@given(name=st.sampled_from(ON_GRIDS), table=unordered, n=n_history, sizes=cuts, n_shards=shards, names=aggregates)
def test_instants_after_the_last_that_history_settles_are_answered_over_both(name, table, n, sizes, n_shards, names):
    spec = spec_of(GRIDS[name], names, "final")
    history, parts = table.slice(0, n), split(table.slice(n), sizes)
    kept = without_late(parts, in_time(history, parts, due_of(Plan((spec,), SCHEMA, {}))))
    rows, late = answered(seeded(spec, history, table, n_shards), parts)
    last = last_settled(spec, history)
    both = spec(pa.concat_tables([history, kept]))
    when = both.column("ts").cast(pa.int64()).to_pylist()
    wanted = [
        row for row, time in zip(both.to_pylist(), when, strict=True) if time > last.get(key_of(spec, row), NEVER)
    ]
    assert multiset(rows) == multiset(wanted)
    assert late == table.num_rows - history.num_rows - kept.num_rows


def last_settled(spec, history):
    """For each key the last instant that holds or follows a row of history and that no row of the stream can change."""
    plan = Plan((spec,), SCHEMA, {})
    instants, times = instants_of(plan), history.column("ts").cast(pa.int64()).to_numpy()
    watermark, last = watermark_after(plan, max(times.tolist(), default=None)), {}
    for row, instant, due in zip(history.to_pylist(), instants.of(times), due_at(times, instants), strict=True):
        if due <= watermark:
            key = key_of(spec, row)
            last[key] = max(last.get(key, NEVER), int(instant))
    return last


def key_of(spec, row):
    return tuple(row[name] for name in spec.window.by)


@given(name=st.sampled_from([*WINDOWS]), table=unordered, n=n_history, sizes=cuts, n_shards=shards, names=aggregates)
def test_eager_answers_after_history_are_over_all_rows_that_have_come(name, table, n, sizes, n_shards, names):
    spec = spec_of(WINDOWS[name], names, "eager")
    so_far, parts = table.slice(0, n), split(table.slice(n), sizes)
    stream = seeded(spec, so_far, table, n_shards)
    for part, fit in zip(parts, in_time(so_far, parts), strict=True):
        rows, arrived = stream.push(part).rows(), so_far.num_rows
        so_far = pa.concat_tables([so_far, without_late([part], [fit])])
        assert multiset(rows) == multiset(spec(so_far).slice(arrived).to_pylist())


@given(name=st.sampled_from([*WINDOWS]), table=unordered, n=n_history, sizes=cuts, n_shards=shards, names=aggregates)
def test_revisions_go_on_from_the_answers_of_batch_over_history(name, table, n, sizes, n_shards, names):
    spec = spec_of(WINDOWS[name], names, "revise")
    so_far, parts = table.slice(0, n), split(table.slice(n), sizes)
    known = {row["id"]: (0, row) for row in spec(so_far).to_pylist()}
    stream = seeded(spec, so_far, table, n_shards)
    for part, fit in zip(parts, in_time(so_far, parts), strict=True):
        so_far = pa.concat_tables([so_far, without_late([part], [fit])])
        for row in stream.push(part).rows():
            revision = row.pop("revision")
            assert revision == (known[row["id"]][0] + 1 if row["id"] in known else 0)
            known[row["id"]] = revision, row
        assert multiset(row for _, row in known.values()) == multiset(spec(so_far).to_pylist())


@given(table=arrivals(max_size=60), n=st.integers(0, 40), sizes=cuts, emit=st.sampled_from(["final", "eager"]))
def test_history_of_large_keys_is_in_their_chunks(table, n, sizes, emit):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "ROWS", 3)
        patch.setattr(large, "LARGE", 5)
        spec = spec_of(W.everything(), ["n", "own"], emit)
        history, parts = table.slice(0, n), split(table.slice(n), sizes)
        rows, _ = answered(seeded(spec, history, table), parts)
        wanted = spec(table).to_pylist()
    if emit == "final":
        assert multiset(rows) == multiset(row for row in wanted if row["id"] >= history.num_rows)
    assert len(rows) == table.num_rows - history.num_rows


def plain(*rows):
    """Rows of one key: numbers and milliseconds."""
    return as_table([{"id": n, "k": "a", "ts": 1_000 * ms, "q": 0} for n, ms in rows])


def test_the_instant_that_history_ends_in_is_answered_with_rows_of_both():
    spec = W.tumbling("10 ms").agg(ids=sash.collect("id")).stream()
    stream = seeded(spec, plain((0, 85), (1, 95)))
    rows, _ = answered(stream, [plain((9, 97)), plain((10, 105))])
    assert [row["ids"] for row in rows] == [[1, 9], [10]]


def test_a_shard_with_history_alone_is_called_when_its_instant_is_due():
    spec = W.tumbling("10 ms").agg(ids=sash.collect("id")).stream()
    stream = seeded(spec, plain((0, 85), (1, 95)))
    assert [row["ids"] for row in stream.finish().rows()] == [[1]]


def test_a_shard_without_history_knows_when_it_ended():
    spec = W.rows(2).agg(n=sash.count()).stream(late="aside")
    stream = seeded(spec, plain((0, 95)), n_shards=8)
    keys = [chr(ord("a") + n) for n in range(20)]
    early = as_table([{"id": n, "k": key, "ts": 94_000, "q": 0} for n, key in enumerate(keys)])
    assert stream.push(early).counts["late"] == 20


def test_keys_that_history_leaves_silent_for_too_long_begin_anew():
    spec = W.rows(9).agg(ids=sash.collect("id")).stream(emit="eager", idle="10 ms")
    stream = seeded(spec, plain((0, 50), (1, 70), (2, 75), (3, 85), (4, 95)))
    assert stream.push(plain((9, 101))).rows()[0]["ids"] == [1, 2, 3, 4, 9]


def test_deletions_in_history_are_applied():
    def changes(*rows):
        table = plain(*((n, ms) for n, ms, _ in rows))
        return table.append_column("op", pa.array([op for *_, op in rows]))

    spec = W.range("1 hour").agg(n=sash.count()).stream(emit="revise", changes="op", lateness="1 hour")
    history = pa.concat_tables([changes((0, 1, "insert"), (1, 2, "insert")), changes((0, 1, "delete"))])
    stream = seeded(spec, history)
    assert [(row["id"], row["n"]) for row in stream.push(changes((9, 3, "insert"))).rows()] == [(9, 2)]
    taken_back = stream.push(history.slice(1, 1).set_column(10, "op", pa.array(["delete"]))).rows()
    assert {(row["id"], row["op"], row["revision"], row["n"]) for row in taken_back} == {
        (1, "delete", 1, None),
        (9, "insert", 1, 1),
    }


def test_rows_of_history_that_cannot_be_placed_are_left_out_or_raised():
    history = with_hash(plain((0, 85), (1, 95), (2, 10**9)), ["k"])
    history = far_ahead(history, [False, False, True])
    spec = W.rows(9).agg(ids=sash.collect("id"))
    stream = seeded(spec.stream(emit="eager"), history)
    assert stream.push(plain((9, 97))).rows()[0]["ids"] == [0, 1, 9]
    with pytest.raises(sash.DataError, match="1 too far ahead"):
        seeded(spec.stream(late="raise"), history)


def test_without_history_nothing_is_late():
    spec = W.rows(2).agg(n=sash.count()).stream()
    rows, late = answered(seeded(spec, SCHEMA.empty_table()), [plain((0, -9)), plain((1, 5))])
    assert ([row["n"] for row in rows], late) == ([1, 2], 0)
