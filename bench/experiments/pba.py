"""Parallel Boundary Aggregator: figures 4 to 7, tables 2 and 3. Figure 8 runs on Spark.

Whole columns by `sash.slide` in figure 4, where windows slide by one row: there `pba` is the scan of SBA for windows
below 4,096 rows, as in the library, and two threads beyond. Elsewhere SBA and PBA go slice by slice through a loop of
their own, and PBA's second thread makes the suffixes of a chunk while the first goes on with the next, whatever the
window. Times are those of the wall, as two threads are compared with one. Data are seeded: uniform numbers, and, for
windows of time, a reading every 10 milliseconds, as in the paper's recordings.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

import sash
from bench.alike import picking
from bench.cycles import clock, cost_ticks, ticks_per_ns
from bench.experiments.contract import Axes, Claim, Experiment, Row, Size, point
from bench.experiments.fitting import Curves, number
from bench.fifo_rounds import SEED, FifoRounds, copied
from bench.measuring import Spent, in_turns
from sash.aggregators import find
from sash.aggregators.contract import State
from sash.aggregators.sba import CHUNK, SLIDE, chunk_by_count
from sash.algebra.monoid import Function
from sash.compiling.cells import Cells
from sash.compiling.compiled_cells import compiled_cells
from sash.compiling.interpreted_cells import interpreted_cells
from sash.compiling.jit import compiled, entry, interpreted
from sash.engine.binding import bind
from sash.engine.building import Built, new_state
from sash.engine.coarse import Grid, slide_coarsely
from sash.engine.tasks import tasks_of

PAPER = "Zhang, Akbarinia, Toumani, Efficient incremental computation of aggregations over sliding windows, KDD (2021)"
PERIOD_MS = 10
N_ALIKE = 8  # windows that share two readings of the clock
MOMENTS = sash.moment_sketch(order=10, quantiles=None)
TABLE_2 = {  # ns: average and deviation at 2^13, at 2^14
    "two_stacks": "69 ± 754, 78 ± 1,078", "slick_deque": "82 ± 22, 83 ± 22", "sba": "50 ± 234, 50 ± 331",
    "pba": "54 ± 10, 46 ± 5",
}  # fmt: skip
TABLE_3 = {"two_stacks": "338 ± 5,349, 381 ± 10,000", "sba": "195 ± 1,566, 202 ± 2,472", "pba": "164 ± 73, 172 ± 65"}

PASSES = "likely, because our SBA goes over whole columns in passes of vector instructions, and PBA answers row by row"
HANDED = (
    "a chunk is handed to another thread from Python, which takes some microseconds in one window: about as long as "
    "the flips and suffixes that it is to hide, as these are compiled"
)
HAND_OVER = "handing a chunk to another thread from Python takes longer than making its suffixes at once, as SBA does"


@contextmanager
def threads(n: int) -> Iterator[None]:
    """Let whole columns use so many threads."""
    before = os.environ.get("SASH_THREADS")
    os.environ["SASH_THREADS"] = str(n)
    try:
        yield
    finally:
        os.environ.pop("SASH_THREADS")
        if before is not None:
            os.environ["SASH_THREADS"] = before


class Boundary(NamedTuple):
    """SBA in loops: over the slices of a chunk, and over its suffixes."""

    built: Built
    chunk: Function  # (states, columns, cuts, begin, end, n, results, spent): slices begin to end - 1
    suffixes: Function  # (state, first)

    @property
    def cells(self) -> Cells:
        """The cells of its pool."""
        return self.built.cells


@lru_cache(maxsize=16)
def boundary(aggregate: Any) -> Boundary:
    """Make the loops for an aggregate."""
    bound = bind(aggregate, "f8", compiled=True)
    jit, outer = (compiled, entry) if bound.is_compiled else (interpreted, interpreted)
    now, (store, pick) = clock(bound.is_compiled), picking(bound.is_compiled)
    cells = (compiled_cells if bound.is_compiled else interpreted_cells)(bound.monoids[0])
    algorithm = find("sba")
    operations: Any = algorithm.build(cells, jit)
    add, close, answer, lower = operations.add, operations.close, operations.answer, cells.lower

    def over_chunk(
        states: Any, columns: Any, cuts: Any, begin: int, end: int, n: int, results: Any, spent: Any
    ) -> None:
        place, is_clocked, before = store(states), len(spent) > 0, 0
        for j in range(begin, end):
            for k in range(len(states)):
                s = pick(place, k, states)
                for i in range(cuts[j], cuts[j + 1] - 1):
                    add(s, columns, i)
            if is_clocked:
                before = now()  # a window ends with the last row of its slice
            for k in range(len(states)):
                s = pick(place, k, states)
                add(s, columns, cuts[j + 1] - 1)
                close(s)
                lower(results, j, s.pool, answer(s, n, False))
            if is_clocked:
                spent[j] = now() - before

    return Boundary(Built(algorithm, cells, operations, bound.is_compiled), outer(over_chunk), outer(operations.finish))


class Slices(NamedTuple):
    """A column cut into slices, of which windows hold n each."""

    column: Any
    cuts: Any  # slice j is rows cuts[j] to cuts[j + 1] - 1
    n: int

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.cuts) - 1


def by_boundary(aggregate: Any, slices: Slices, spent: Any = None, *, in_parallel: bool, n_alike: int = 1) -> Any:
    """Answers of windows over slices, by SBA, or by PBA with a second thread; `spent` gets the ticks of each window.

    Only the last windows of a chunk begin in the chunk before it, beyond its first slice: they wait for its suffixes.
    Handing a chunk over and waiting for one are part of the window at which they happen. As a window alone takes less
    than a step of the clock, several that are alike are clocked together, each with a chunk of its own to hand over;
    ticks are those of all.
    """
    loops, length = boundary(aggregate), min(chunk_by_count(slices.n, 1), slices.n)
    states = _new_states(loops, slices.n, length, n_alike)
    columns = (slices.column if loops.built.is_compiled else slices.column.tolist(),)
    results, under_way = loops.cells.results(slices.count), [_SameThread()]
    ticks = np.zeros(0 if spent is None else slices.count, np.int64)
    with ThreadPoolExecutor(1) if in_parallel else _SameThread() as thread:
        for begin in range(0, slices.count, length):
            end = min(begin + length, slices.count)
            free = max(begin, min(end, begin + length - 3))
            loops.chunk(states, columns, slices.cuts, begin, free, slices.n, results, ticks)
            before = time.perf_counter_ns()
            for each in under_way:
                each.result()
            waited = time.perf_counter_ns() - before
            loops.chunk(states, columns, slices.cuts, free, end, slices.n, results, ticks)
            if spent is not None and free < end:
                ticks[free] += int(waited * ticks_per_ns())
            if end - begin == length:
                before = time.perf_counter_ns()
                under_way = [thread.submit(loops.suffixes, state, begin) for state in states]
                if spent is not None:
                    ticks[end - 1] += int((time.perf_counter_ns() - before) * ticks_per_ns())
        for each in under_way:
            each.result()
    if spent is not None:
        spent[:] = ticks
    return results[0]


def _new_states(loops: Boundary, n: int, length: int, n_alike: int) -> tuple[State, ...]:
    state = new_state(loops.built, 1 << (n + 2 * length + 1).bit_length())
    state.at[CHUNK], state.at[SLIDE] = length, 0
    return tuple(copied(state, k) for k in range(n_alike))


class _SameThread(nullcontext):
    """What another thread would be asked to do, done at once."""

    def __enter__(self) -> _SameThread:
        return self

    def submit(self, work: Callable[..., None], *arguments: Any) -> _SameThread:
        """Do it."""
        work(*arguments)
        return self

    def result(self) -> None:
        """Wait for nothing."""


def uniform(n: int) -> Any:
    """Seeded numbers."""
    return np.random.default_rng(SEED).random(n)


def _ranges(size: Size) -> Iterator[Row]:
    values = uniform(size.of(4_000_000, 500_000, 300))
    n = len(values)
    for rows in size.powers(20, 16, 5, lowest=3):
        ways = {
            name: partial(_sliding, values, rows, name)
            for name in ("two_stacks", "two_stacks_lite", "slick_deque", "sba", "pba")
        }
        found = in_turns(ways, n, n_turns=size.of(7, 3, 1), clock=time.perf_counter_ns)
        if rows <= 2**7:
            few = values[: size.of(2**16, 2**14, 64)]
            found |= in_turns({"recalc": partial(_sliding, few, rows, "recalc")}, len(few), n_turns=3)
        for name, spent in found.items():
            yield point("max", name, rows, _millions(spent), "million values a second")


def _sliding(values: Any, rows: int, name: str) -> Callable[[], None]:
    def take() -> None:
        with threads(1):
            sash.slide(values, sash.max(), rows=rows, algorithm=name)

    return take


def _millions(spent: Spent) -> Spent:
    return Spent(1e3 / spent.best, spent.spread)


def _range_claims(rows: Sequence[Row]) -> list[Claim]:
    curves = Curves(rows)
    stacks, deque = curves.ratio("max", "pba", "two_stacks", 2**15), curves.ratio("max", "pba", "slick_deque", 2**15)
    small = curves.ratio("max", "sba", "two_stacks"), curves.ratio("max", "sba", "slick_deque")
    threads_gain = curves.ratio("max", "pba", "sba", 2**15)
    return [
        Claim(
            "from ranges of 2^15 on PBA has 2.5 times the throughput of TwoStacks (figure 4)",
            str(stacks),
            stacks.low >= 2.5,
            PASSES,
        ),
        Claim("and 4 times that of SlickDeque", str(deque), deque.low >= 4, PASSES),
        Claim("SBA is ahead of both at all ranges", f"{small[0]}; {small[1]}", min(small[0].low, small[1].low) > 1),
        Claim("PBA is ahead of SBA at large ranges", str(threads_gain), threads_gain.low > 1, PASSES),
    ]


def by_queue(aggregate: Any, slices: Slices, name: str) -> Any:
    """The same answers by an in-order algorithm over slices."""
    ends = np.arange(1, slices.count + 1)
    grid = Grid(slices.cuts[np.maximum(ends - slices.n, 0)], slices.cuts[1:], ends)
    return slide_coarsely(tasks_of(slices.column, aggregate), len(slices.column), grid, name)[0]


def _over_slices(size: Size, slices: Slices) -> dict[str, Spent]:
    """Nanoseconds a row of each algorithm over the same slices, once all have given the same answers."""
    aggregate = sash.max()
    works: dict[str, Callable[[], Any]] = {}
    for name in ("two_stacks", "slick_deque"):
        works[name] = partial(by_queue, aggregate, slices, name)
    for name in ("sba", "pba"):
        works[name] = partial(by_boundary, aggregate, slices, in_parallel=name == "pba")
    first, *others = (work() for work in works.values())
    if not all(np.array_equal(first, other) for other in others):
        raise AssertionError("two algorithms gave different answers over the same slices")
    ways = {name: lambda work=work: work for name, work in works.items()}
    return in_turns(ways, len(slices.column), n_turns=size.of(5, 2, 1), clock=time.perf_counter_ns)


def _slides(size: Size) -> Iterator[Row]:
    values, rows = uniform(size.of(3_000_000, 300_000, 200)), 2 ** size.of(17, 14, 5)
    for slide in size.of(range(1, 11), (1, 4, 10), (1, 2)):
        cuts = np.arange(0, len(values) // slide * slide + 1, slide)
        slices = Slices(values[: int(cuts[-1])], cuts, rows // slide)
        for name, spent in _over_slices(size, slices).items():
            yield point("max", name, slide, _millions(spent), "million values a second")


def _closer_claims(rows: Sequence[Row]) -> list[Claim]:
    curves, claims = Curves(rows), []
    for panel in curves.panels:
        first, last = (
            curves.ratio(panel, "sba", "two_stacks", x, x)
            for x in (curves.xs(panel, "sba")[0], curves.xs(panel, "sba")[-1])
        )
        ahead = [curves.ratio(panel, "sba", each) for each in ("two_stacks", "slick_deque")]
        claims.append(
            Claim(
                f"{panel}: SBA is ahead of TwoStacks and SlickDeque at every point (section 5.1.1)",
                f"{ahead[0]}; {ahead[1]}",
                min(each.low for each in ahead) > 1,
            )
        )
        best = curves.ratio(panel, "pba", "sba")
        claims.append(Claim(f"{panel}: PBA has the best throughput", f"PBA by SBA {best}", best.low > 1, HAND_OVER))
        if "slide" in panel or panel == "max":
            claims.append(
                Claim(
                    f"{panel}: algorithms come closer as slices grow",
                    f"from {first} to {last}",
                    last.middle < first.middle,
                )
            )
    return claims


def _times(size: Size) -> Iterator[Row]:
    values = uniform(size.of(2_000_000, 200_000, 400))
    times = np.arange(len(values)) * PERIOD_MS
    minutes = size.of((6, 12, 24, 36, 48, 60), (1, 6), (0.01,))
    cases = [("by range, in minutes", m, int(m * 60_000), PERIOD_MS) for m in minutes]
    hour = size.of(3_600_000, 360_000, 600)
    cases += [("by slide, in ms", s, hour // s * s, s) for s in size.of((10, 20, 40, 60, 80, 100), (10, 100), (10, 20))]
    for panel, x, span, slide in cases:
        cuts = np.searchsorted(times, np.arange(0, int(times[-1]) // slide * slide + 1, slide))
        slices = Slices(values[: int(cuts[-1])], cuts, span // slide)
        for name, spent in _over_slices(size, slices).items():
            yield point(panel, name, x, _millions(spent), "million values a second")


def _latencies(size: Size, aggregate: Any, n: int, per_slice: int) -> dict[str, Any]:
    """Nanoseconds of each window of n slices of so many rows: the median of several repeats of the same windows.

    As many windows share two readings of the clock for all algorithms.
    """
    count = size.of(200_000 if per_slice == 1 else 30_000, 20_000 if per_slice == 1 else 3_000, 64) + n
    repeats, values = size.of(5, 3, 1), uniform(count * per_slice) + 0.5
    slices = Slices(values, np.arange(0, count * per_slice + 1, per_slice), n)
    found = {}
    for name in ("two_stacks", "slick_deque"):
        if name == "slick_deque" and aggregate is MOMENTS:
            continue  # neither a selection nor a group: refused
        window = FifoRounds(name, aggregate, n)
        window.rounds(2 * n)()
        found[name] = window.clocked(count - n, repeats, N_ALIKE) / ticks_per_ns()
    for name in ("sba", "pba"):
        spent = np.zeros((repeats + 1, count), np.int64)  # the first one compiles
        for row in spent:
            by_boundary(aggregate, slices, row, in_parallel=name == "pba", n_alike=N_ALIKE)
        found[name] = np.median(spent[1:, n:], axis=0) / N_ALIKE / ticks_per_ns()
    return found


def _clock_ns() -> float:
    """What is the clock's of each window's time."""
    return cost_ticks() / ticks_per_ns() / N_ALIKE


CASES = {
    "max, 2^13": (0, 13),
    "max, 2^14": (0, 14),
    "moment sketch, 1 hour": (1, 3600),
    "moment sketch, 2 hours": (1, 7200),
}


def _cases(size: Size) -> Iterator[tuple[str, dict[str, Any]]]:
    for name, (is_sketch, length) in list(CASES.items())[:: size.of(1, 1, 2)]:
        if is_sketch:
            yield name, _latencies(size, MOMENTS, size.of(length, length // 10, 8), size.of(100, 100, 2))
        else:
            yield name, _latencies(size, sash.max(), 1 << size.of(length, length - 2, 3), 1)


def _latency(size: Size) -> Iterator[Row]:
    yield point("clock", f"two readings, by {N_ALIKE} windows that share them", 0, _clock_ns(), "ns")
    for panel, found in _cases(size):
        for name, spent in found.items():
            blocks = np.array_split(spent, min(300, len(spent) // 4))
            places = np.cumsum([0, *map(len, blocks[:-1])])
            for place, block in zip(places.tolist(), blocks, strict=True):
                yield point(panel, name, place, float(block.max()), "ns")


def _latency_claims(rows: Sequence[Row]) -> list[Claim]:
    curves, claims = Curves(rows), []
    for panel in (each for each in curves.panels if each in CASES):
        worst = {each: max(curves.y(panel, each, x) for x in curves.xs(panel, each)) for each in curves.series(panel)}
        shown = "worst: " + ", ".join(f"{each} {number(worst[each])}" for each in worst) + " ns"
        claims.append(
            Claim(
                f"{panel}: no spikes for PBA, periodic ones for TwoStacks (figure 7); at most a third of them",
                shown,
                3 * worst["pba"] <= worst["two_stacks"],
                HANDED,
            )
        )
    return claims


def _summaries(size: Size) -> Iterator[Row]:
    for case, found in _cases(size):
        for name, spent in found.items():
            low, lower, median, upper, high, most = np.percentile(spent, (0, 25, 50, 75, 99.9, 100)).tolist()
            said = (TABLE_3 if "sketch" in case else TABLE_2).get(name, "")
            yield {
                "windows": case,
                "algorithm": name,
                "min": round(low, 1),
                "max": round(most),
                "avg": round(float(spent.mean()), 1),
                "std": round(float(spent.std()), 1),
                "lq, med, hq": f"{lower:.1f}, {median:.1f}, {upper:.1f}",
                "99.9 %": round(high),
                "of which the clock takes": round(_clock_ns(), 1),
                "the paper, avg ± std of both": said,
            }
        if "slick_deque" not in found:
            yield {
                "windows": case,
                "algorithm": "slick_deque",
                "min": "refused: a moment sketch neither selects nor inverts",
            }


def _why_average(case: str, stacks: float, sba: float) -> str:
    said = (338, 195) if "sketch" in case else (69, 50)
    return (
        f"what it is compared with is faster here: TwoStacks takes {stacks:.0f} ns of the paper's {said[0]}, SBA "
        f"{sba:.0f} of {said[1]}. SBA calls combine 3.8 times a window (a row into its slice, the slice into a prefix, "
        "suffixes, the answer) and TwoStacks, whose elements are rows, 3.0 times"
    )


def _summary_claims(rows: Sequence[Row]) -> list[Claim]:
    claims, found = [], {(row["windows"], row["algorithm"]): row for row in rows if "avg" in row}
    for case in dict.fromkeys(row["windows"] for row in rows):
        stacks, sba, pba = (found[case, each] for each in ("two_stacks", "sba", "pba"))
        claims.append(
            Claim(
                f"{case}: PBA and SBA have a lower average than TwoStacks (tables 2 and 3)",
                f"{pba['avg']}, {sba['avg']}, {stacks['avg']} ns",
                max(pba["avg"], sba["avg"]) < stacks["avg"],
                _why_average(case, stacks["avg"], sba["avg"]),
            )
        )
        claims.append(
            Claim(
                f"{case}: PBA has the least deviation, far below SBA and TwoStacks: a third at most",
                f"{pba['std']}, {sba['std']}, {stacks['std']} ns",
                3 * pba["std"] <= min(sba["std"], stacks["std"]),
                HANDED,
            )
        )
    return claims


EXPERIMENTS = (
    Experiment(
        "pba-fig4-range",
        "Throughput over ranges, sliding by one row",
        _ranges,
        PAPER,
        "figure 4",
        "PBA rises until 2^15 and stays on top, 2.5 times TwoStacks and 4 times SlickDeque; SBA above both everywhere. "
        "Here pba below 4,096 rows is the scan of SBA, in one thread.",
        _range_claims,
        Axes("range"),
    ),
    Experiment(
        "pba-fig5-slide",
        "Throughput over slides, range 2^17",
        _slides,
        PAPER,
        "figure 5",
        "All curves rise with the slide and come closer; PBA on top.",
        _closer_claims,
        Axes("slide", log_x=False),
    ),
    Experiment(
        "pba-fig6-time",
        "Windows of time: over ranges and over slides",
        _times,
        PAPER,
        "figure 6",
        "PBA on top, SBA above TwoStacks and SlickDeque, for 6 to 60 minutes and for slides of 10 to 100 ms.",
        _closer_claims,
        Axes("minutes or ms", log_x=False),
    ),
    Experiment(
        "pba-fig7-latency",
        "The slowest window of each stretch, over a run",
        _latency,
        PAPER,
        "figure 7",
        "TwoStacks spikes once in a window, SBA once in a chunk, SlickDeque and PBA do not.",
        _latency_claims,
        Axes("window", log_x=False, log_y=True),
        "x86",
    ),
    Experiment(
        "pba-table2-table3-latency",
        "Summaries of the latency of a window",
        _summaries,
        PAPER,
        "tables 2 and 3",
        "PBA is the best in nearly all of seven summaries, most of all in worst and deviation; SBA has its average.",
        _summary_claims,
        None,
        "x86",
    ),
)
