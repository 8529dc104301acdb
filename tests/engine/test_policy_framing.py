"""Frames of slide policies, against the definition: the longest oldest part that must go, at every row."""

from __future__ import annotations

import itertools
from collections import namedtuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sash
from sash.engine.columns import Column
from sash.engine.running import Batch, Run, answer_whole
from sash.testing.monoids import Concat
from sash.windows.bounds import Bounds, EveryRows
from sash.windows.policies import Policy, as_policy, at_most, sum_at_most

Seen = namedtuple("Seen", "n total")
NAMES = {"rows": sash.agg(Concat, "i")}


def heavy(total, old):
    """Keep at most 20.0 in total and at most four rows; a single row may be too heavy, and goes as well."""
    return total.total - old.total >= 20.0 or total.n - old.n >= 4 or total.total >= 90.0


HEAVY = as_policy(heavy, {"n": sash.count(), "total": sash.sum("y")})


def seen(rows, values):
    present = [values[j] for j in rows if values[j] is not None]
    return Seen(len(rows), sum(present) if present else float("nan"))


def windows(keys, values, rule):
    """The definition: with each row, the longest prefix goes that the policy says must go."""
    found, window = [], []
    for i in range(len(keys)):
        window = [*(j for j in window if keys[j] == keys[i]), i]
        total = seen(window, values)
        goes = [p for p in range(1, len(window) + 1) if rule(total, seen(window[:p], values))]
        n_gone = 0
        while n_gone + 1 in goes:
            n_gone += 1
        window = window[n_gone:]
        found.append(window)
    return found


def batch_of(keys, values, begin, end):
    begins = np.array([i == 0 or keys[i] != keys[i - 1] for i in range(begin, end)], np.bool_)
    y = np.array([0.0 if value is None else value for value in values[begin:end]])
    valid = np.array([value is not None for value in values[begin:end]], np.bool_)
    numbers = np.arange(begin, end)
    return Batch(begins, numbers, {"y": Column(y, valid), "i": Column(numbers, None)})


def run_in_pieces(bounds, keys, values, cuts):
    edges = [0, *sorted(min(cut, len(keys)) for cut in cuts), len(keys)]
    run, answered = Run(bounds, NAMES), []
    for begin, end in itertools.pairwise(edges):
        answered.append(run.push(batch_of(keys, values, begin, end)))
        data, run = run.snapshot(), Run(bounds, NAMES)
        run.restore(data)
    answered.append(run.finish())
    rows = [row for each in answered for row in each.rows.tolist()]
    texts = [text for each in answered for text in each.answers[0].values.tolist()]
    return dict(zip(rows, texts, strict=True))


def text(rows):
    return ",".join(map(str, rows)) or None


@pytest.mark.parametrize("jit", ["0", "1"])
@given(
    keys=st.lists(st.integers(0, 3), max_size=40).map(sorted),
    data=st.data(),
    cuts=st.lists(st.integers(0, 40), max_size=4),
    every=st.sampled_from((None, EveryRows(3))),
)
@settings(max_examples=30)
def test_the_longest_old_part_that_must_go_leaves(jit, keys, data, cuts, every):
    weights = st.one_of(st.none(), st.sampled_from((0.0, 1.0, 4.0, 8.0, 30.0, 95.0)))
    values = data.draw(st.lists(weights, min_size=len(keys), max_size=len(keys)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SASH_JIT", jit)
        found = run_in_pieces(Bounds(policy=HEAVY, every=every), keys, values, cuts)
    wanted = {i: text(rows) for i, rows in enumerate(windows(keys, values, heavy))}
    if every is not None:
        wanted = {i: each for i, each in wanted.items() if keys[: i + 1].count(keys[i]) % 3 == 0}
    assert found == wanted


def test_the_policies_of_the_library_slide_tables(monkeypatch):
    monkeypatch.setenv("SASH_JIT", "0")
    keys, values = [0] * 30 + [1] * 30, [float(k % 7) for k in range(60)]
    batch = batch_of(keys, values, 0, 60)
    wanted = answer_whole(Bounds(rows=5), {"s": sash.sum("y")}, batch)
    found = answer_whole(Bounds(policy=at_most(5)), {"s": sash.sum("y")}, batch)
    assert found.answers[0].values.tolist() == wanted.answers[0].values.tolist()
    light = answer_whole(Bounds(policy=sum_at_most(10.0, "y")), {"s": sash.sum("y")}, batch)
    assert max(light.answers[0].values.tolist()) == 10.0


def test_a_policy_decides_alone():
    with pytest.raises(sash.DeclarationError, match="either"):
        Bounds(policy=at_most(5), rows=3)
    batch, policy = batch_of([0], [1.0], 0, 1), Policy("p", heavy, (("n", sash.count("z")),))
    with pytest.raises(sash.UnknownNameError, match="unknown column 'z'"):
        answer_whole(Bounds(policy=policy), NAMES, batch)


@pytest.mark.parametrize("jit", ["0", "1"])
def test_integer_sums_are_cut_off_for_policies_and_never_wrap_around(jit, monkeypatch):
    monkeypatch.setenv("SASH_JIT", jit)
    y = np.array([5, -7, 2**62, 2**62, 2**62, -(2**62), -(2**62), -9])
    batch = Batch(np.arange(8) == 0, np.arange(8), {"y": Column(y, None)})
    policy = as_policy(lambda total, old: total.sum == 2**63 - 1, {"sum": sash.sum("y")})
    n_rows = answer_whole(Bounds(policy=policy), {"n": sash.count()}, batch).answers[0].values.tolist()
    assert n_rows == [1, 2, 3, 4, 0, 1, 2, 3]  # the fifth makes it 3 * 2**62 - 2
