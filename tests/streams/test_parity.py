"""The parity law: however a stream is cut, mixed, divided and restarted, its answers are those of batch."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sash
from sash.streams.plans import Plan
from tests.streams.rows import AGGREGATES, LATENESS_US, arrivals, as_table, cuts
from tests.streams.simulating import Stream, announced, due_of, multiset, on_time, split

pytestmark = pytest.mark.usefixtures("interpreted", "joined_pieces")

W = sash.window(by="k", order_by="ts")
TIED = sash.window(by=["k", "j"], order_by=["ts", "q"])
MARKED = sash.window(by="k", order_by=["ts", "q", "id"])  # the mark never falls in this order
WINDOWS = {
    "rows": W.rows(3),
    "one row": W.rows(1),
    "rows, at least": W.rows(4, min_rows=3),
    "closed right": W.range("4 ms", closed="right"),
    "closed left, ties upto": W.range("4 ms", closed="left", ties="upto"),
    "closed none": W.range("4 ms", closed="none"),
    "ties upto": W.range("2500 us", ties="upto"),
    "lag": W.range("3 ms", lag="2 ms"),
    "lag, closed none, ties upto": W.range("3 ms", lag="1 ms", closed="none", ties="upto"),
    "two bounds": W.range("5 ms", rows=3),
    "range, at least": W.range("4 ms", min_rows=2),
    "everything": W.everything(),
    "everything, ties upto": W.everything(ties="upto"),
    "session": W.session("2 ms"),
    "delta": MARKED.delta("m", 3, ties="upto"),
    "since": W.since("b"),
    "all rows are one key": sash.window(order_by="ts").range("4 ms"),
    "two keys and a tie-breaker": TIED.range("4 ms"),
    "rows with a tie-breaker": TIED.rows(3),
    "integer key": sash.window(by="j", order_by=["ts", "id"]).session("1 ms"),
}
EAGER = {"delta, peers": MARKED.delta("m", 3)}  # whose windows may grow as long as the mark stands still


def too_heavy(total, old):
    return total.weight - old.weight >= 4 or total.n >= 7  # seven rows, and all of them go


GRIDS = {  # and whatever else is final only
    "every 3 rows": W.rows(4).every(rows=3),
    "range every 2 rows": W.range("3 ms").every(rows=2),
    "session every 2 rows": TIED.session("2 ms").every(rows=2),
    "tumbling": W.tumbling("3 ms"),
    "tumbling from an origin": W.tumbling("3 ms", origin="1 ms"),
    "every, closed both": W.range("5 ms").every("2 ms"),
    "every, closed right": W.range("5 ms", closed="right").every("2 ms", origin="500 us"),
    "every, closed left": W.range("2 ms", closed="left").every("4 ms"),
    "every, closed none": TIED.range("3 ms", closed="none").every("2 ms"),
    "every, lag": W.range("3 ms", lag="2 ms").every("2 ms"),
    "every, last rows": W.rows(2).every("2 ms"),
    "every, everything": W.everything().every("3 ms"),
    "one key on a grid": sash.window(order_by="ts").tumbling("2 ms"),
    "policy": TIED.evict_while(sash.policies.at_most(3)),
    "policy without tie-breakers": W.evict_while(sash.policies.at_most(3)),
    "policy of one's own, without tie-breakers": W.evict_while(too_heavy, weight=sash.sum("q"), n=sash.count()),
    "policy of one's own": TIED.evict_while(too_heavy, weight=sash.sum("q"), n=sash.count()),
}  # fmt: skip
FEW = settings(max_examples=max(settings.default.max_examples // 5, 1))
aggregates = st.lists(st.sampled_from(sorted(AGGREGATES)), min_size=1, max_size=3, unique=True)
shards = st.integers(1, 3)


def spec_of(window, names, emit):
    spec = window.agg(**{name: AGGREGATES[name] for name in names})
    return spec.stream(emit=emit, lateness=f"{LATENESS_US} us")


def running(spec, table, n_shards):
    return Stream(spec, table.schema, announced(spec, table), n_shards)


def check_final(spec, table, sizes, n_shards):
    stream = running(spec, table, n_shards)
    steps = [stream.push(part) for part in split(table, sizes)]
    steps.append(stream.finish())
    assert multiset(row for step in steps for row in step.rows()) == multiset(spec(table).to_pylist())
    assert sum(step.counts["late"] for step in steps) == 0
    assert stream.finish().rows() == []


def check_eager(spec, table, sizes, n_shards):
    stream, arrived = running(spec, table, n_shards), 0
    for part in split(table, sizes):
        step = stream.push(part)
        so_far = spec(table.slice(0, arrived + part.num_rows)).slice(arrived)
        assert multiset(step.rows()) == multiset(so_far.to_pylist())
        arrived += part.num_rows
    assert stream.finish().rows() == []


def check_revise(spec, table, sizes, n_shards):
    stream, arrived, known = running(spec, table, n_shards), 0, {}
    for part in split(table, sizes):
        arrived += part.num_rows
        for row in stream.push(part).rows():
            revision = row.pop("revision")
            before = known.get(row["id"])
            assert revision == (0 if before is None else before[0] + 1)
            assert before is None or repr(before[1]) != repr(row), "an answer that has not changed is no news"
            known[row["id"]] = revision, row
        assert multiset(row for _, row in known.values()) == multiset(spec(table.slice(0, arrived)).to_pylist())
    assert stream.finish().rows() == []


@pytest.mark.parametrize("name", [*WINDOWS, *GRIDS])
@FEW
@given(table=arrivals(), sizes=cuts, n_shards=shards, names=aggregates)
def test_final_answers_are_those_of_batch(name, table, sizes, n_shards, names):
    check_final(spec_of((WINDOWS | GRIDS)[name], names, "final"), table, sizes, n_shards)


@pytest.mark.parametrize("name", [*WINDOWS, *EAGER])
@FEW
@given(table=arrivals(), sizes=cuts, n_shards=shards, names=aggregates)
def test_eager_answers_are_over_all_rows_that_have_come(name, table, sizes, n_shards, names):
    check_eager(spec_of((WINDOWS | EAGER)[name], names, "eager"), table, sizes, n_shards)


@pytest.mark.parametrize("name", WINDOWS)
@FEW
@given(table=arrivals(), sizes=cuts, n_shards=shards, names=aggregates)
def test_after_each_micro_batch_the_last_revisions_are_what_batch_says(name, table, sizes, n_shards, names):
    check_revise(spec_of(WINDOWS[name], names, "revise"), table, sizes, n_shards)


TOGETHER = {
    "spans": (W.range("2 ms"), W.range("7 ms", closed="right")),
    "kinds": (W.rows(2), W.session("2 ms"), W.range("3 ms", lag="1 ms")),
    "grids": (W.range("3 ms").every("2 ms"), W.range("6 ms").every("2 ms")),
    "every few rows": (W.rows(3).every(rows=2), W.range("2 ms").every(rows=2)),
}


@pytest.mark.parametrize("emit", ["final", "eager", "revise"])
@pytest.mark.parametrize("name", TOGETHER)
@FEW
@given(table=arrivals(), sizes=cuts, n_shards=shards, names=aggregates)
def test_specs_together_answer_a_stream_as_they_answer_batch(name, emit, table, sizes, n_shards, names):
    if emit != "final" and TOGETHER[name][0].grid is not None:
        return
    specs = [
        window.agg(**{f"{each}_{number}": AGGREGATES[each] for each in names})
        for number, window in enumerate(TOGETHER[name])
    ]
    spec = sash.together(*specs).stream(emit=emit, lateness=f"{LATENESS_US} us")
    {"final": check_final, "eager": check_eager, "revise": check_revise}[emit](spec, table, sizes, n_shards)


@pytest.mark.parametrize("name", ["rows", "lag", "session", "since", "every 3 rows", "tumbling", "every, closed both"])
@FEW
@given(table=arrivals(within=8 * LATENESS_US), sizes=cuts, n_shards=shards)
def test_final_answers_with_late_rows_are_those_of_batch_without_them(name, table, sizes, n_shards):
    spec = spec_of((WINDOWS | GRIDS)[name], ["n", "listed"], "final")
    parts = split(table, sizes)
    stream = running(spec, table, n_shards)
    fits = on_time(parts, "ts", LATENESS_US, due_of(Plan((spec,), stream.schema, stream.types)))
    fits = [fit for part in fits for fit in part]
    steps = [*(stream.push(part) for part in parts), stream.finish()]
    assert multiset(row for step in steps for row in step.rows()) == multiset(
        spec(table.filter(pa.array(fits, pa.bool_()))).to_pylist()
    )
    assert sum(step.counts["late"] for step in steps) == fits.count(False)


@pytest.mark.parametrize("name", ["rows", "lag", "session", "since"])
@FEW
@given(table=arrivals(within=8 * LATENESS_US), sizes=cuts, n_shards=shards)
def test_eager_and_revised_answers_leave_late_rows_out(name, table, sizes, n_shards):
    parts = split(table, sizes)
    fits = on_time(parts, "ts", LATENESS_US)
    kept = table.filter(pa.array([fit for part in fits for fit in part], pa.bool_()))
    for emit in ("eager", "revise"):
        spec = spec_of(WINDOWS[name], ["n", "listed"], emit)
        stream, arrived, known = running(spec, table, n_shards), 0, {}
        for part, fit in zip(parts, fits, strict=True):
            rows = stream.push(part).rows()
            now = spec(kept.slice(0, arrived + sum(fit)))
            if emit == "eager":
                assert multiset(rows) == multiset(now.slice(arrived).to_pylist())
            known |= {row["id"]: {name: row[name] for name in now.schema.names} for row in rows}
            arrived += sum(fit)
        assert emit == "eager" or multiset(known.values()) == multiset(spec(kept).to_pylist())


@pytest.mark.parametrize("name", [*WINDOWS, *GRIDS])
@FEW
@given(table=arrivals(max_size=12), times=st.lists(st.integers(1, 3), min_size=12, max_size=12), sizes=cuts)
def test_rows_that_are_equal_in_everything_are_rows_each(name, table, times, sizes):
    """Such rows come right after one another; nothing tells them apart, and each has an answer."""
    repeated = [place for place in range(table.num_rows) for _ in range(times[place])]
    table = table.take(pa.array(repeated, pa.int64())).combine_chunks()
    check_final(spec_of((WINDOWS | GRIDS)[name], ["n", "listed"], "final"), table, sizes, 2)
    if name in WINDOWS:
        check_eager(spec_of(WINDOWS[name], ["n", "listed"], "eager"), table, sizes, 2)


@FEW
@given(table=arrivals(max_size=40), sizes=cuts)
def test_the_number_of_shards_is_not_seen_in_the_answers(table, sizes):
    spec = spec_of(W.range("4 ms"), ["n", "own", "joined"], "revise")
    found = []
    for n_shards in (1, 2, 7, 200):
        stream = running(spec, table, n_shards)
        found.append([multiset(stream.push(part).rows()) for part in split(table, sizes)])
    assert all(each == found[0] for each in found)


def test_machine_code_gives_what_the_same_source_gives_interpreted(monkeypatch):
    monkeypatch.setenv("SASH_JIT", "1")
    rows = [{"id": n, "k": "ab"[n % 2], "ts": 700 * (n ^ 3), "q": 0, "i": n % 7} for n in range(60)]
    table = as_table(rows)
    for emit, check in (("final", check_final), ("eager", check_eager), ("revise", check_revise)):
        check(spec_of(W.range("4 ms"), ["n", "total", "own"], emit), table, [7, 0, 20, 20], 2)
