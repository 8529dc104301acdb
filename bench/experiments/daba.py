"""Constant-Time Sliding Window Aggregation: table 1, figure 18 and table 2.

Rounds of evict, insert and query by compiled code, as the paper's driver in C++ does them. Single rounds are timed by
the time-stamp counter (bench/cycles.py), in ticks of it, each the median of nine repeats of the same rounds. The
counter moves in steps that are as long as a round, so several windows alike take each round together, between two
readings of the clock, and a round is their share (FifoRounds.clocked); of rows of 2 kB there is one window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

import sash
from bench.cycles import cost_ticks, ticks_per_ns
from bench.experiments.contract import Axes, Claim, Experiment, Row, Size, point
from bench.experiments.fitting import Curves, number
from bench.fifo_rounds import BLOCK, FifoRounds
from bench.measuring import in_turns, last_cache_mb
from bench.rounds import BloomRows

PAPER = "Tangwongsan, Hirzel, Schneider, Constant-time sliding window aggregation, IBM Research Report (2015)"
FUNCTIONS: dict[str, Any] = {
    "sum": sash.sum(), "max": sash.max(), "mean": sash.mean(), "geomean": sash.geomean(),
    "min_count": sash.min_count(), "std": sash.std(), "argmax": sash.argmax(), "bloom": BloomRows,
}  # fmt: skip
BREAK_EVEN = {  # table 1: reactive, two_stacks, aba, daba
    "sum": (1024, 48, 8, 64), "max": (704, 28, 4, 64), "mean": (1024, 48, 28, 112), "geomean": (704, 32, 16, 64),
    "min_count": (512, 28, 16, 64), "std": (704, 28, 16, 64), "argmax": (704, 28, 28, 48), "bloom": (28, 16, 28, 28),
}  # fmt: skip
ALGORITHMS = ("reactive", "two_stacks", "aba", "daba")
LITE = ("two_stacks_lite", "daba_lite")  # what came after the paper
DEVIATIONS = {  # table 2: mean and deviation of two_stacks, aba and daba, in cycles
    "sum": "183 ± 1,428, 172 ± 142, 210 ± 56", "max": "188 ± 1,467, 160 ± 184, 209 ± 58",
    "mean": "194 ± 1,170, 171 ± 294, 227 ± 69", "geomean": "206 ± 1,169, 185 ± 306, 244 ± 84",
    "std": "218 ± 1,323, 199 ± 359, 255 ± 86", "argmax": "197 ± 2,047, 163 ± 249, 218 ± 64",
    "bloom": "6,771 ± 338,700, 7,253 ± 213,800, 9,762 ± 7,957",
}  # fmt: skip
LOG_WINDOW = 14
COPIED = "a combine copies lists in C, and recalculation calls Python for every element"
WAITS = (
    "Two-Stacks calls combine 3.0 times a round and DABA 4.0, but likely at less cost: in a flip each call waits for "
    "the one before, and DABA's do not wait for each other; in a window of one element it flips in every round"
)
ROW_KB = 2  # of bloom; DABA has two of them for an element
COPIES = (  # counted: cells that are written in 4n rounds
    "for rows of 2 kB a copy takes about as long as a combine, 17 ns beside 21 in the first cache, and a flip of "
    "Two-Stacks moves all of them: it copies or combines 3.9 rows a round in 16 elements and 4.0 in large windows, ABA "
    "2.9 and 3.0, DABA 4.0. In a window of one element nothing is combined, and they copy 3, 2 and 1"
)
CACHED = (
    "a copy of a row of 2 kB takes about as long as a combine, 17 ns beside 21 in the first cache; in 4 elements DABA "
    "copies or combines 4.0 rows a round with caching (1.5 and 2.5) and without (1.0 and 3.0), from 64 on 4.0 and 4.9"
)


def functions(size: Size, *names: str) -> dict[str, Any]:
    """Aggregates by name; the first alone where it is quick, as each takes its time to compile."""
    return {name: FUNCTIONS[name] for name in names[: size.of(len(names), 1)]}


def round_ns(size: Size, aggregate: Any, n: int, algorithms: Sequence[Any], **options: Any) -> dict[str, Any]:
    """Nanoseconds a round of each algorithm at a window of n, by turns.

    A turn is a whole number of windows, so that each holds its share of the rare rounds that move everything; only
    recalculation, which has no such rounds, gets by with fewer. Turns of large windows are long, and few are enough.
    """
    n_turns, windows = options.pop("n_turns", size.of(7, 3, 1)), {}
    for each in algorithms:
        name, further = each if isinstance(each, tuple) else (each, {})
        label = name if isinstance(name, str) else name.card.name
        windows[f"{label}, not cached" if further else label] = FifoRounds(name, aggregate, n, **options, **further)
    count = max(size.of(20_000, 5_000, 64) // (20 if aggregate is BloomRows else 1), 4)
    counts = dict.fromkeys(windows, max(1, round(count / n)) * n) | {"recalc": max(count // (1 + n // 50), 4)}
    ways = {label: partial(warm_rounds, windows[label], counts[label]) for label in windows}
    return in_turns(ways, counts, n_turns=n_turns)


def warm_rounds(window: Any, count: int) -> Callable[[], None]:
    """Prepare rounds from the caches of a long run: in the turns of the others they were filled with theirs."""
    window.move()
    window.rounds(min(count, BLOCK))()
    return window.rounds(count)


def _break_even(size: Size) -> Iterator[Row]:
    sizes = size.of((2, 4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024), (4, 16, 64, 256, 1024), (2, 4))
    for name, aggregate in functions(
        size, "sum", "geomean", "bloom", "max", "mean", "min_count", "std", "argmax"
    ).items():
        for n in sizes:
            for label, spent in round_ns(size, aggregate, n, (*ALGORITHMS, *LITE, "recalc")).items():
                yield point(name, label, n, spent)
    for n in size.of((4, 16, 64, 256), (4, 32), (2, 4)):
        for label, ns in collect_ns(size, n).items():
            yield point("collect", label, n, ns)


def collect_ns(size: Size, n: int, algorithms: Sequence[str] = (*ALGORITHMS, "recalc")) -> dict[str, Any]:
    """Lists of the window, interpreted: inherently linear."""
    values = list(range(size.of(2_000, 500, 8)))

    def rounds(window: Any) -> None:
        for value in values:
            window.evict()
            window.insert(value)
            window.query()

    ways = {}
    for name in algorithms:
        window = sash.aggregator(name, sash.collect())
        window.bulk_insert(range(n))
        ways[name] = lambda window=window: lambda: rounds(window)
    return in_turns(ways, len(values), n_turns=size.of(3, 2, 1))


def _break_even_claims(rows: Sequence[Row]) -> list[Claim]:
    curves, claims = Curves(rows), []
    for name in curves.panels:
        found = {each: curves.crossing(name, each, "recalc") for each in ALGORITHMS}
        shown = ", ".join(f"{each} {_size(found[each])}" for each in ALGORITHMS)
        if name == "collect":
            never = all(each is None for each in found.values())
            claims.append(Claim("collect: never, for any algorithm (table 1)", shown, never, COPIED))
            continue
        said = ", ".join(f"{each} {n:,}" for each, n in zip(ALGORITHMS, BREAK_EVEN[name], strict=True))
        holds = all(
            found[each] is not None and found[each] <= 2 * n
            for each, n in zip(ALGORITHMS, BREAK_EVEN[name], strict=True)
        )
        claims.append(Claim(f"{name}: ahead of recalculation from {said} elements (table 1); within twice that", shown,
                            holds))  # fmt: skip
    return claims


def _size(n: float | None) -> str:
    return "never" if n is None else f"{n:,.0f}"


def _throughput(size: Size) -> Iterator[Row]:
    if cache_mb := last_cache_mb():
        yield point("last cache", "of the processor", 0, cache_mb, "MB")
    for name, aggregate in functions(size, "sum", "geomean", "bloom").items():
        tops = (17, 12, 3) if name == "bloom" else (20, 14, 5)
        algorithms = [*ALGORITHMS, ("daba", {"cached": False}), *LITE]
        for n in size.powers(*tops):
            n_turns = size.of(21 if n <= 2**12 else 7, 3, 1)  # short turns: a cache that is shared is quiet in some
            found = round_ns(size, aggregate, n, algorithms, n_turns=n_turns)
            if n <= 2**10:
                found |= round_ns(size, aggregate, n, ["recalc"])
            for label, (best, spread) in found.items():
                yield point(name, label, n, (1e3 / best, spread), "million rounds a second")


def _throughput_claims(rows: Sequence[Row]) -> list[Claim]:
    curves, claims = Curves(rows), []
    for name in (each for each in curves.panels if each in FUNCTIONS):
        claims.append(_flat_rows(curves) if name == "bloom" else _flat(curves, name))
        recalc = curves.slope(name, "recalc", 2**4)
        claims.append(Claim(f"{name}: recalculation is O(n)", f"n to the power of {recalc}", recalc.slope < -0.5))
        for each in ("two_stacks", "aba"):
            best = curves.ratio(name, each, "daba")
            claims.append(
                Claim(
                    f"{name}: {each} has a higher throughput than DABA at all windows (section 7.2)",
                    str(best),
                    best.low > 1,
                    COPIES if name == "bloom" else WAITS,
                )
            )
        claims += [_ahead_of_reactive(curves, name), _gain_of_caching(curves, name)]
    return claims


def _flat(curves: Curves, name: str) -> Claim:
    slope = curves.slope(name, "daba", 2**4, 2**18)
    said = f"{name}: DABA is O(1): flat, up to 2^18 elements (figure 18, section 7.2)"
    return Claim(said, f"throughput goes as n to the power of {slope}", slope.slope > -0.2)


def _flat_rows(curves: Curves) -> Claim:
    """Rows of 2 kB fill one cache after the other from 2^4 elements on; beyond the last there is one level again."""
    cache_mb = curves.y("last cache", "of the processor")
    begin = next((n for n in curves.xs("bloom", "daba") if _mb(n) > cache_mb), 2**10)  # also where none is known
    slope, before = curves.slope("bloom", "daba", begin), curves.slope("bloom", "daba", 2**10)
    return Claim(
        "bloom: DABA is O(1): flat, once its rows of 2 kB are beyond the caches (figure 18, section 7.2)",
        f"throughput goes as n to the power of {slope} from {begin:,.0f} elements on, which take {_mb(begin):.0f} MB "
        f"(the last cache has {cache_mb:.0f}); of {before} from 1,024 on, which take {_mb(2**10):.0f}",
        slope.slope > -0.2,
        "DABA calls combine 4.0 times a round in any of these windows, as counted; the rest is where its rows are",
    )


def _mb(n: float) -> float:
    return 2 * ROW_KB * n / 1024


def _ahead_of_reactive(curves: Curves, name: str) -> Claim:
    least, where = (2**8, "from 2^8 elements on") if name == "bloom" else (1, "at all windows")
    ahead = curves.ratio(name, "daba", "reactive", least)
    why = _rows_from_memory(curves) if name == "bloom" else ""
    return Claim(f"{name}: DABA is ahead of Reactive {where} (section 7.2)", str(ahead), ahead.low > 1, why)


def _rows_from_memory(curves: Curves) -> str:
    """Why Reactive keeps up: counted by a cache of the latest rows, and with combines that were made dearer."""
    ahead = {n: curves.ratio("bloom", "daba", "reactive", n, n).middle for n in curves.xs("bloom", "daba")}
    shown = ", ".join(f"{number(ahead[n])} at {n:,}" for n in ahead if n >= 2**8)
    return (
        f"by elements it is {shown}. Beyond the caches a round is the rows that come from memory, as a combine of 2 kB "
        "takes 21 ns in the first cache: DABA reads 5 rows a round from there and writes 4 back, Reactive 2 and 2, as "
        "all but the lowest of the nodes that it combines stay in a cache. With a combine made to take 60 ns, DABA was "
        "1.25 times ahead at 16,384 elements, with 360 ns 2.5 times; the paper's rounds of 4 combines take 3,000 ns"
    )


def _gain_of_caching(curves: Curves, name: str) -> Claim:
    cached = curves.ratio(name, "daba", "daba, not cached", 4)  # below, there is nothing to cache
    said, low, high = (
        ("a modest (below 1.5 times) but consistent gain from 4 elements on", 1.0, 1.5)
        if name == "bloom"
        else ("a marginal difference (at most a fifth) from 4 elements on", 1 / 1.2, 1.2)
    )
    return Claim(
        f"{name}: caching makes {said} for DABA (section 7.2)",
        str(cached),
        low < cached.low and cached.high < high,
        CACHED if name == "bloom" else "",
    )


def _latency_runs(size: Size, names: Sequence[str]) -> Iterator[tuple[str, str, Any, int]]:
    n = 1 << size.of(LOG_WINDOW, 12, 4)
    for name in names:
        count = size.of(100_000 if name == "bloom" else 1_000_000, 20_000 if name == "bloom" else 100_000, 64)
        for algorithm in ("two_stacks", "aba", "daba", "daba_lite"):
            window = FifoRounds(algorithm, FUNCTIONS[name], n)
            window.rounds(2 * n)()
            yield name, algorithm, window.clocked(count, repeats=size.of(9, 3, 2)), window.n_alike


def _latency(size: Size) -> Iterator[Row]:
    names = ("sum", "geomean", "bloom")[: size.of(3, 3, 1)]
    yield point("clock", "two readings, with nothing between", 0, cost_ticks(), "ticks")
    for name, algorithm, spent, n_windows in _latency_runs(size, names):
        yield point("windows that share two readings", f"{name} by {algorithm}", 0, n_windows, "windows")
        blocks = np.array_split(spent, min(500, len(spent) // 4))
        places = np.cumsum([0, *map(len, blocks[:-1])])
        for place, block in zip(places.tolist(), blocks, strict=True):
            yield point(name, algorithm, place, float(block.max()), "ticks")


def _latency_claims(rows: Sequence[Row]) -> list[Claim]:
    curves, claims = Curves(rows), []
    for name in (each for each in curves.panels if each in FUNCTIONS):
        worst = {each: max(curves.y(name, each, x) for x in curves.xs(name, each)) for each in curves.series(name)}
        shown = ", ".join(f"{each} {number(worst[each])}" for each in worst)
        for each in ("two_stacks", "aba"):
            factor = worst[each] / worst["daba"]
            claims.append(
                Claim(
                    f"{name}: {each} has spikes of O(n) and DABA has none (figure 18)",
                    f"worst round in ticks: {shown}; {number(factor)} times DABA's",
                    factor > 3,
                )
            )
    return claims


def _deviations(size: Size) -> Iterator[Row]:
    names = list(DEVIATIONS)[: size.of(7, 2, 1)]
    n, algorithms = 1 << size.of(LOG_WINDOW, 12, 4), ("two_stacks", "aba", "daba", "daba_lite")
    cost, rate = cost_ticks(), ticks_per_ns()
    means = {name: round_ns(size, FUNCTIONS[name], n, algorithms) for name in names}
    for name, algorithm, spent, n_windows in _latency_runs(size, names):
        turns = means[name][algorithm]
        yield {
            "function": name, "algorithm": algorithm, "mean ticks, of whole turns": round(turns.best * rate, 1),
            "noise": round(turns.spread, 3), "mean of single rounds": round(float(spent.mean()), 1),
            "deviation": round(float(spent.std()), 1), "median": round(float(np.median(spent)), 1),
            "worst": int(spent.max()), "of which the clock takes": round(cost / n_windows, 1),
            "the paper, cycles": DEVIATIONS[name],
        }  # fmt: skip


def _deviation_claims(rows: Sequence[Row]) -> list[Claim]:
    claims, found = [], {(row["function"], row["algorithm"]): row for row in rows}
    for name in dict.fromkeys(row["function"] for row in rows):
        daba = found[name, "daba"]
        factors = {each: found[name, each]["deviation"] / max(daba["deviation"], 0.1) for each in ("two_stacks", "aba")}
        shown = ", ".join(f"{each} {number(factor)} times" for each, factor in factors.items())
        claims.append(
            Claim(
                f"{name}: deviation is 3 to 25 times that of DABA (table 2, section 7.3); 3 at least",
                shown,
                min(factors.values()) >= 3,
                "likely, because others had a share of the last cache meanwhile: DABA took "
                f"{number(daba['mean of single rounds'])} ticks by single rounds and "
                f"{number(daba['mean ticks, of whole turns'])} by whole turns, of which the best counts",
            )
        )
        turns, noise = "mean ticks, of whole turns", max(found[name, each]["noise"] for each in ("two_stacks", "aba"))
        means = {each: found[name, each][turns] / daba[turns] for each in ("two_stacks", "aba")}
        shown = ", ".join(f"{each} {number(mean)} times" for each, mean in means.items())
        shown += f" (noise {noise + daba['noise']:.0%})"
        claims.append(
            Claim(f"{name}: on average both are faster than DABA (table 2)", shown, max(means.values()) < 1, WAITS)
        )
    return claims


EXPERIMENTS = (
    Experiment(
        "daba-table1-break-even",
        "From which window on incremental algorithms pay",
        _break_even,
        PAPER,
        "table 1",
        "Two-Stacks, ABA and DABA pay from windows of 4 to 112 elements on, Reactive from 28 to 1,024; for collecting "
        "the window nothing ever does.",
        _break_even_claims,
        Axes("window"),
    ),
    Experiment(
        "daba-fig18-throughput",
        "Throughput over window sizes",
        _throughput,
        PAPER,
        "figure 18, top",
        "Flat curves for Two-Stacks, ABA and DABA, the first two on top, a drop near 2^20 where caches end; Reactive "
        "below, falling with log n; recalculation falls with n.",
        _throughput_claims,
        Axes("window"),
    ),
    Experiment(
        "daba-fig18-latency",
        "The slowest round of each stretch, over a run",
        _latency,
        PAPER,
        "figure 18, bottom",
        "Two-Stacks and ABA spike once in a window, DABA stays flat at the bottom.",
        _latency_claims,
        Axes("round", log_x=False, log_y=True),
        "x86",
    ),
    Experiment(
        "daba-table2-latency",
        "Mean and deviation of a round",
        _deviations,
        PAPER,
        "table 2",
        "DABA's mean is the highest of the three, and its deviation 3 to 25 times lower.",
        _deviation_claims,
        None,
        "x86",
    ),
)
