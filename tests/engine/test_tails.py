"""Tails: what is kept of a column is its youngest rows, by number, whatever was appended and forgotten before."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sash.engine.columns import Column
from sash.engine.tails import ColumnTail, Tail

STEPS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 12), st.booleans()), max_size=12)


@given(steps=STEPS)
def test_a_tail_keeps_the_rows_from_its_base_on(steps):
    tail, n, base = Tail(np.int64), 0, 0
    for n_more, n_forgotten, is_reloaded in steps:
        batch = np.arange(n, n + n_more)
        tail.append(batch)
        n += n_more
        base = max(base, min(base + n_forgotten, n))
        tail.forget(base)
        tail.settle()
        batch[:] = -1  # a batch belongs to whoever gave it
        if is_reloaded:
            tail = Tail.load(tail.dump())
        assert tail.values.tolist() == list(range(base, n))
        assert (tail.base, tail.end) == (base, n)


@given(steps=STEPS)
def test_nulls_are_kept_with_their_rows(steps):
    tail, presence, base = ColumnTail(np.int64), [], 0
    for n_more, n_forgotten, has_nulls in steps:
        numbers = np.arange(len(presence), len(presence) + n_more)
        valid = numbers % 3 != 0 if has_nulls else None
        tail.append(Column(numbers, valid))
        presence += [True] * n_more if valid is None else valid.tolist()
        base = min(base + n_forgotten, len(presence))
        tail.forget(base)
        tail.settle()
        tail = ColumnTail.load(tail.dump())
        values, valid = tail.column
        assert values.tolist() == list(range(base, len(presence)))
        assert all(presence[base:]) if valid is None else valid.tolist() == presence[base:]


def test_appending_copies_each_row_a_constant_number_of_times():
    tail, buffers = Tail(np.int64), set()
    tail.append(np.arange(10))
    for _ in range(10_000):
        tail.append(np.arange(1))
        buffers.add(tail.values.__array_interface__["data"][0])
    assert len(tail) == 10_010
    assert len(buffers) < 15
