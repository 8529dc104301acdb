"""Rows out of reach: without them no row to come has another answer."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sash
from sash.frames.answering import Reader, arrange
from sash.frames.arrow_tables import Source
from sash.streams.plans import Plan
from sash.streams.reach import Settled, kept, require_reach
from sash.streams.timing import times_of
from tests.streams.rows import SCHEMA, TICK, arrivals
from tests.streams.simulating import multiset
from tests.streams.test_parity import WINDOWS

pytestmark = pytest.mark.usefixtures("interpreted")
FEW = settings(max_examples=max(settings.default.max_examples // 5, 1))


def in_reach(spec, rows, watermark):
    """The rows, sorted, and which of them are in reach."""
    plan = Plan((spec,), SCHEMA, {})
    arranged = arrange(plan.window, Reader(Source(rows)))
    rows = rows if arranged.numbers is None else rows.take(pa.array(arranged.numbers)).combine_chunks()
    settled = Settled(Reader(Source(rows)), times_of(rows.column("ts")), arranged.begins, watermark)
    return rows, kept(plan, settled, None)


@pytest.mark.parametrize("name", WINDOWS)
@FEW
@given(table=arrivals(), ticks=st.integers(-12, 30))
def test_without_rows_out_of_reach_answers_are_the_same(name, table, ticks):
    watermark = ticks * TICK
    spec = WINDOWS[name].agg(n=sash.count(), ids=sash.collect("id"))
    old = [number for number, time in enumerate(times_of(table.column("ts"))) if time < watermark]
    rows, mask = in_reach(spec, table.take(pa.array(old, pa.int64())).combine_chunks(), watermark)
    later = table.filter(pa.array(times_of(table.column("ts")) >= watermark))
    all_rows = spec(pa.concat_tables([rows, later]).combine_chunks()).slice(rows.num_rows)
    few_rows = spec(pa.concat_tables([rows.filter(pa.array(mask)), later]).combine_chunks()).slice(int(mask.sum()))
    assert multiset(few_rows.to_pylist()) == multiset(all_rows.to_pylist())


@pytest.mark.parametrize("name", WINDOWS)
@FEW
@given(table=arrivals(), ticks=st.integers(-12, 30))
def test_rows_at_or_after_the_watermark_are_kept(name, table, ticks):
    rows, mask = in_reach(WINDOWS[name].agg(n=sash.count()), table, ticks * TICK)
    assert mask[times_of(rows.column("ts")) >= ticks * TICK].all()


def test_of_a_range_only_rows_within_it_are_kept():
    table = pa.Table.from_pylist([{"id": n, "k": "a", "ts": 1_000 * n, "q": 0, "m": n} for n in range(100)], SCHEMA)
    spec = sash.window(by="k", order_by="ts").range("4 ms", lag="1 ms").agg(n=sash.count())
    assert in_reach(spec, table, 90_000)[1].sum() == 5 + 10
    assert in_reach(sash.window(by="k", order_by="ts").rows(7).agg(n=sash.count()), table, 10**9)[1].sum() == 6


@pytest.mark.parametrize("emit", ["final", "revise"])
def test_windows_that_grow_as_long_as_a_mark_stands_still_are_refused_with_the_remedy(emit):
    window = sash.window(by="k", order_by="ts")

    def plan(emit, **options):
        return Plan((window.delta("m", 4, **options).agg(n=sash.count()).stream(emit=emit),), SCHEMA, {})

    with pytest.raises(sash.UnsupportedError, match=r"no watermark says.*delta\('m', 4, ties='upto'\).*emit='eager'"):
        require_reach(plan(emit))
    require_reach(plan(emit, ties="upto"))
    require_reach(plan("eager"))


def test_a_policy_stands_alone_and_answers_in_order():
    policed = sash.window(order_by="ts").evict_while(lambda total, old: total.n > 3, n=sash.count()).agg(n=sash.count())
    require_reach(Plan((policed,), SCHEMA, {}))
    with pytest.raises(sash.UnsupportedError, match="would change what the policy left"):
        require_reach(Plan((policed.stream(emit="eager"),), SCHEMA, {}))
    other = sash.window(order_by="ts").rows(2).agg(m=sash.count())
    with pytest.raises(sash.UnsupportedError, match="stands alone"):
        require_reach(Plan((policed, other), SCHEMA, {}))
