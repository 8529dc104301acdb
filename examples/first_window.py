"""First windows, on a month of bicycle rides made up from a seed: `make demo` runs this.

Four things are shown: a window fed one ride at a time; windows of a thousand rides over the whole
month at once; windows of one hour; and an aggregate of one's own, written in Python and compiled.
Each answer is compared with one recalculated by NumPy or by a plain loop, and both are timed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import groupby
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

import sash

N_RIDES = 1_000_000
SECOND = 1_000_000  # times are microseconds
HOUR, DAY = 3_600 * SECOND, 86_400 * SECOND
ROWS = 1_000


def main() -> None:
    """Run the four parts."""
    started = time.perf_counter()
    times, minutes = a_month_of_rides()
    print(f"{N_RIDES:,} rides in 30 days, from a fixed seed; {minutes.mean():.1f} minutes on average.")
    one_ride_at_a_time(minutes[:10])
    the_last_thousand_rides(minutes)
    the_last_hour(times, minutes)
    an_aggregate_of_ones_own(minutes)
    print(f"\nDone in {time.perf_counter() - started:.1f} s.")


def a_month_of_rides() -> tuple[np.ndarray, np.ndarray]:
    """When each ride ended, in microseconds, and how long it took, in minutes; busy at 8 and at 17 o'clock."""
    random = np.random.default_rng(2018)
    rush = random.choice([8.0, 13.0, 17.5], N_RIDES, p=[0.3, 0.35, 0.35])
    hour = (rush + random.normal(0.0, 2.0, N_RIDES)) % 24
    times = random.integers(0, 30, N_RIDES) * DAY + (hour * HOUR).astype(np.int64)
    return np.sort(times), random.lognormal(2.2, 0.7, N_RIDES)


def one_ride_at_a_time(minutes: np.ndarray) -> None:
    """Push rides through a window of four: what a stream does."""
    heading("1. One ride at a time: the last 4 rides, by DABA Lite")
    window = sash.aggregator("daba_lite", {"rides": sash.count(), "mean": sash.mean(), "longest": sash.max()})
    print(f"{'minutes':>10}{'rides':>10}{'mean':>10}{'longest':>10}")
    for value in minutes.tolist():
        if len(window) == 4:
            window.evict()
        window.insert(value)
        answer = window.query()
        print(f"{value:10.1f}{answer['rides']:10}{answer['mean']:10.2f}{answer['longest']:10.1f}")
    print(f"The window as bytes, to be restored elsewhere: {len(window.snapshot())} bytes.")


def the_last_thousand_rides(minutes: np.ndarray) -> None:
    """Slide a window of rows over the whole column."""
    heading(f"2. The last {ROWS:,} rides, for every ride of the month: sash.slide(minutes, sash.max(), rows={ROWS})")
    answers, first, again = timed(lambda: sash.slide(minutes, sash.max(), rows=ROWS))
    truth, slow, _ = timed(lambda: sliding_window_view(minutes, ROWS).max(axis=1), repeat=False)
    print("first: machine code is made, or found on disk; again: the best of three more runs\n")
    heading_of_times()
    row_of_times("max", first, again, slow, np.array_equal(answers[ROWS - 1 :], truth))


def the_last_hour(times: np.ndarray, minutes: np.ndarray) -> None:
    """Slide a window of time, which holds more rides at some hours than at others."""
    heading("3. The hour before each ride: sash.slide(minutes, ..., times=times, span=HOUR)")
    both = {"rides": sash.count(), "longest": sash.max()}
    answers, first, again = timed(lambda: sash.slide(minutes, both, times=times, span=HOUR))
    rides, longest = answers["rides"], answers["longest"]
    print(f"{'day':>10}{'hour':>10}{'rides':>10}{'longest':>10}")
    for row in np.searchsorted(times, [DAY + hour * HOUR for hour in (4, 8, 12, 17, 22)]):
        day, hour = divmod(int(times[row]), DAY)
        print(f"{day:10}{hour / HOUR:10.2f}{rides[row]:10}{longest[row]:10.1f}")

    sample = slice(0, N_RIDES, 50)
    starts, ends = np.searchsorted(times, times - HOUR), np.searchsorted(times, times, side="right")
    bounds = list(zip(starts[sample], ends[sample], strict=True))
    truth, slow, _ = timed(lambda: [minutes[start:end].max() for start, end in bounds], repeat=False)
    print()
    heading_of_times()
    row_of_times("both", first, again, 50 * slow, np.array_equal(longest[sample], truth))
    print("(NumPy recalculated the maximum of every fiftieth ride; its time is scaled up.)")


