"""Frames: which rows the window of each row holds, apart from what is computed over them.

A frame is a half-open range of rows, starts[i] <= j < ends[i]; both bounds only ever move forward.

    closed   rows of the window ending at t       ties    of rows with the same time as this one
    both     t - span <= time <= t                peers   all belong to the window (Spark's RANGE)
    right    t - span <  time <= t                upto    only those not after this row (pandas)
    left     t - span <= time <  t
    none     t - span <  time <  t
"""

from __future__ import annotations

from datetime import timedelta
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from sash.algebra.monoid import Function
from sash.compiling.jit import entry, interpreted, is_enabled
from sash.errors import DataError, DeclarationError

CLOSED = ("both", "right", "left", "none")
TIES = ("peers", "upto")


class Frames(NamedTuple):
    """The window of every row."""

    starts: Any
    ends: Any


def time_frames(times: Any, span: Any, *, closed: str = "both", ties: str = "peers") -> Frames:
    """The rows within `span` of each row, by times in ascending order."""
    if closed not in CLOSED:
        raise DeclarationError(f"closed must be one of {', '.join(CLOSED)}, got {closed!r}")
    if ties not in TIES:
        raise DeclarationError(f"ties must be one of {', '.join(TIES)}, got {ties!r}")
    instants, length = _instants(times, span)
    frames = Frames(np.empty(len(instants), np.int64), np.empty(len(instants), np.int64))
    kernel = _frames_kernel(closed in ("both", "left"), closed in ("both", "right"), ties == "peers", is_enabled())
    unordered = kernel(instants, length, frames)
    if unordered >= 0:
        raise DataError(
            f"times must ascend, but row {unordered} has {times[unordered]!r} "
            f"after {times[unordered - 1]!r}; sort first"
        )
    return frames


def _instants(times: Any, span: Any) -> tuple[Any, Any]:
    """Times and span as numbers of one unit."""
    instants = np.asarray(times)
    if instants.dtype.kind in "mM":
        instants, span = _ticks(instants, span)
    if instants.dtype.kind not in "iuf":
        raise DataError(f"times must be numbers or datetimes, got {instants.dtype}")
    if instants.dtype.kind == "f" and np.isnan(instants).any():
        raise DataError(f"row {int(np.isnan(instants).argmax())} has no time (NaN)")
    if not span >= 0:
        raise DeclarationError(f"span must not be negative, got {span!r}")
    kind = np.float64 if instants.dtype.kind == "f" or isinstance(span, float) else np.int64
    return np.ascontiguousarray(instants, kind), kind(span)


def _ticks(times: Any, span: Any) -> tuple[Any, int]:
    """Datetimes and a timedelta as integers of the finer of their units."""
    if not isinstance(span, (np.timedelta64, timedelta)):
        raise DeclarationError(f"times are datetimes, so span must be a timedelta, got {span!r}")
    if np.isnat(times).any():
        raise DataError(f"row {int(np.isnat(times).argmax())} has no time (NaT)")
    unit, count = np.datetime_data(times.dtype)
    length = np.timedelta64(span)
    finer, count = np.datetime_data(np.promote_types(f"m8[{count}{unit}]", length.dtype))
    ticks = f"8[{count}{finer}]"
    return times.astype(times.dtype.kind + ticks).view(np.int64), int(length.astype("m" + ticks).astype(np.int64))


@lru_cache(maxsize=16)
def _frames_kernel(keep_first: bool, keep_last: bool, peers: bool, is_compiled: bool) -> Function:
    """Make frames(times, span, frames) -> the first row out of order, or -1."""

    def frames(times: Any, span: Any, out: Frames) -> int:
        n, start, end = len(times), 0, 0
        for i in range(n):
            now = times[i]
            if i > 0 and times[i - 1] > now:
                return i
            while start < n and times[start] <= now and _is_before(times[start], now, span, keep_first):
                start += 1
            if peers or not keep_last:
                while end < n and (times[end] < now or (keep_last and times[end] == now)):
                    end += 1
            else:
                end = i + 1
            out.starts[i] = min(start, end)
            out.ends[i] = end
        return -1

    return (entry if is_compiled else interpreted)(frames)


def _is_before(time: Any, now: Any, span: Any, keep_first: bool) -> bool:
    """Whether a time is older than a window of `span` ending now. No difference of int64 overflows here."""
    if time < 0 and now >= 0:  # opposite signs: now - time may exceed int64
        room = now - span
        return bool(time < room or (time == room and not keep_first))
    age = now - time
    return bool(age > span or (age == span and not keep_first))
