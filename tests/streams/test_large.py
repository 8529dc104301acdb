"""The parity law for large keys, whose rows are in chunks of their own: with chunks so small that few rows are many."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sash
from sash.streams import chunks, large
from sash.streams.contract import HASH
from tests.streams import simulating
from tests.streams.rows import AGGREGATES, SCHEMA, arrivals, as_table
from tests.streams.simulating import Stream, announced, split
from tests.streams.test_parity import check_eager, check_final, check_revise, shards, spec_of

pytestmark = pytest.mark.usefixtures("interpreted", "small_chunks")

W = sash.window(by="k", order_by="ts")
ONE = sash.window(order_by="ts")
WINDOWS = {
    "rows": W.rows(9),
    "rows, at least": W.rows(12, min_rows=10),
    "range": W.range("9 ms"),
    "closed right": W.range("8 ms", closed="right"),
    "closed left": W.range("8 ms", closed="left"),
    "closed none, ties upto": W.range("8 ms", closed="none", ties="upto"),
    "ties upto": W.range("7500 us", ties="upto"),
    "lag": W.range("6 ms", lag="3 ms"),
    "lag, closed left": W.range("4 ms", lag="5 ms", closed="left"),
    **{
        f"two bounds, closed {closed}, ties {ties}": W.range("9 ms", rows=rows, closed=closed, ties=ties)
        for closed, rows in (("both", 11), ("right", 7), ("left", 4), ("none", 7))
        for ties in ("peers", "upto")
    },
    "range, at least": W.range("8 ms", min_rows=7),
    "everything": W.everything(),
    "everything, ties upto": W.everything(ties="upto", min_rows=4),
    "one key": ONE.range("6 ms"),
    "one key, rows": ONE.rows(13),
    "two keys and a tie-breaker": sash.window(by=["k", "j"], order_by=["ts", "q"]).range("9 ms"),
    "integer key": sash.window(by="j", order_by=["ts", "q"]).everything(),
}
CHECKS = {"final": check_final, "eager": check_eager, "revise": check_revise}
numbers = st.lists(
    st.sampled_from(["n", "total", "exactly", "top", "own", "marked"]), min_size=1, max_size=2, unique=True
)
long_cuts = st.lists(st.integers(0, 12), max_size=10)
FEW = settings(max_examples=max(settings.default.max_examples // 5, 1))


@pytest.fixture(scope="module")
def small_chunks():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "ROWS", 3)
        patch.setattr(large, "LARGE", 5)
        yield


@pytest.mark.parametrize("emit", CHECKS)
@pytest.mark.parametrize("name", WINDOWS)
@FEW
@given(table=arrivals(max_size=60), sizes=long_cuts, n_shards=shards, names=numbers)
def test_large_keys_answer_as_small_ones_do(name, emit, table, sizes, n_shards, names):
    CHECKS[emit](spec_of(WINDOWS[name], names, emit), table, sizes, n_shards)


@pytest.mark.parametrize("emit", CHECKS)
@FEW
@given(table=arrivals(max_size=60), sizes=long_cuts, n_shards=shards, names=numbers)
def test_several_windows_of_large_keys_answer_together(emit, table, sizes, n_shards, names):
    windows = [W.range("9 ms"), W.rows(8), W.everything(), W.range("3 ms", lag="1 ms")]
    specs = [
        window.agg(**{f"{each}_{place}": AGGREGATES[each] for each in names}) for place, window in enumerate(windows)
    ]
    CHECKS[emit](sash.together(*specs).stream(emit=emit, lateness="3 ms"), table, sizes, n_shards)


def test_keys_with_many_rows_in_reach_are_in_chunks_and_leave_none_behind():
    rows = [{"id": n, "k": "ab"[n % 2], "ts": 500 * n, "q": 0, "i": n} for n in range(80)]
    spec = spec_of(W.range("9 ms"), ["n", "own"], "eager")
    table = as_table(rows)
    stream, n_spines = Stream(spec, SCHEMA, announced(spec, table)), set()
    for part in split(table, [7] * 11):
        stream.push(part)
        kinds = Counter(kind for kind, _ in stream.shards[0])
        n_spines.add(kinds[chunks.SPINE])
        assert kinds[chunks.CHUNK] <= 2 * 12, "those in reach, of three rows or more"
    assert max(n_spines) == 2
    far = as_table([{"id": 99, "k": "c", "ts": 10**9, "q": 0, "i": 0}])
    for _ in range(4):  # one key is swept each time
        stream.push(far)
    assert {kind for kind, _ in stream.shards[0]} == {"head", "page"}


@pytest.mark.parametrize("emit", CHECKS)
@FEW
@given(table=arrivals(max_size=60), sizes=long_cuts)
def test_keys_that_share_a_hash_are_still_keys_of_their_own(emit, table, sizes):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulating, "with_hash", with_one_hash)
        CHECKS[emit](spec_of(W.range("9 ms"), ["n", "own"], emit), table, sizes, 1)
        CHECKS[emit](spec_of(W.session("2 ms"), ["n", "listed"], emit), table, sizes, 1)


@pytest.mark.parametrize("emit", CHECKS)
@pytest.mark.parametrize("closed", ["both", "right", "left", "none"])
@pytest.mark.parametrize("rows", [3, 4, 6])
def test_of_two_bounds_the_rows_are_counted_from_where_the_window_ends(rows, closed, emit):
    """Windows that begin exactly where a chunk does: without the row itself they begin a row earlier."""
    given = [{"id": n, "k": "a", "ts": 500 * n, "q": 0, "i": n} for n in range(40)]
    spec = spec_of(W.range("1 hour", rows=rows, closed=closed), ["n", "total", "own"], emit)
    CHECKS[emit](spec, as_table(given), [18, *[1] * 12], 1)


def with_one_hash(rows, by):
    return rows.append_column(HASH, pa.array(np.full(rows.num_rows, 7)))
