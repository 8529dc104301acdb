"""Frames: which rows a window holds, against the definition, for every bound and every kind of tie."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sash.errors import DataError, DeclarationError
from sash.windows.frames import CLOSED, TIES, time_frames


def rows_in_window(times, i, span, closed, ties):
    """The definition, row by row."""
    now, members = times[i], []
    for j, time in enumerate(times):
        age = int(now) - int(time)
        after_start = age <= span if closed in ("both", "left") else age < span
        if ties == "upto":
            before_end = j <= i if closed in ("both", "right") else age > 0
        else:
            before_end = age >= 0 if closed in ("both", "right") else age > 0
        if after_start and before_end:
            members.append(j)
    return members


@pytest.mark.parametrize("closed", CLOSED)
@pytest.mark.parametrize("ties", TIES)
@given(
    gaps=st.lists(st.sampled_from([0, 0, 1, 2, 3, 10, 2**40]), max_size=12),
    first=st.sampled_from([-(2**63), -5, 0, 7]),
    span=st.sampled_from([0, 1, 2, 3, 5, 2**41, 2**63 - 1]),
)
def test_a_frame_holds_exactly_the_rows_of_the_definition(closed, ties, gaps, first, span):
    times = np.array([first, *(first + total for total in np.cumsum(gaps).tolist())], np.int64)
    frames = time_frames(times, span, closed=closed, ties=ties)
    for i in range(len(times)):
        wanted = rows_in_window(times, i, span, closed, ties)
        found = list(range(frames.starts[i], frames.ends[i]))
        assert found == wanted, (times.tolist(), i)


def test_times_at_both_ends_of_int64_do_not_overflow():
    times = np.array([-(2**63), 0, 2**63 - 1], np.int64)
    frames = time_frames(times, 2**63 - 1)
    assert frames.starts.tolist() == [0, 1, 1]
    assert frames.ends.tolist() == [1, 2, 3]


def test_datetimes_take_a_timedelta():
    times = np.array(["2013-01-01T00:00", "2013-01-01T00:30", "2013-01-01T01:30"], "M8[m]")
    frames = time_frames(times, np.timedelta64(1, "h"))
    assert frames.starts.tolist() == [0, 0, 1]
    finer = time_frames(times, timedelta(seconds=1799))
    assert finer.starts.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("times", "span", "error", "message"),
    [
        ([1, 3, 2], 5, DataError, "row 2"),
        ([1.0, float("nan")], 5, DataError, "row 1 has no time"),
        (np.array(["2013-01-01", "NaT"], "M8[D]"), np.timedelta64(1, "D"), DataError, "NaT"),
        (["a", "b"], 5, DataError, "numbers or datetimes"),
        ([1, 2], -1, DeclarationError, "must not be negative"),
        (np.array(["2013-01-01"], "M8[D]"), 5, DeclarationError, "timedelta"),
    ],
)
def test_bad_times_are_named(times, span, error, message):
    with pytest.raises(error, match=message):
        time_frames(times, span)


def test_unknown_bounds_are_refused():
    with pytest.raises(DeclarationError, match="closed must be one of"):
        time_frames([1], 1, closed="inner")
    with pytest.raises(DeclarationError, match="ties must be one of"):
        time_frames([1], 1, ties="some")
