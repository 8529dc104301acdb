"""Quantiles by ranks: the bits of the monoid's answers, over any frames, blocks and types; ranks and their finger."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sash
from sash.algebra.quantiles import quantile
from sash.compiling.jit import compiled, entry, interpreted
from sash.engine import ranked
from sash.engine.columns import Column
from sash.engine.ranks import Finger, moves, no_ranks, set_of_ranks
from sash.engine.running import Batch, Run, answer_whole
from sash.engine.tasks import tasks_of
from sash.windows.bounds import Bounds, Every, EveryRows
from sash.windows.frames import Frames

AWKWARD = [0.0, -0.0, math.inf, -math.inf, math.nan, -math.nan, 5e-324, 1.0, 1.0 + 2**-52, -1.5, 1e300, 7.0]
FRACTIONS = st.floats(0, 1) | st.sampled_from([0, 0.25, 0.5, 0.9, 1])
JIT = pytest.mark.parametrize("jit", ["0", "1"], ids=["interpreted", "compiled"])


def bits(answers):
    """Floats written so that two are equal only if all their bits are; there is one NaN."""
    return [None if x is None else float(x).hex() for x in answers]


def by_the_monoid(values, frames, q):
    """The definition: lift, combine and lower, row by row."""
    monoid, answers = quantile(q=q).bind(None), []
    for start, end in zip(*frames, strict=True):
        total = ((), 0)
        for value in values[start:end]:
            total = total if value is None else monoid.combine(total, monoid.lift(value))
        answers.append(monoid.lower(total) if total != ((), 0) else None)
    return bits(answers)


def by_ranks(values, frames, q, dtype=np.float64):
    present = np.array([value is not None for value in values], np.bool_)
    filled = np.array([0 if value is None else value for value in values], dtype)
    (task,) = tasks_of({"x": Column(filled, None if present.all() else present)}, quantile("x", q))
    answers, valid = ranked.quantiles(task, Frames(*(np.array(each, np.int64) for each in frames)))
    return _bits_of(Column(answers, valid))


@st.composite
def frames_of(draw, n):
    starts = sorted(draw(st.lists(st.integers(0, n), max_size=20)))
    ends = sorted(draw(st.lists(st.integers(0, n), min_size=len(starts), max_size=len(starts))))
    return starts, [max(pair) for pair in zip(starts, ends, strict=True)]


@JIT
@given(st.lists(st.none() | st.sampled_from(AWKWARD) | st.floats(-3, 3), max_size=30), FRACTIONS, st.data())
@settings(max_examples=60)
def test_ranks_give_the_bits_of_the_monoid(jit, values, q, data):
    frames = data.draw(frames_of(len(values)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SASH_JIT", jit)
        patch.setattr(ranked, "LEAST", data.draw(st.sampled_from([1, 7, 1000])))
        patch.setattr(ranked, "WORTHWHILE", 3)
        assert by_ranks(values, frames, q) == by_the_monoid(values, frames, q)


@JIT
@pytest.mark.parametrize("dtype", ["?", "i1", "u2", "i8", "u8", "f4"])
def test_numbers_of_all_types_are_ranked_without_being_rounded(jit, dtype, monkeypatch):
    monkeypatch.setenv("SASH_JIT", jit)
    monkeypatch.setattr(ranked, "LEAST", 40)
    generator = np.random.default_rng(3)
    if dtype in ("i8", "u8"):  # so far apart that neighbours differ only in bits that are cut off
        info = np.iinfo(dtype)
        ends = np.array([info.min, info.max], dtype)
        values = np.concatenate([ends, generator.integers(info.max - 9, info.max, 200, dtype, endpoint=True)])
    else:
        values = generator.integers(0, 2 if dtype == "?" else 100, 202).astype(dtype)
    starts = np.arange(195)
    frames = (starts, starts + 8)
    assert by_ranks(values.tolist(), frames, 0.3, dtype) == by_the_monoid(values.tolist(), frames, 0.3)


@JIT
def test_values_whose_first_bits_are_all_the_same_are_sorted_anew(jit, monkeypatch):
    monkeypatch.setenv("SASH_JIT", jit)
    monkeypatch.setattr(ranked, "PATIENCE", 0)
    values = [-(2**63), 2**63 - 1, *(2**62 - i for i in range(300))]
    assert by_ranks(values, ([0, 5], [300, 302]), 0.5, np.int64) == by_the_monoid(values, ([0, 5], [300, 302]), 0.5)


@JIT
@given(st.lists(st.integers(0, 5000), max_size=40), st.sampled_from([1, 64, 65, 4096, 5001, 300_000]))
@settings(max_examples=40)
def test_a_set_of_ranks_knows_the_neighbours_of_every_rank(jit, given_ranks, n):
    jit, outer = (compiled, entry) if jit == "1" else (interpreted, interpreted)
    add, remove, after, before = map(outer, set_of_ranks(jit, is_compiled=jit is compiled))
    words, present = no_ranks(n, jit is compiled), set()
    for rank in (rank % n for rank in given_ranks):
        (remove if rank in present else add)(words, n, rank)
        present ^= {rank}
        assert after(words, n, rank) == min((r for r in present if r > rank), default=n)
        assert before(words, n, rank) == max((r for r in present if r < rank), default=-1)
    for rank in present:
        remove(words, n, rank)
    assert not any(words)


@given(st.lists(st.tuples(st.integers(0, 200), st.integers(0, 99)), max_size=60))
def test_the_finger_stays_on_a_present_rank_and_knows_how_many_are_below(steps):
    n, present = 201, set()
    enter, leave, seek = moves(set_of_ranks(interpreted, is_compiled=False), interpreted)
    words, at = no_ranks(n, False), Finger(0, 0, 0, 0)
    for rank, k in steps:
        at = (leave if rank in present else enter)(words, n, at, rank)
        present ^= {rank}
        if present:
            at = seek(words, n, at, k % len(present))
            in_order = [*sorted(present), n]
            assert at == Finger(len(present), in_order[k % len(present)], k % len(present), in_order[at.below + 1])
        assert at.n == len(present)


@pytest.mark.parametrize(
    "bounds",
    [Bounds(rows=5), Bounds(span=9, closed="left"), Bounds(rows=6, min_rows=4), Bounds(), Bounds(gap=2),
     Bounds(span=12, every=Every(5)), Bounds(rows=4, every=EveryRows(3))],
    ids=str,
)  # fmt: skip
def test_whole_tables_and_batches_answer_the_same_bytes(bounds):
    generator = np.random.default_rng(8)
    keys = np.sort(generator.integers(0, 4, 120))
    order = np.sort(keys * 1000 + generator.integers(0, 90, 120)) - keys * 1000
    x = Column(generator.choice(AWKWARD, 120), generator.random(120) < 0.8)
    rows = Batch(np.append(True, keys[1:] != keys[:-1]), order, {"x": x})
    asked = {"median": sash.median("x"), "n": sash.count(), "q": sash.quantile("x", 0.9)}
    whole, run = answer_whole(bounds, asked, rows), Run(bounds, asked)
    pushed = [run.push(_part(rows, begin, begin + 30)) for begin in range(0, 120, 30)]
    pushed.append(run.finish())
    assert np.concatenate([each.rows for each in pushed]).tolist() == whole.rows.tolist()
    for place in range(3):
        columns = [each.answers[place] for each in pushed]
        kinds = {column.values.dtype for column in columns if len(column.values)}  # of nothing, no type is known
        assert kinds == {whole.answers[place].values.dtype}
        assert [x for column in columns for x in _bits_of(column)] == _bits_of(whole.answers[place])


def _part(rows, begin, end):
    part = slice(begin, end)
    column = rows.columns["x"]
    return Batch(rows.begins[part], rows.order[part], {"x": Column(column.values[part], column.valid[part])})


def _bits_of(column):
    valid = np.ones(len(column.values), np.bool_) if column.valid is None else column.valid
    return bits(x if there else None for x, there in zip(column.values.tolist(), valid.tolist(), strict=True))


def test_sash_slide_gives_floats_with_nan_or_a_mask_for_null():
    assert sash.slide([3.0, 1.0, 2.0], sash.median(), rows=2).tolist() == [3.0, 2.0, 1.5]
    assert sash.slide([4, 1, 2], [sash.quantile(q=0.25), sash.max()], times=[0, 1, 9], span=3)[0].tolist() == [
        4,
        1.75,
        2,
    ]
    empty = sash.slide([1.0, 2.0], sash.median(), times=[0, 5], span=1, closed="left")
    assert np.isnan(empty).all()
    masked = sash.slide(np.ma.MaskedArray([1.0, 2.0], [True, False]), sash.median(), rows=1)
    assert masked.tolist() == [None, 2.0]
    assert sash.slide(np.empty(0), sash.median(), rows=3).dtype == np.float64


def test_an_algorithm_asked_for_by_name_goes_through_partials():
    values = np.array([5.0, math.nan, 1.0, 3.0])
    rows = Batch(np.arange(4) == 0, np.arange(4), {"x": Column(values, None)})
    forced = answer_whole(Bounds(rows=3), {"m": sash.median("x")}, rows, "two_stacks_lite")
    assert _bits_of(forced.answers[0]) == _bits_of(
        answer_whole(Bounds(rows=3), {"m": sash.median("x")}, rows).answers[0]
    )
