"""Optimal and General Out-of-Order Sliding-Window Aggregation: figures 11 to 15. Figures 16 to 18 run on Spark.

Rounds over one tree by compiled code, as the paper's driver in C++ does them; single rounds by the time-stamp counter;
where they take less than ten readings of it, those of 8 trees that are alike are read together (TreeRounds.clocked).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench.citibike import FOLDERS, HOUR, SPANS, rides
from bench.cycles import cost_ticks, ticks_per_ns
from bench.experiments.contract import Axes, Claim, Experiment, Row, Size, point
from bench.experiments.daba import functions, round_ns
from bench.experiments.fitting import Curves, number
from bench.fifo_rounds import FifoRounds, copied
from bench.measuring import Spent, in_turns
from bench.tree_rounds import LateRounds, Moves, TreeRounds, moves, run_moves, trees_of
from sash.engine.trees import Trees, new_tree

PAPER = "Tangwongsan, Hirzel, Schneider, Optimal and general out-of-order sliding-window aggregation, PVLDB 12 (2019)"
ARITIES = (2, 4, 8)
TREES = tuple((algorithm, arity) for algorithm in ("fiba", "btree") for arity in ARITIES)
MILLIONS = "million rounds a second"
COPIES = (
    "rows of 2 kB: an operation on them is a few vector instructions, so that a round is copies of rows, of which both "
    "trees make several; and windows are 2^15 here, not 2^22"
)
ONE = "one row, recalculated"  # what a round takes without a tree
SPLITS = (  # counted, by the calls of combine
    "in order one of three rounds of min-arity 2 splits the youngest leaf and another one merges the oldest with its "
    "neighbour, so that the median round does either; of min-arity 4 they are two of five rounds, of 8 two of nine"
)
REPAIRS = (
    "only the classic tree repairs the aggregates above the row that leaves, 30, 50 and 84 combines (by min-arity), "
    "the finger tree has 3 or 4; where rows come next to each other it keeps what is around the child that changes; "
    "counted in windows of 2^16 at d = n/4, a round combines 32 to 34 times in finger trees, and 73, 110 and 173 times "
    "in classic ones"
)
AHEAD = {"sum": 3.4, "geomean": 2.5, "bloom": 4.9}  # fiba by btree at the smallest distances, section 5.1.1


def kinds(size: Size) -> Sequence[tuple[str, int]]:
    """The trees of the paper's figures; fewer where it is quick."""
    return size.of(TREES, (("fiba", 4), ("btree", 4)))


def label(algorithm: str, arity: int) -> str:
    """What a curve is called."""
    return f"{algorithm}, min-arity {arity}"


def window_of(size: Size, name: str) -> tuple[int, int]:
    """Elements of a window and rounds of a turn; rows of 2 kB are fewer, as 2^22 of them would take 16 GB."""
    if name == "bloom":
        return 1 << size.of(15, 10, 5), size.of(200, 50, 8)
    return 1 << size.of(22, 16, 6), size.of(5_000, 2_000, 8)


def _millions(spent: Spent) -> Spent:
    return Spent(1e3 / spent.best, spent.spread)


def _distance(size: Size) -> Iterator[Row]:
    for name, aggregate in functions(size, "sum", "geomean", "bloom").items():
        n, chunk = window_of(size, name)
        windows = {label(*kind): TreeRounds(trees_of(kind[0], aggregate, kind[1]), n, chunk) for kind in kinds(size)}
        for d in [*reversed(size.powers(*(n.bit_length() - 1,) * 3)), 0]:  # from far to near: see TreeRounds.at
            ways = {each: partial(window.at, d) for each, window in windows.items()}
            for each, spent in in_turns(ways, chunk, n_turns=size.of(7, 3, 1)).items():
                yield point(name, each, max(d, 0.5), _millions(spent), MILLIONS)


