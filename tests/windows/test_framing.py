"""Frames of sorted rows: for one key the same as those of one column, at the ends of 64 bits too."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sash.windows.bounds import Bounds
from sash.windows.frames import CLOSED, TIES, time_frames
from sash.windows.framing import RowFraming, Rows

FARTHEST = 2**63 - 1


def frames_of(order, bounds):
    begins = np.zeros(len(order), np.bool_)
    begins[:1] = True
    framed = RowFraming(bounds, order.dtype).take(Rows(0, order, begins, begins), is_last=True)
    return framed.frames


@pytest.mark.parametrize("closed", CLOSED)
@pytest.mark.parametrize("ties", TIES)
@given(
    gaps=st.lists(st.sampled_from([0, 0, 1, 2, 3, 10, 2**40]), max_size=30),
    first=st.sampled_from([-(2**63), -5, 0, 7]),
    span=st.sampled_from([0, 1, 2, 3, 5, 2**41, FARTHEST]),
    unit=st.sampled_from([1, 0.1]),
)
@settings(max_examples=40)
def test_one_key_has_the_frames_of_one_column(closed, ties, gaps, first, span, unit):
    order = np.array([first, *(first + total for total in np.cumsum(gaps).tolist())])
    order = order if unit == 1 else order * unit
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SASH_JIT", "0")
        found = frames_of(order, Bounds(span=span * unit, closed=closed, ties=ties))
        wanted = time_frames(order, span * unit, closed=closed, ties=ties)
    lengths = wanted.ends - wanted.starts
    assert (found.ends - found.starts).tolist() == lengths.tolist()
    assert found.starts[lengths > 0].tolist() == wanted.starts[lengths > 0].tolist()


@given(
    gaps=st.lists(st.sampled_from([0, 0, 1, 2, 3, 10, 2**40]), max_size=30),
    first=st.sampled_from([-(2**63), -5, 0, 7]),
    span=st.sampled_from([0, 1, 2, 3, 5, 2**41, FARTHEST]),
)
def test_machine_code_has_the_same_frames(gaps, first, span):
    order = np.array([first, *(first + total for total in np.cumsum(gaps).tolist())])
    for closed in ("both", "right"):
        found, wanted = frames_of(order, Bounds(span=span, closed=closed)), time_frames(order, span, closed=closed)
        assert (found.ends - found.starts).tolist() == (wanted.ends - wanted.starts).tolist()


@pytest.mark.parametrize("jit", ["0", "1"])
def test_rows_at_both_ends_of_64_bits_do_not_overflow(jit, monkeypatch):
    monkeypatch.setenv("SASH_JIT", jit)
    order = np.array([-(2**63), -(2**63) + 1, 0, FARTHEST - 1, FARTHEST])
    assert frames_of(order, Bounds(span=FARTHEST)).starts.tolist() == [0, 0, 1, 2, 2]
    assert frames_of(order, Bounds(span=FARTHEST, closed="right")).starts.tolist() == [0, 0, 2, 2, 3]
    assert frames_of(order, Bounds(gap=FARTHEST)).starts.tolist() == [0, 0, 0, 0, 0]
    assert frames_of(order, Bounds(gap=5)).starts.tolist() == [0, 0, 2, 3, 3]


def test_both_bounds_only_move_forward_from_key_to_key(monkeypatch):
    monkeypatch.setenv("SASH_JIT", "0")
    order = np.array([5, 6, 7, 1, 2, 3, 9, 0])
    begins = np.array([1, 0, 0, 1, 0, 0, 0, 1], np.bool_)
    for closed in CLOSED:
        framing = RowFraming(Bounds(span=2, closed=closed), np.int64)
        starts, ends = framing.take(Rows(0, order, begins, begins), is_last=True).frames
        assert (np.diff(starts) >= 0).all()
        assert (np.diff(ends) >= 0).all()
        assert (starts >= np.maximum.accumulate(np.where(begins, np.arange(8), 0))).all()