@sash.aggregate(state={"n": "i8", "first": "i8", "last": "i8", "best": "i8"})
class LongestRunOfShortRides:
    """How many rides in a row took less than ten minutes; no library has it, and it has no inverse."""

    identity = (0, 0, 0, 0)

    def lift(x: float) -> tuple[int, int, int, int]:
        """One ride: is it a run of one, or of none?"""
        short = 1 if x < 10.0 else 0
        return (1, short, short, short)

    def combine(older: Any, newer: Any) -> tuple[int, int, int, int]:
        """A run may end in one part, begin in the other, or lie across the seam."""
        first = older[1] if older[1] < older[0] else older[0] + newer[1]
        last = newer[2] if newer[2] < newer[0] else newer[0] + older[2]
        return (older[0] + newer[0], first, last, max(older[3], newer[3], older[2] + newer[1]))

    def lower(partial: Any) -> int:
        """Give the length of the longest."""
        return partial[3]


def an_aggregate_of_ones_own(minutes: np.ndarray) -> None:
    """Check, compile and slide an aggregate written in Python."""
    heading("4. An aggregate of your own: the longest run of rides under ten minutes")
    report = sash.check_laws(LongestRunOfShortRides, samples=minutes[:50].tolist())
    print(f"sash.check_laws finds it {'associative, with a right identity' if report.ok else report}.\n")
    own = sash.agg(LongestRunOfShortRides)
    answers, first, again = timed(lambda: sash.slide(minutes, own, rows=ROWS))
    rows = range(0, N_RIDES, N_RIDES // 200)
    truth, slow, _ = timed(
        lambda: [max(runs(minutes[max(0, row - ROWS + 1) : row + 1].tolist()), default=0) for row in rows], repeat=False
    )
    heading_of_times("a loop")
    same = np.array_equal(answers[:: rows.step], truth)
    row_of_times("runs", first, again, slow * N_RIDES / len(rows), same)
    print(f"(The loop recalculated {len(rows)} rides; its time is scaled up.)")


def runs(minutes: list[float]) -> Iterator[int]:
    """Give the lengths of all runs of short rides."""
    return (len(list(run)) for short, run in groupby(minutes, lambda x: x < 10.0) if short)


def timed(run: Callable[[], Any], *, repeat: bool = True) -> tuple[Any, float, float]:
    """Give the result, the seconds of the first run, and those of the best of three more."""
    seconds = []
    for _ in range(4 if repeat else 1):
        started = time.perf_counter()
        result = run()
        seconds.append(time.perf_counter() - started)
    return result, seconds[0], min(seconds[1:], default=seconds[0])


def heading(text: str) -> None:
    """Print the title of a part."""
    print(f"\n{text}\n{'-' * len(text)}")


def heading_of_times(rival: str = "NumPy") -> None:
    """Print what the columns of `row_of_times` are."""
    print(f"{'':10}{'first, ms':>12}{'again, ms':>12}{rival + ', ms':>14}{'ratio':>8}   same answers")


def row_of_times(name: str, first: float, again: float, slow: float, same: bool) -> None:
    """Print one row: the first run compiles, unless machine code was found on disk."""
    times = f"{1e3 * first:12.1f}{1e3 * again:12.1f}{1e3 * slow:14.0f}{slow / again:8.0f}"
    print(f"{name:10}{times}   {'yes' if same else 'NO'}")


if __name__ == "__main__":
    main()