def _distance_claims(rows: Sequence[Row]) -> list[Claim]:
    curves, claims = Curves(rows), []
    for name in curves.panels:
        arities = [each for each in ARITIES if curves.has(name, label("fiba", each))]
        best = max(arities, key=lambda each: curves.y(name, label("fiba", each), 0.5))
        fiba, btree = label("fiba", best), label("btree", best)
        near = curves.ratio(name, fiba, btree, 0, 1)
        claims.append(
            Claim(
                f"{name}: at the smallest distances the best finger tree is {AHEAD[name]} times ahead of the "
                "classic one (section 5.1.1); within a fifth",
                f"min-arity {best}: {near}",
                near.middle >= 0.8 * AHEAD[name],
            )
        )
        least = {each: curves.ratio(name, label("fiba", each), label("btree", each)) for each in arities}
        claims.append(
            Claim(
                f"{name}: the finger tree is at least as fast as the classic one at every distance",
                "; ".join(f"min-arity {each}: {ratio}" for each, ratio in least.items()),
                min(ratio.low for ratio in least.values()) >= 1,
            )
        )
        far = curves.xs(name, fiba)[-1] / 4
        flat = curves.slope(name, btree, 1, far)
        claims.append(
            Claim(
                f"{name}: the classic tree is mostly unaffected by d",
                f"d to the power of {flat}",
                abs(flat.slope) < 0.12,
            )
        )
        fall = curves.ratio(name, fiba, btree, far / 4, far)
        claims.append(
            Claim(
                f"{name}: for large d the finger tree falls to the classic one, as log d",
                str(fall),
                0.6 < fall.middle < 0.7 * near.high,
            )
        )
        uptick = curves.y(name, fiba) / curves.y(name, fiba, curves.xs(name, fiba)[-2])
        claims.append(
            Claim(f"{name}: an uptick at d = n, where the tree is a stack", f"{number(uptick)} times", uptick > 1)
        )
    return claims


