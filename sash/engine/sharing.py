"""Several spans over the same rows: which times every window holds, as bounds that a tree can be asked with.

The definition of windows is that of windows/frames. Times there come in order, and a window is a range of
rows; here it is a range of times, the first and the last of which belong to it:

    closed   first                                          last
    both     the oldest time at most span before now        now
    right    the oldest time less than span before now      now
    left     as both                                        the youngest time before now
    none     as right                                       the youngest time before now

A window that can hold nothing has a first time after its last. No bound overflows: whatever would lie
before all times begins with the oldest there is.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, NamedTuple

import numpy as np

from sash.errors import DataError, DeclarationError
from sash.windows.frames import CLOSED, _instants

OLDEST = np.iinfo(np.int64).min


class Bounds(NamedTuple):
    """The first and last time of windows, a row of them for each span."""

    firsts: Any
    lasts: Any


class Instants(NamedTuple):
    """Times and spans as numbers of one unit."""

    times: Any
    spans: list[Any]


def is_several(span: Any) -> bool:
    """Whether there is more than one span."""
    return isinstance(span, (list, tuple)) or (isinstance(span, np.ndarray) and span.ndim == 1)


def instants_of(times: Any, span: Any) -> Instants:
    """Read times, and one span or a list of them."""
    if np.ma.is_masked(times):
        raise DataError(f"row {int(np.ma.getmaskarray(times).argmax())} has no time (it is masked)")
    spans = _alike(list(span) if is_several(span) else [span])
    read = [_instants(times, each) for each in spans]
    return Instants(read[0][0], [length for _, length in read])


def _alike(spans: list[Any]) -> list[Any]:
    """Spans of one type and unit, so that the times are read alike for each."""
    if not spans:
        raise DeclarationError("span=[] has no spans; give at least one")
    if all(isinstance(each, (timedelta, np.timedelta64)) for each in spans):
        return list(np.array([np.timedelta64(each) for each in spans]))
    return [float(each) for each in spans] if any(isinstance(each, float) for each in spans) else spans


def require_closed(closed: str) -> None:
    """Refuse bounds that nobody knows."""
    if closed not in CLOSED:
        raise DeclarationError(f"closed must be one of {', '.join(CLOSED)}, got {closed!r}")


def may_be_empty(spans: list[Any], closed: str) -> bool:
    """Whether a window may hold no row, not even the one it ends with."""
    return closed in ("left", "none") or (closed == "right" and min(spans) == 0)


def bounds_of(now: Any, spans: list[Any], closed: str) -> Bounds:
    """The bounds of windows that end at each of the times in `now`."""
    keeps_first, keeps_last = closed in ("both", "left"), closed in ("both", "right")
    is_integer = now.dtype.kind == "i"
    smallest, largest = (OLDEST, np.iinfo(np.int64).max) if is_integer else (-np.inf, np.inf)
    bounds = Bounds(np.empty((len(spans), len(now)), now.dtype), np.empty((len(spans), len(now)), now.dtype))
    for k, span in enumerate(spans):
        firsts = _integer_firsts if is_integer else _float_firsts
        bounds.firsts[k] = firsts(now, span, keeps_first)
        bounds.lasts[k] = now if keeps_last else now - 1 if is_integer else np.nextafter(now, -np.inf)
        holds_nothing = np.logical_or(span == 0 and not keeps_first, (now == smallest) & (not keeps_last))
        bounds.firsts[k][holds_nothing] = largest
        bounds.lasts[k][holds_nothing] = smallest
    return bounds


def _integer_firsts(now: Any, span: Any, keeps_first: bool) -> Any:
    reach = span if keeps_first or span == 0 else span - 1
    return np.where(now < OLDEST + reach, OLDEST, now - reach)


def _float_firsts(now: Any, span: Any, keeps_first: bool) -> Any:
    """The oldest float that is within the span, as differences are rounded: now - span, or near it."""
    with np.errstate(invalid="ignore", over="ignore"):
        firsts = now - span
        unsettled = np.arange(len(now))
        for step in (0.0, np.inf, -np.inf):
            guess = firsts[unsettled] if step == 0.0 else np.nextafter(now[unsettled] - span, step)
            before = np.nextafter(guess, -np.inf)
            ends = now[unsettled]
            fits = ~_is_before(guess, ends, span, keeps_first) & _is_before(before, ends, span, keeps_first)
            firsts[unsettled[fits]] = guess[fits]
            unsettled = unsettled[~fits]
        firsts[unsettled] = _bisected(now[unsettled], span, keeps_first)
    return firsts


def _is_before(time: Any, now: Any, span: Any, keeps_first: bool) -> Any:
    """The same as in windows/frames, for columns."""
    is_crossing = (time < 0) & (now >= 0)
    room, age = now - span, now - time
    is_outside = np.where(is_crossing, time < room, age > span)
    return is_outside if keeps_first else is_outside | np.where(is_crossing, time == room, age == span)


def _bisected(now: Any, span: Any, keeps_first: bool) -> Any:
    """The same where rounding is coarse beside the times, found by halving the range of floats."""
    outside, inside = _ranks(np.full(len(now), -np.inf)), _ranks(now)
    is_all = ~_is_before(_floats(outside), now, span, keeps_first)
    while (inside - 1 > outside).any():
        middle = (outside >> 1) + (inside >> 1) + (outside & inside & 1)
        is_before = _is_before(_floats(middle), now, span, keeps_first)
        outside, inside = np.where(is_before, middle, outside), np.where(is_before, inside, middle)
    return np.where(is_all, -np.inf, _floats(inside))


def _ranks(floats: Any) -> Any:
    """Integers in the order of the floats, one after the other."""
    bits = floats.view(np.int64)
    return np.where(bits < 0, OLDEST - bits, bits)


def _floats(ranks: Any) -> Any:
    return np.where(ranks < 0, OLDEST - ranks, ranks).view(np.float64)
