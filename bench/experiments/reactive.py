"""General Incremental Sliding-Window Aggregation: tables 3 and 4, figures 6 to 12.

RA is `reactive`, ISS, which recalculates, is `recalc`, and AW is Arasu and Widom's B-Int (bench/b_int.py); all
compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

import sash
from bench.b_int import ALGORITHM as B_INT
from bench.children import in_child, peak_mb
from bench.experiments.contract import Axes, Claim, Experiment, Row, Size, point
from bench.experiments.daba import COPIED, FUNCTIONS, collect_ns, round_ns
from bench.experiments.fitting import Curves, number
from bench.fifo_rounds import Drivers, FifoRounds
from bench.measuring import in_turns
from sash.aggregators.contract import State
from sash.compiling.jit import entry, interpreted
from sash.engine.building import new_state

PAPER = "Tangwongsan, Hirzel, Schneider, Wu, General incremental sliding-window aggregation, PVLDB 8 (2015)"
BREAK_EVEN = {  # table 3: where RA is ahead of ISS, and 10 times ahead; the others, count and collect, never are
    "sum of i4": (370, 5_200), "sum": (290, 5_200), "max of i4": (260, 5_200), "max": (130, 3_600),
    "mean": (10, 900), "min_count": (200, 4_480), "std": (10, 700), "population std": (10, 700),
    "argmax of i4": (130, 2_770), "argmax": (250, 5_810),
}  # fmt: skip
AGGREGATES: dict[str, tuple[Any, str]] = {
    "sum": (sash.sum(), "f8"), "max": (sash.max(), "f8"), "std": (sash.std(), "f8"), "mean": (sash.mean(), "f8"),
    "sum of i4": (sash.sum(), "i4"), "max of i4": (sash.max(), "i4"), "min_count": (sash.min_count(), "f8"),
    "population std": (sash.std(population=True), "f8"), "argmax": (sash.argmax(), "f8"),
    "argmax of i4": (sash.argmax(), "i4"), "count": (sash.count(), "f8"),
}  # fmt: skip
RELATIVE = {"sum": (1.02, 1.20, 1.36), "max": (1.02, 1.25, 1.37), "mean": (1.05, 1.24, 1.39),
            "min_count": (1.04, 1.23, 1.35), "population std": (1.06, 1.26, 1.37)}  # fmt: skip
US = "us"
LONG = 2**20  # elements, from which on two turns are enough; each passes the whole window, as how many nodes B-Int
# combines goes with the place of the window among them
CACHES = "from 2^20 elements on the tree is larger than the caches, which a round that is this short cannot hide"
ANY_LEAF = (
    "both call combine 3.0 times a round at 8 elements and 13.0 at 8,192; RA also lists the leaves that have changed, "
    "because it can change any, and B-Int only the first and the last"
)
NEVER = {
    "count": "our recalculation adds up ones, as it does for any monoid; the paper's reads the size of its container",
    "collect": COPIED,
}
LINKS = (
    "beside its two partials a slot has two links of 8 bytes: the number of its element, so that any can leave, and "
    "a place in the list of leaves that have changed"
)
FOLDED = (
    "compiled, few elements are folded in some nanoseconds, so that what RA does beside combining is most of its "
    "round; the paper has a stream engine around every round of both"
)


def _break_even(size: Size) -> Iterator[Row]:
    names = list(AGGREGATES)[: size.of(11, 3, 1)]
    sizes = size.of((5, 10, 20, 40, 80, 160, 320, 640, 1280, 2560, 5120, 10_240), (10, 40, 160, 640, 2560), (4, 16))
    for name in names:
        aggregate, dtype = AGGREGATES[name]
        for n in sizes:
            for label, spent in round_ns(size, aggregate, n, ("reactive", "recalc"), dtype=dtype).items():
                yield point(name, label, n, spent)
    for n in size.of((4, 16, 64, 256, 1024), (4, 32), (2, 4)):
        for label, spent in collect_ns(size, n, ("reactive", "recalc")).items():
            yield point("collect", label, n, spent)


def _break_even_claims(rows: Sequence[Row]) -> list[Claim]:
    curves, claims = Curves(rows), []
    for name in curves.panels:
        even, tenfold = (curves.crossing(name, "reactive", "recalc", factor) for factor in (1.0, 10.0))
        shown = f"ahead from {_size(even)}, ten times from {_size(tenfold)}"
        if name in NEVER:
            claims.append(Claim(f"{name}: RA is never ahead (table 3)", shown, even is None, NEVER[name]))
            continue
        said_even, said_tenfold = BREAK_EVEN[name]
        holds = (
            even is not None and even <= max(2 * said_even, 40) and tenfold is not None and tenfold <= 2 * said_tenfold
        )
        claims.append(Claim(f"{name}: RA is ahead of recalculation from {said_even:,} elements, ten times from "
                            f"{said_tenfold:,} (table 3); within twice that, 40 at least", shown, holds))  # fmt: skip
    return claims


def _size(n: float | None) -> str:
    return "never (within the sizes measured)" if n is None else f"{n:,.0f}"


def _relative(size: Size) -> Iterator[Row]:
    for name in ("max", "std")[: size.of(2, 2, 1)]:
        for n in size.powers(10, 10, 4):
            found = round_ns(size, FUNCTIONS[name], n, ("reactive", "recalc"))
            for label, (best, spread) in found.items():
                yield point(name, label, n, (1e3 / best, spread), "million tuples a second")


def _relative_claims(rows: Sequence[Row]) -> list[Claim]:
    curves, claims = Curves(rows), []
    for name, slower, faster in (("max", 0.10, 3), ("std", 0.05, 10)):
        if not curves.has(name, "reactive"):
            continue
        small, large = curves.ratio(name, "reactive", "recalc", 1, 4), curves.ratio(name, "reactive", "recalc", 1024)
        claims.append(
            Claim(
                f"{name}: about {slower:.0%} slower on small windows (section 6.2); at most twice that counts",
                str(small),
                small.low > 1 - 2 * slower,
                FOLDED,
            )
        )
        claims.append(
            Claim(
                f"{name}: {'almost ' * (faster == 3)}{faster} times faster at 1,024 (figure 6); within a fifth",
                str(large),
                large.low > 0.8 * faster,
            )
        )
    return claims


def _complexity(size: Size) -> Iterator[Row]:
    for name in ("max", "std")[: size.of(2, 2, 1)]:
        for n in size.powers(22, 16, 5):
            for label, spent in round_ns(size, FUNCTIONS[name], n, ("reactive",)).items():
                yield point(name, label, n, spent)


def _complexity_claims(rows: Sequence[Row]) -> list[Claim]:
    curves, claims = Curves(rows), []
    for name in curves.panels:
        fit = curves.log_line(name, "reactive")
        claims.append(
            Claim(
                f"{name}: cost is a straight line over log n: O(log n) (figure 7)",
                f"{number(fit.slope)} ns for each doubling, {fit.explained:.0%} of the variance",
                fit.explained > 0.9 and fit.slope > 0,
                CACHES,
            )
        )
        top = curves.xs(name, "reactive")[-1]
        knee = curves.log_line(name, "reactive", top / 64).slope / curves.log_line(name, "reactive", 1, top / 64).slope
        claims.append(
            Claim(
                f"{name}: no knee where caches end (figure 7)",
                f"the last six doublings cost {number(knee)} times what those before do",
                knee < 2,
                CACHES,
            )
        )
    return claims


def _tumbling(size: Size) -> Iterator[Row]:
    for name in ("max", "std")[: size.of(2, 2, 1)]:
        for n in size.powers(12, 12, 4):
            ways, count = {}, max(1, size.of(2**16, 2**14, 2**5) // n)
            for label in ("reactive", "recalc"):
                window = FifoRounds(label, FUNCTIONS[name], n, block=max(n, 16))
                ways[label] = lambda window=window, n=n, count=count: window.firings(n * count, n)
            for label, (best, spread) in in_turns(ways, count, n_turns=size.of(7, 3, 1)).items():
                yield point(name, label, n, (best / 1e3, spread), US)


def _tumbling_claims(rows: Sequence[Row]) -> list[Claim]:
    curves, claims = Curves(rows), []
    for name in curves.panels:
        found = curves.ratio(name, "reactive", "recalc", 16)
        claims.append(
            Claim(
                f"{name}: tumbling windows take about as long as without increments (figure 8); at most 1.5 times",
                str(found),
                found.high < 1.5,
                "both call combine n - 1 times; RA also writes every leaf, and lists it as changed",
            )
        )
    return claims


def _dynamic(size: Size) -> Iterator[Row]:
    """n/2 come, each answered, and n/2 leave: the capacity doubles and halves on the way."""
    for name in ("max", "std")[: size.of(2, 2, 1)]:
        for n in size.powers(20, 14, 5, lowest=4):
            fixed = FifoRounds("reactive", FUNCTIONS[name], n)
            ways = {
                "fixed": lambda fixed=fixed, n=n: fixed.rounds(n // 2),
                "oscillating": _oscillating(FUNCTIONS[name], n),
            }
            for label, spent in in_turns(ways, n // 2, n_turns=size.of(7, 3, 1)).items():
                yield point(name, label, n, spent)


def _oscillating(aggregate: Any, n: int) -> Callable[[], Callable[[], None]]:
    window = FifoRounds("reactive", aggregate, n // 2)
    grow, shrink, move = _resizing(window.drivers)

    def resize(capacity: int) -> None:
        other = new_state(window.drivers.built, capacity)
        move(window.state, other)
        window.state = other

    def turn() -> None:
        resize(2 * n)
        for begin in range(0, n // 2, window.block):
            grow(window.state, window.columns, min(window.block, n // 2 - begin), window.results)
        shrink(window.state, n // 2, window.results)
        resize(n)

    return lambda: turn


@lru_cache(maxsize=16)
def _resizing(drivers: Drivers) -> tuple[Any, Any, Any]:
    """Make grow(state, columns, n, results), shrink(state, n, results) and move(old, new)."""
    insert, evict, query, move, *_ = drivers.built.fifo
    lower, outer = drivers.cells.lower, entry if drivers.built.is_compiled else interpreted

    def grow(s: State, columns: Any, n: int, results: Any) -> None:
        for i in range(n):
            insert(s, columns, i)
            lower(results, i, s.pool, query(s))

    def shrink(s: State, n: int, results: Any) -> None:
        for _ in range(n):
            evict(s)
        lower(results, 0, s.pool, query(s))

    return outer(grow), outer(shrink), outer(move)


def _dynamic_claims(rows: Sequence[Row]) -> list[Claim]:
    curves, claims = Curves(rows), []
    for name in curves.panels:
        found = curves.ratio(name, "oscillating", "fixed", 2**6)
        claims.append(
            Claim(
                f"{name}: resizing is amortised: an oscillating window is no slower at any size (figure 9); within 5 %",
                str(found),
                found.high < 1.05,
                "likely, because windows below 2^12 grow and shrink by one call from Python each, for few rows",
            )
        )
    return claims


CHANGES: dict[str, Callable[[int], int]] = {
    "m = 1": lambda n: 1, "m = 4": lambda n: min(4, n), "m = 64": lambda n: min(64, n),
    "m = n/16": lambda n: max(1, n // 16), "m = n/4": lambda n: max(1, n // 4), "m = n": lambda n: n,
}  # fmt: skip


def _coarse(size: Size) -> Iterator[Row]:
    for n in size.powers(20, 14, 5, lowest=2):
        window = FifoRounds("reactive", FUNCTIONS["std"], n)
        for label, change in CHANGES.items():
            m = change(n)
            count = max(1, size.of(2**16, 2**13, 2**5) // m) * m
            ways = {label: lambda window=window, m=m, count=count: window.firings(count, m)}
            found = in_turns(ways, count, n_turns=size.of(5, 3, 1))
            yield point("std", label, n, found[label])


def _coarse_claims(rows: Sequence[Row]) -> list[Claim]:
    curves, claims = Curves(rows), []
    for label in ("m = 1", "m = 4", "m = 64"):
        fit = curves.log_line("std", label, 2**8)
        claims.append(
            Claim(
                f"{label}: a straight line over log n (figure 10)",
                f"{number(fit.slope)} ns a doubling, {fit.explained:.0%} of the variance",
                fit.slope > 0 and fit.explained > 0.8,
            )
        )
    for label in ("m = n/16", "m = n/4", "m = n"):
        fit = curves.slope("std", label, 2**8)
        claims.append(
            Claim(
                f"{label}: constant for windows large enough (figure 10)",
                f"n to the power of {fit}",
                abs(fit.slope) < 0.1,
            )
        )
    return claims


def _arasu_widom(size: Size) -> Iterator[Row]:
    for n in size.powers(20, 14, 5, lowest=2):
        windows = {"RA": FifoRounds("reactive", FUNCTIONS["max"], n), "AW": FifoRounds(B_INT, FUNCTIONS["max"], n)}
        for part in (1, 16):
            m, of = (1, "m = 1") if part == 1 else (max(1, n // 16), "m = n/16")
            count = max(1, size.of(2**16, 2**13, 2**5) // m) * m
            ways = {label: (lambda w=window, m=m, c=count: w.firings(c, m)) for label, window in windows.items()}
            for label, spent in in_turns(ways, count, n_turns=size.of(5, 3, 1)).items():
                yield point("max", f"{label}, {of}", n, spent)


def _arasu_widom_claims(rows: Sequence[Row]) -> list[Claim]:
    curves, claims = Curves(rows), []
    for of in ("m = 1", "m = n/16"):
        found = curves.ratio("max", f"AW, {of}", f"RA, {of}", 2**6)
        claims.append(
            Claim(f"{of}: RA is faster than AW by a constant factor (figure 11)", str(found), found.low > 1, ANY_LEAF)
        )
    return claims


def _relative_aw(size: Size) -> Iterator[Row]:
    for name in list(RELATIVE)[: size.of(5, 2, 1)]:
        for n, said in zip(
            size.of((2**3, 2**13, 2**23), (2**3, 2**10, 2**13), (2**3, 2**4, 2**5)), RELATIVE[name], strict=True
        ):
            found = round_ns(size, AGGREGATES[name][0], n, ("reactive", B_INT), **({"n_turns": 2} if n > LONG else {}))
            ratio = found["b_int"].best / found["reactive"].best
            yield {"function": name, "n": n, "AW by RA": round(ratio, 2), "the paper": said,
                   "noise": round(found["b_int"].spread + found["reactive"].spread, 3)}  # fmt: skip


def _relative_aw_claims(rows: Sequence[Row]) -> list[Claim]:
    return [
        Claim(f"{row['function']}, {row['n']:,} elements: AW takes {row['the paper']} times (table 4); 1 at least",
              f"{row['AW by RA']} times (noise {row['noise']:.0%})", row["AW by RA"] >= 1, ANY_LEAF)
        for row in rows
    ]  # fmt: skip


def _space(size: Size) -> Iterator[Row]:
    for log_n in size.of((8, 10, 12, 16, 20, 22), (8, 20), (4,)):
        for algorithm in ("reactive", "recalc"):
            n = 1 << log_n
            mb, partials, links = in_child(_fill_window, algorithm, n)
            yield point("resident memory", algorithm, n, mb, "MB")
            yield point("the window alone", f"{algorithm}, all", n, (partials + links) / n, "bytes an element")
            yield point("the window alone", f"{algorithm}, partials", n, partials / n, "bytes an element")


def _fill_window(tell: Callable[[Any], None], algorithm: str, n: int) -> None:
    window = FifoRounds(algorithm, FUNCTIONS["max"], n)
    window.rounds(16)()
    tell((peak_mb(), np.asarray(window.state.pool).nbytes, np.asarray(window.state.links).nbytes))


def _space_claims(rows: Sequence[Row]) -> list[Claim]:
    curves = Curves(rows)
    small = curves.ratio("resident memory", "reactive", "recalc", 0, 2**12)
    fit = curves.slope("the window alone", "reactive, all")
    alone, partials = (curves.y("the window alone", f"reactive, {each}") for each in ("all", "partials"))
    return [
        Claim("up to 4,096 elements the window is minor beside the process (figure 12)", str(small), small.high < 1.1),
        Claim("beyond, space is linear in the window", f"n to the power of {1 + fit.slope:.2f}", abs(fit.slope) < 0.1),
        Claim("the constant is small: 2n partials (section 6.2), of 8 bytes each here",
              f"{number(partials)} bytes of partials an element", partials < 2.1 * 8),
        Claim("and they are the entire structure: 64 MB for 2^23 elements of 4 bytes (section 6.2)",
              f"{number(alone)} bytes an element in all",
              alone < 2.1 * 8, LINKS),
    ]  # fmt: skip


EXPERIMENTS = (
    Experiment(
        "reactive-table3-break-even",
        "From which window on the Reactive Aggregator pays",
        _break_even,
        PAPER,
        "table 3",
        "RA breaks even at 10 to 370 elements and is ten times ahead at 700 to 5,810.",
        _break_even_claims,
        Axes("window"),
    ),
    Experiment(
        "reactive-fig6-relative",
        "Throughput of RA and of recalculation",
        _relative,
        PAPER,
        "figure 6",
        "RA is nearly flat; recalculation begins 5 to 10 % above and falls to a third (max) or a tenth (std) at 1,024.",
        _relative_claims,
        Axes("window"),
    ),
    Experiment(
        "reactive-fig7-complexity",
        "Cost of a tuple over the window",
        _complexity,
        PAPER,
        "figure 7",
        "A straight line over log n up to 8 million elements, without a knee.",
        _complexity_claims,
        Axes("window"),
    ),
    Experiment(
        "reactive-fig8-tumbling",
        "Windows that share nothing",
        _tumbling,
        PAPER,
        "figure 8",
        "All four curves lie on each other: RA costs no more where it cannot gain.",
        _tumbling_claims,
        Axes("window"),
    ),
    Experiment(
        "reactive-fig9-dynamic",
        "Windows that grow and shrink",
        _dynamic,
        PAPER,
        "figure 9",
        "Oscillating windows are below fixed ones: resizing is amortised.",
        _dynamic_claims,
        Axes("window"),
    ),
    Experiment(
        "reactive-fig10-coarse",
        "Answers once in m changes",
        _coarse,
        PAPER,
        "figure 10",
        "Straight lines over log n for m = 1, 4, 64; flat for m = n/16, n/4, n.",
        _coarse_claims,
        Axes("window"),
    ),
    Experiment(
        "reactive-fig11-arasu-widom",
        "RA beside B-Int",
        _arasu_widom,
        PAPER,
        "figure 11",
        "Two pairs of parallel curves, RA below AW by a constant factor.",
        _arasu_widom_claims,
        Axes("window"),
    ),
    Experiment(
        "reactive-table4-arasu-widom",
        "RA beside B-Int, by function",
        _relative_aw,
        PAPER,
        "table 4",
        "AW takes 1.02 to 1.39 times as long, more for larger windows, whatever the function.",
        _relative_aw_claims,
    ),
    Experiment(
        "reactive-fig12-space",
        "Memory of the window",
        _space,
        PAPER,
        "figure 12",
        "Flat up to 4,096 elements, where the process outweighs the window; linear beyond.",
        _space_claims,
        Axes("window"),
    ),
)