def _latency(size: Size) -> Iterator[Row]:
    cost = cost_ticks()
    for name, aggregate in functions(size, "sum", "geomean", "bloom").items():
        n, _ = window_of(size, name)
        yield _without_a_tree(size, name, aggregate, cost)
        for algorithm, arity in kinds(size):
            window = TreeRounds(trees_of(algorithm, aggregate, arity), n, size.of(5_000, 1_000, 8))
            for d in (n // 4, 0):
                count = size.of(20_000 if name == "bloom" else 200_000, 5_000, 16)
                spent, n_alike = _clocked(window, d, count, size.of(3, 2, 1))
                turn = partial(window.at, d) if d else window.in_order
                whole = in_turns({"": turn}, window.chunk, n_turns=size.of(5, 3, 1))[""]
                yield _told(name, d, label(algorithm, arity), spent, whole) | {
                    "n": n, "trees clocked together": n_alike, "of which the clock takes": round(cost / n_alike, 1),
                }  # fmt: skip


def _clocked(window: TreeRounds, d: int, count: int, repeats: int) -> tuple[Any, int]:
    """The ticks of each round: the median of repeats from the same tree, so that what the scheduler did falls out."""
    begun, n_alike, turns = (window.tree, window.n_gone, window.n_come), 1, []
    for _ in range(repeats):
        window.tree, window.n_gone, window.n_come = begun
        spent, n_alike = window.clocked(d, count)
        turns.append(spent)
    least = min(map(len, turns))
    return np.median([spent[:least] for spent in turns], axis=0), n_alike


def _without_a_tree(size: Size, name: str, aggregate: Any, cost: float) -> Row:
    """A window of one row: what is left of a round is to lift the row and to lower it."""
    window, count = FifoRounds("recalc", aggregate, 1), size.of(20_000, 5_000, 16)
    spent, whole = window.clocked(count), in_turns({"": partial(window.rounds, count)}, count)[""]
    return _told(name, 0, ONE, spent, whole) | {
        "n": 1, "trees clocked together": window.n_alike, "of which the clock takes": round(cost / window.n_alike, 1),
    }  # fmt: skip


def _told(name: str, d: int, tree: str, spent: Any, whole: Spent) -> Row:
    """Ticks of single rounds, and of the same by whole turns."""
    low, median, high, worst = np.percentile(spent, (0, 50, 99.9, 100)).tolist()
    return {
        "function": name, "d": d, "tree": tree, "least ticks": round(low, 1), "median": round(median, 1),
        "mean": round(float(spent.mean()), 1), "99.9 %": round(high), "most": round(worst),
        "mean of whole turns": round(whole.best * ticks_per_ns(), 1),
    }  # fmt: skip


def _latency_claims(rows: Sequence[Row]) -> list[Claim]:
    found = {(row["function"], row["d"] > 0, row["tree"]): row for row in rows}
    claims = []
    for name in dict.fromkeys(row["function"] for row in rows):
        arities = [each for each in ARITIES if (name, False, label("fiba", each)) in found]

        def lower(what: str, arity: int, *, is_late: bool, name: str = name) -> float:
            """How many times lower a finger tree is than the classic one of its arity."""
            fiba, btree = (found[name, is_late, label(each, arity)][what] for each in ("fiba", "btree"))
            return btree / max(fiba, 0.1)

        near = [lower("median", each, is_late=False) for each in arities]
        far = [lower("median", each, is_late=True) for each in arities]
        if name == "bloom":
            claims += _of_bloom(lower, near)
        else:
            ticks = {tree: row for (function, is_late, tree), row in found.items() if function == name and not is_late}
            claims += _of_cheap(name, lower, arities, (near, far), _why_not_less(name, ticks))
    return claims


def _why_not_less(name: str, in_order: dict[str, Row]) -> str:
    """Why rounds of finger trees in order are not shorter: what they take without a tree, and splits."""
    trees = [in_order[tree] for tree in map(partial(label, "fiba"), ARITIES) if tree in in_order]
    least, median = (", ".join(number(tree[what]) for tree in trees) for what in ("least ticks", "median"))
    ticks = f"{least} ticks in the least round and {median} in the median (by min-arity)"
    if name == "geomean" and ONE in in_order:
        alone = f"a logarithm and an exponential take {in_order[ONE]['median']:.0f} ticks, which no tree saves"
        return f"{alone}, of {ticks}; means, which have all but those, are above 10 times in the least; and {SPLITS}"
    return f"{SPLITS}: {ticks}"


def _of_cheap(
    name: str, lower: Any, arities: Sequence[int], medians: tuple[list[float], list[float]], why: str
) -> list[Claim]:
    least = [lower("least ticks", each, is_late=False) for each in arities]
    worst = [lower("99.9 %", each, is_late=False) for each in arities]
    near, far = medians
    return [
        Claim(
            f"{name}: in order, minimum and median of finger trees are orders of magnitude lower, 10 times at least, "
            "at every min-arity (section 5.1.2)",
            f"median {_times(near)}, minimum {_times(least)}",
            min(near) >= 10 and min(least) >= 10,
            why,
        ),
        Claim(
            f"{name}: in order, the worst case of both is similar, by the 99.9th percentile within 3 times",
            _times(worst),
            1 / 3 < min(worst) and max(worst) < 3,
        ),
        Claim(
            f"{name}: at d = n/4 both have similar medians, within twice, at every min-arity",
            _times(far),
            0.5 < min(far) and max(far) < 2,
            REPAIRS,
        ),
    ]


def _of_bloom(lower: Any, near: list[float]) -> list[Claim]:
    far = {what: lower(what, 2, is_late=True) for what in ("least ticks", "median", "99.9 %")}
    return [
        Claim(
            "bloom: in order, medians of finger trees are significantly lower, 1.5 times at least, at every min-arity "
            "(section 5.1.2)",
            _times(near),
            min(near) >= 1.5,
            COPIES,
        ),
        Claim(
            "bloom: at d = n/4, minimum, median and 99.9th percentile of the finger tree of min-arity 2 are orders of "
            "magnitude lower, 10 times at least (section 5.1.2)",
            ", ".join(f"{what} {number(each)} times lower" for what, each in far.items()),
            min(far.values()) >= 10,
            COPIES,
        ),
    ]


def _times(factors: Sequence[float]) -> str:
    return f"{', '.join(map(number, factors))} times lower" + " (by min-arity)" * (len(factors) > 1)


def _fifo(size: Size) -> Iterator[Row]:
    for name, aggregate in functions(size, "sum", "geomean", "bloom").items():
        log_n = window_of(size, name)[0].bit_length() - 1
        for n in size.powers(*(log_n,) * 3):
            queues = round_ns(size, aggregate, n, ("two_stacks_lite", "daba", "reactive"))
            chunk = max(window_of(size, name)[1], 4)
            windows = {
                label(*kind): TreeRounds(trees_of(kind[0], aggregate, kind[1]), n, chunk) for kind in kinds(size)
            }
            ways = {each: partial(_as_queues_are, window) for each, window in windows.items()}
            for each, spent in (queues | in_turns(ways, chunk, n_turns=size.of(7, 3, 1))).items():
                yield point(name, each, n, _millions(spent), MILLIONS)


def _as_queues_are(window: TreeRounds) -> Callable[[], None]:
    """Prepare rounds in order by a tree that is in the caches, and in memory from a line on: see round_ns."""
    if window.n_gone == 0:
        window.tree = copied(window.tree)
    window.in_order()()
    return window.in_order()


def _fifo_claims(rows: Sequence[Row]) -> list[Claim]:
    curves, claims = Curves(rows), []
    for name in curves.panels:
        fiba, btree = label("fiba", 4), label("btree", 4)
        flat = curves.slope(name, fiba, 2**6)
        claims.append(
            Claim(
                f"{name}: finger trees are constant in the size of the window (section 5.1.3)",
                f"n to the power of {flat}",
                abs(flat.slope) < 0.15,
            )
        )
        falls = curves.ratio(name, fiba, btree, 2**10)
        claims.append(
            Claim(
                f"{name}: the classic tree is O(log n), so it falls behind, more so in larger windows",
                str(falls),
                falls.low > 1 and curves.y(name, fiba) / curves.y(name, btree) >= falls.middle,
            )
        )
        best = max(
            curves.ratio(name, label("fiba", each), "daba", 2**6).low
            for each in ARITIES
            if curves.has(name, label("fiba", each))
        )
        wanted = 0.4 if name == "bloom" else 0.7
        claims.append(
            Claim(
                f"{name}: the best finger tree is within {1 - wanted:.0%} of DABA, at every window from 2^6 on",
                f"{best:.0%} of DABA at least",
                best >= wanted,
                "the cheaper a combine, the more of a round is what a tree does beside it: leaves are entered and "
                "left, split and merged; DABA has none",
            )
        )
    return claims


def _shared_or_not(trees: Trees, n: int, n_small: int, chunk: int) -> dict[str, Any]:
    d = min(n_small // 2, n - 1)
    shared, big, small = (
        LateRounds(trees, n, d, chunk),
        LateRounds(trees, n, d, chunk),
        LateRounds(trees, n_small, d, chunk),
    )

    def twin() -> Callable[[], None]:
        rounds = big.rounds(), small.rounds()
        return lambda: [each() for each in rounds]

    return {"range": lambda: shared.rounds(n_small), "twin": twin}


def _sharing(size: Size) -> Iterator[Row]:
    for name, aggregate in functions(size, "sum", "geomean", "bloom").items():
        n, chunk = window_of(size, name)
        for arity in size.of(ARITIES, (4,)):
            trees = trees_of("fiba", aggregate, arity)
            for n_small in size.powers(*(n.bit_length() - 1,) * 3, step=4):
                found = in_turns(_shared_or_not(trees, n, n_small, chunk), chunk, n_turns=size.of(5, 3, 1))
                for each, spent in found.items():
                    yield point(name, f"{each}, min-arity {arity}", n_small, _millions(spent), MILLIONS)


def _sharing_claims(rows: Sequence[Row]) -> list[Claim]:
    curves, claims = Curves(rows), []
    for name in curves.panels:
        found = curves.ratio(name, "range, min-arity 4", "twin, min-arity 4")
        shown = f"throughput of the shared tree: {found}"
        claims.append(
            Claim(
                f"{name}: sharing one tree is in the same ballpark as two, within twice at every size (section 5.1.4)",
                shown,
                0.5 < found.low and found.high < 2,
            )
        )
        claims.append(
            Claim(
                f"{name}: sharing does not consistently improve throughput: somewhere it is no faster (section 5.1.4)",
                shown,
                found.low <= 1,
            )
        )
        claims.append(
            Claim(
                f"{name}: sharing is slightly slower, in the middle of all sizes (section 5.1.4)",
                shown,
                found.middle < 1,
                "likely, because asking for a range costs less here than a second insertion and eviction",
            )
        )
    return claims


def _citibike(size: Size) -> Iterator[Row]:
    """Rides by start time in order of stop time; without the data beside the project, made-up ones as late."""
    times, durations, source = _starts(size)
    yield {"panel": "data", "series": source, "x": 0, "y": len(times), "unit": "rides", "spread": 0.0}
    for name, aggregate in functions(size, "sum", "geomean", "bloom").items():
        chosen = slice(0, size.of(40_000, 4_000, 50)) if name == "bloom" else slice(None)
        given = (durations / durations.max())[chosen]
        for hours in size.of(SPANS, {"6 hours": 6, "4 days": 96}).values():
            rows = by_time(times[chosen], hours * HOUR, given)
            ways = {label(*kind): partial(_over, trees_of(kind[0], aggregate, kind[1]), rows) for kind in kinds(size)}
            for each, spent in in_turns(ways, len(given), n_turns=size.of(3, 2, 1)).items():
                yield point(name, each, hours / 24, _millions(spent), MILLIONS)


def _starts(size: Size) -> tuple[Any, Any, str]:
    folder = next((each for each in FOLDERS if each.is_dir()), None)
    if folder is None or size == Size.TINY:
        generator, n = np.random.default_rng(2018), size.of(400_000, 50_000, 200)
        times = np.sort(generator.integers(0, 365 * 24 * HOUR, n)) - (generator.exponential(0.25, n) * HOUR).astype(int)
        return times, generator.lognormal(6, 1, n), "made up, as there were no data beside the project"
    stops, durations = rides(folder, quick=size > Size.FULL)
    order = np.argsort(stops, kind="stable")
    return (stops - (durations * 1e6).astype(np.int64))[order], durations[order], _months(folder)


def _months(folder: Path) -> str:
    """Which rides they are, by the names of their files: JC-201806-citibike-tripdata.csv.zip."""
    months = sorted(each.name.split("-")[1] for each in folder.glob("*.zip"))
    first, last = (f"{each[:4]}-{each[4:6]}" for each in (months[0], months[-1]))
    return f"real: Citi Bike, Jersey City, {first} to {last}"


def _over(trees: Trees, given: Moves) -> Callable[[], Any]:
    return run_moves(trees, new_tree(trees), given)


def by_time(times: Any, span: int, values: Any) -> Moves:
    """Rows by their times in order of arrival, and what is older than a span before the newest leaves.

    A time leaves with the first row after which it is too old: its own, if it came too late.
    """
    oldest = np.maximum.accumulate(times) - span
    leaves = np.maximum(np.searchsorted(oldest, times, side="right"), np.arange(len(times)))
    rows, keys = np.unique(np.stack([leaves, times])[:, leaves < len(times)], axis=1)
    return moves(times, keys, np.searchsorted(rows, np.arange(len(times) + 1)), (), values)


def _citibike_claims(rows: Sequence[Row]) -> list[Claim]:
    curves, claims = Curves(rows), []
    for name in (each for each in curves.panels if each != "data"):
        found = {each: curves.ratio(name, label("fiba", each), label("btree", each)) for each in ARITIES}
        found = {each: ratio for each, ratio in found.items() if ratio.low == ratio.low}
        claims.append(
            Claim(
                f"{name}: finger trees outperform their classic counterparts throughout (section 5.2)",
                "; ".join(f"min-arity {each}: {ratio}" for each, ratio in found.items()),
                min(ratio.low for ratio in found.values()) > 1,
            )
        )
    return claims


EXPERIMENTS = (
    Experiment(
        "fiba-fig11-distance",
        "Throughput over the distance of late rows",
        _distance,
        PAPER,
        "figure 11",
        "Finger trees begin 2.5 to 4.9 times above classic ones and fall in steps as log d; classic ones are flat; all "
        "turn up at d = n.",
        _distance_claims,
        Axes("distance"),
    ),
    Experiment(
        "fiba-fig12-latency",
        "A round in order, and at a quarter of the window",
        _latency,
        PAPER,
        "figure 12",
        "In order, minimum and median of finger trees are orders of magnitude lower, and the worst case alike; at 2^20 "
        "of 2^22 both are alike for cheap operators, and for bloom the finger tree of min-arity 2 is orders of "
        "magnitude lower.",
        _latency_claims,
        None,
        "x86",
    ),
    Experiment(
        "fiba-fig13-fifo",
        "Rows in order over window sizes",
        _fifo,
        PAPER,
        "figure 13",
        "Flat curves: Two-Stacks, DABA, then finger trees within 30 % of DABA (60 % for bloom); classic trees and "
        "Reactive fall with log n.",
        _fifo_claims,
        Axes("window"),
    ),
    Experiment(
        "fiba-fig14-sharing",
        "Two windows in one tree, or in two",
        _sharing,
        PAPER,
        "figure 14",
        "Both fall with log d alike; one tree asked for a range is slightly slower than two trees.",
        _sharing_claims,
        Axes("small window"),
    ),
    Experiment(
        "fiba-fig15-citibike",
        "Real rides, windows of 6 hours to 32 days",
        _citibike,
        PAPER,
        "figure 15",
        "Finger trees are above classic ones at every span, lower arities ahead for dearer operators.",
        _citibike_claims,
        Axes("days"),
    ),
)
