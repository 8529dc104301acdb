"""The Monoid Tree Aggregator framework: experiments 1 to 5, in memory and in a store (LMDB in place of Couchbase).

Naive is `recalc`. Windows in a store are driven from Python, so rounds come in batches of 4,096 there, and the same is
measured in memory beside them. The stream of experiment 3 is our own: memory in use, one reading a second for two
years, of which a seeded sample of the beginning is taken.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import islice
from typing import Any

import numpy as np

import sash
from bench.children import in_child, limit_data
from bench.experiments.contract import Axes, Claim, Experiment, Row, Size, point
from bench.experiments.daba import round_ns
from bench.experiments.fitting import Curves, line, number
from bench.fifo_rounds import copied
from bench.measuring import Spent, in_turns, spent_of, turns_of
from bench.stores import BATCH, directory, fill, values
from sash.aggregators import find
from sash.aggregators.contract import OLDEST, State
from sash.aggregators.policy_search import N_ROWS, N_SCRATCH
from sash.compiling.compiled_cells import compiled_cells
from sash.compiling.jit import compiled, entry, interpreted
from sash.engine.binding import bind
from sash.engine.building import Built, interpreted_product, nested, new_state, product
from sash.engine.policing import searcher

PAPER = (
    "Villalba, Berral, Carrera, Constant-time sliding window framework with reduced memory footprint and efficient "
    "bulk evictions, IEEE TPDS 30 (2019)"
)
TREES = ("amta", "log_mta")
STORE_BY_MEMORY = "store by memory, from Python"
SHARED_LITTLE = (
    "compiled, a round of one dimension takes some nanoseconds, and there is little in it to be shared: the paper's, "
    "in a store, has 4,158 ns of it"
)
ONE_BY_ONE = (
    "likely, because each insertion and query from Python hands the arrays of every dimension to compiled code one by "
    "one, and makes an object of every answer"
)
STEP_BY_STEP = (
    "in memory the search for what a policy gives up is compiled; in a store it goes step by step from Python, as a "
    "node may have to be read first"
)
TABLE_2 = {  # ns: naive, KVS LMTA, local LMTA, DABA, KVS AMTA, local AMTA
    "sum": (3.69e8, 14_320, 10_341, 4_288, 6_253, 4_163), "mean": (3.26e8, 14_027, 10_378, 4_389, 6_111, 4_033),
    "geomean": (2.83e8, 15_267, 11_166, 4_795, 6_198, 4_183), "std": (3.5e8, 15_439, 12_934, 4_880, 6_131, 3_864),
    "max": (2_554, 8_501, 6_188, 3_500, 2_886, 1_763), "lis": (19_294, 22_306, 19_794, 10_027, 7_350, 6_476),
}  # fmt: skip


def _constant(size: Size) -> Iterator[Row]:
    for n in size.powers(22, 14, 5):
        for label, spent in round_ns(
            size, sash.sum(), n, ("amta", "log_mta", "daba", *["recalc"] * (n <= 2**10))
        ).items():
            yield point("each round answered", label, n, spent)
    for n in size.of((2**12, 2**14, 2**18, 2**22), (2**12, 2**14), (2**5,)):
        for label, spent in _batches(size, n).items():
            yield point("in batches of 4,096", label, n, spent)


def _batches(size: Size, n: int) -> dict[str, Any]:
    """Batches of insertions and evictions and a query, in a store and in memory, by turns."""
    with directory() as path:
        windows = {
            f"{name}, lmdb": sash.aggregator(name, sash.sum(), store=f"lmdb://{path}/{name}", name="w")
            for name in TREES
        }
        windows |= {name: sash.aggregator(name, sash.sum(), compiled=True) for name in TREES}
        for window in windows.values():
            fill(window, n)
        batch, n_batches = values()[: min(n, BATCH)], size.of(32, 4, 1)

        def turn(window: Any) -> None:
            for _ in range(n_batches):
                window.bulk_insert(batch)
                window.bulk_evict(len(batch))
                window.query()

        ways = {label: (lambda window=window: lambda: turn(window)) for label, window in windows.items()}
        found = in_turns(ways, len(batch) * n_batches, n_turns=size.of(5, 2, 1), clock=time.perf_counter_ns)
        for name in TREES:
            windows[f"{name}, lmdb"].close()
    return found


def _constant_claims(rows: Sequence[Row]) -> list[Claim]:
    curves, panel = Curves(rows), "each round answered"
    recalc, amta, daba = (curves.slope(panel, each, low) for each, low in (("recalc", 16), ("amta", 16), ("daba", 16)))
    log = curves.log_line(panel, "log_mta", 4)
    ahead = {each: curves.ratio(panel, "amta", each, 2**9) for each in ("daba", "log_mta", "recalc")}
    shown = "; ".join(f"AMTA by {each} {ratio}" for each, ratio in ahead.items() if ratio.high == ratio.high)
    stored = curves.y("in batches of 4,096", "amta, lmdb") - curves.y("in batches of 4,096", "amta")
    return [
        Claim("Naive grows linearly (figure 6)", f"n to the power of {recalc}", recalc.slope > 0.8),
        Claim("AMTA takes the same for every size", f"n to the power of {amta}", abs(amta.slope) < 0.12),
        Claim("DABA takes the same for every size", f"n to the power of {daba}", abs(daba.slope) < 0.12),
        Claim(
            "Log MTA is a line over log n",
            f"{number(log.slope)} ns a doubling, {log.explained:.0%} of the variance",
            log.slope > 0 and log.explained > 0.8,
        ),
        Claim(
            "AMTA in memory is the fastest at every size from 2^9 elements on",
            shown or "(no points)",
            all(not each.high >= 1 for each in ahead.values()),
            "both call combine 4.0 times a round; AMTA also goes through its levels to find what to combine",
        ),
        Claim(
            "the store adds about 1,000 ns to a round of AMTA at the largest size; as much or less counts, and rounds "
            "come in batches of 4,096 here",
            f"{number(stored)} ns",
            stored <= 1_000,
        ),
    ]


def _evictions(size: Size) -> Iterator[Row]:
    exponent = size.of(23, 18, 6)
    n = 1 << exponent
    counts = [1 << k for k in range(0, exponent, size.of(4, 6, 3))] + [n // 2, n - 1]
    for name in (*TREES, "daba", "recalc"):
        for count in counts:
            times = [_evict_us(_filled(name, n), count, time.thread_time_ns) for _ in range(size.of(2, 2, 1) + 1)][1:]
            yield point("one eviction", name, count, spent_of(times), "us")
    for name in TREES:
        with directory() as path:
            store = sash.open_store(f"lmdb://{path}/store")
            window = sash.aggregator(name, sash.sum(), store=store, name="w")
            fill(window, n)
            window.flush()
            for count in counts:
                again = [sash.aggregator(name, sash.sum(), store=store, name="w") for _ in range(size.of(3, 2, 1) + 1)]
                yield point(
                    "one eviction", f"{name}, lmdb", count, spent_of([_evict_us(w, count) for w in again][1:]), "us"
                )
    yield from _enforced(size, n, counts)


def to_limit(total: Any, old: Any) -> Any:
    """Listing 3: the newest update says how many may stay."""
    return total.n - old.n >= total.limit


def _enforced(size: Size, n: int, counts: Sequence[int]) -> Iterator[Row]:
    """The same evictions, found by a slide policy: an update comes that says how many may stay."""
    panel, repeats = "found by a slide policy", size.of(3, 2, 1) + 1  # the first one compiles
    needed = {"n": sash.count("limit"), "limit": sash.last("limit")}
    policy = sash.policies.as_policy(to_limit, needed)
    filling = np.full(n - 1, 2.0 * n)
    for name in (*TREES, "daba", "recalc"):
        policed = Policed(name, sash.sum("limit"), policy, n - 1)
        policed.pass_over({"limit": filling}, slides=False)()
        filled = policed.states
        for count in dict.fromkeys(counts):
            times = []
            for _ in range(repeats):
                policed.states = copied(filled)
                run = policed.pass_over({"limit": np.array([float(n - count)])})
                before = time.thread_time_ns()
                run()
                times.append((time.thread_time_ns() - before) / 1e3)
            yield point(panel, name, count, spent_of(times[1:]), "us")
    for name in TREES:
        with directory() as path:
            store = sash.open_store(f"lmdb://{path}/store")
            again = partial(sash.aggregator, name, needed, store=store, name="w", dtype={"limit": "f8"})
            window = again()
            for begin in range(0, n - 1, BATCH):
                window.bulk_insert({"limit": filling[begin : begin + BATCH]})
            window.flush()
            for count in dict.fromkeys(counts):
                times = [_enforce_us(again(), policy, float(n - count)) for _ in range(repeats)]
                yield point(panel, f"{name}, lmdb", count, spent_of(times[1:]), "us")


def _enforce_us(window: Any, policy: Any, limit: float) -> float:
    window.insert(limit)
    before = time.perf_counter()
    window.bulk_evict_while(policy)
    window.query()
    return (time.perf_counter() - before) * 1e6


def _filled(name: str, n: int) -> Any:
    window = sash.aggregator(name, sash.sum(), compiled=True)
    window.bulk_insert(np.random.default_rng(1).random(n))
    window.query()
    return window


def _evict_us(window: Any, count: int, clock: Callable[[], int] = time.perf_counter_ns) -> float:
    before = clock()
    window.bulk_evict(count)
    window.query()
    return (clock() - before) / 1e3


def _eviction_claims(rows: Sequence[Row]) -> list[Claim]:
    """As in the paper, of evictions that a policy finds; those of a known count are shown beside them."""
    curves, panel, known = Curves(rows), "found by a slide policy", "one eviction"
    worst = {each: max(curves.y(panel, each, x) for x in curves.xs(panel, each)) for each in curves.series(panel)}
    slopes = {each: curves.slope(panel, each, 2**12) for each in ("amta", "log_mta", "daba")}
    n = curves.xs(panel, "amta")[-1]
    naive = curves.ratio(panel, "recalc", "recalc")
    level = curves.y(panel, "recalc", n) / curves.y(panel, "recalc", 1)
    halfway = max(x for x in curves.xs(known, "amta") if x <= n / 2)
    half = {each: curves.y(known, each, halfway) for each in ("amta", "amta, lmdb")}
    most = {each: max(curves.y(known, each, x) for x in curves.xs(known, each)) for each in half}
    return [
        Claim(
            "DABA grows linearly with what is evicted (figure 7a)",
            f"m to the power of {slopes['daba']}",
            slopes["daba"].slope > 0.8,
        ),
        Claim(
            "Naive takes the same whatever is evicted, within twice",
            f"the last by the first: {number(level)}",
            0.5 < level < 2,
        ),
        Claim(
            "both monoid trees in memory grow as log m at most (figure 7b)",
            f"m to the power of {slopes['amta']} and {slopes['log_mta']}",
            slopes["amta"].slope < 0.3 and slopes["log_mta"].slope < 0.3,
        ),
        Claim(
            "worst in memory: AMTA 455 us, Log MTA 258 us, as much or less",
            f"{number(worst['amta'])} and {number(worst['log_mta'])} us",
            worst["amta"] < 455 and worst["log_mta"] < 258,
        ),
        Claim(
            "worst in a store: about 5 ms, as much or less",
            f"{number(worst['amta, lmdb'])} and {number(worst['log_mta, lmdb'])} us",
            max(worst["amta, lmdb"], worst["log_mta, lmdb"]) <= 5_000,
        ),
        Claim(
            "in a store, 400 times below Naive in memory",
            f"{number(worst['recalc'] / worst['amta, lmdb'])} times below (noise {naive.noise:.0%})",
            worst["recalc"] / worst["amta, lmdb"] > 400,
            ""
            if worst["recalc"] / worst["amta, lmdb"] > 400
            else "recalculation folds a number in a few nanoseconds here; the paper's two seconds are 240 each",
        ),
        Claim(
            "DESIGN: half of 2^23 in under 1 ms in memory, 10 ms in a store",
            f"{number(half['amta'])} and {number(half['amta, lmdb'])} us, of a known count",
            half["amta"] < 1_000 and half["amta, lmdb"] < 10_000,
        ),
        Claim(
            "and any other part of it",
            f"{number(most['amta'])} and {number(most['amta, lmdb'])} us at most, of a known count",
            most["amta"] < 1_000 and most["amta, lmdb"] < 10_000,
        ),
    ]


DAY = 86_400


@lru_cache(maxsize=1)
def readings(n: int) -> tuple[Any, Any]:
    """Memory in use, a reading a second: a day's rise and fall, drift, noise, and processes that come and go.

    Each day has a seed of its own, so that the stream is the same however much of it is taken.
    """
    days = [np.random.default_rng((62_208_000, day)) for day in range(-(-n // DAY))]
    drift = np.cumsum(np.concatenate([each.normal(0, 0.02, DAY) for each in days]))
    bursts = np.concatenate([np.repeat(each.exponential(2, DAY // 600), 600) for each in days])
    noise = np.concatenate([each.normal(0, 0.3, DAY) for each in days])
    seconds = np.arange(n)
    used = 48 + 8 * np.sin(seconds / DAY * 2 * np.pi) + (drift + bursts + noise)[:n]
    return seconds, np.clip(used, 1, 128)


def _operations(window: int) -> dict[str, tuple[Any, Any]]:
    """The six operations of table 2 and their slide policies."""
    most, max_too = sash.policies.at_most(window), sash.policies.since_maximum("x")
    runs = sash.policies.since_longest_run("t", "x")
    return {
        "sum": (sash.sum("x"), most), "mean": (sash.mean("x"), most), "geomean": (sash.geomean("x"), most),
        "std": (sash.std("x"), most), "max": (sash.max("x"), sash.policies.either(most, max_too)),
        "lis": (sash.longest_increasing_run("t", "x"), sash.policies.either(most, runs)),
    }  # fmt: skip


def types_of(aggregate: Any, policy: Any) -> dict[str, str]:
    """The types of the columns that an operation and its policy read, in the order in which they name them."""
    every = [aggregate, *(each for _, each in policy.aggregates)]
    return {name: "i8" if name == "t" else "f8" for each in every for name in each.columns}


class Policed:
    """A window that slides by a policy after every row, compiled: trees search their levels, others ask one by one.

    Algorithms that forget their elements have a queue of them beside, as in the engine; recalculation is its own.
    """

    def __init__(self, algorithm: str, aggregate: Any, policy: Any, n: int) -> None:
        hidden = tuple(each for _, each in policy.aggregates)
        bound = bind(aggregate, types_of(aggregate, policy), compiled=True, hidden=hidden)
        self.jit, outer = (compiled, entry) if bound.is_compiled else (interpreted, interpreted)
        own, kept = find(algorithm), find(algorithm if find(algorithm).levels else "recalc")
        if bound.is_compiled:
            cells = product([compiled_cells(each.narrow or each) for each in bound.monoids], compiled)
        else:
            cells = interpreted_product(own, bound.monoids, {})
        self.cells, capacity = cells, 1 << max(3, n.bit_length())  # for one more, before the policy is asked
        fifos = [each.build(cells, self.jit) for each in (own, kept)]
        self.states = tuple(new_state(Built(each, cells, fifo, bound.is_compiled), capacity)
                            for each, fifo in zip((own, kept), fifos, strict=True))  # fmt: skip
        visible = (None,) * (len(bound.monoids) - len(hidden)) + tuple(name for name, _ in policy.aggregates)
        assert kept.levels is not None
        search = searcher(
            kept.levels(self.jit), cells, list(zip(visible, bound.monoids, strict=True)), policy, self.jit
        )
        self._drive = outer(_policed(fifos, search.find, cells.lower, is_apart=own is not kept))
        self.bound = bound
        self.scratch, self.answers = cells.allocate(N_SCRATCH), cells.results(N_ROWS)

    def pass_over(self, columns: dict[str, Any], *, slides: bool = True) -> Callable[[], None]:
        """Prepare to take some rows; unless it only fills, it slides and answers after each."""
        given, n = self._given(columns), len(next(iter(columns.values())))
        results = self.cells.results(n if slides else 0)
        return lambda: self._drive(*self.states, given, n if slides else -n, self.scratch, self.answers, results)

    def _given(self, columns: dict[str, Any]) -> Any:
        names = [[self.bound.columns[place] for place in reads] for reads in self.bound.reads]
        if not self.bound.is_compiled:
            columns = {name: column.tolist() for name, column in columns.items()}
        return nested([tuple(columns[name] for name in each) for each in names])


def _policed(fifos: Sequence[Any], find_staying: Any, lower: Any, *, is_apart: bool) -> Any:
    insert, evict, query, evict_to = fifos[0].insert, fifos[0].evict, fifos[0].query, fifos[0].evict_to
    keep, drop = fifos[1].insert, fifos[1].evict
    leaps = evict_to is not None
    evict_to = evict_to if leaps else evict

    def pass_over(s: State, kept: State, columns: Any, n: int, scratch: Any, answers: Any, results: Any) -> None:
        for i in range(abs(n)):  # negative: rows that only fill
            insert(s, columns, i)
            if is_apart:
                keep(kept, columns, i)
            if n < 0:
                continue
            total = query(s)
            stays = find_staying(kept if is_apart else s, s.pool, total, scratch, answers)
            if leaps and stays > s.at[OLDEST] + 1:
                evict_to(s, stays)
            while s.at[OLDEST] < stays:
                evict(s)
            if is_apart:
                while kept.at[OLDEST] < stays:
                    drop(kept)
            lower(results, i, s.pool, query(s))

    return pass_over


N_SLID = {"lis": 2**17}  # rows that a window slides over, if fewer: a row of it takes microseconds


def _analytics(size: Size) -> Iterator[Row]:
    """Each window is filled, then slides over more of the stream; recalculation over little of it, as it is slow."""
    window, warm = 1 << size.of(20, 12, 4), 8
    seconds, used = readings(window + warm + size.of(2**19, 2**13, 2**5))

    def part(begin: int, end: int) -> dict[str, Any]:
        return {"t": seconds[begin:end], "x": used[begin:end]}

    operations = _operations(window)
    for name in size.of(tuple(operations), ("sum",), tuple(operations)):  # others take a minute each to compile
        aggregate, policy = operations[name]
        row, noise = {"operation": name}, 0.0
        for algorithm in ("daba", "amta", "log_mta", "recalc"):
            policed = Policed(algorithm, aggregate, policy, window)
            policed.pass_over(part(0, window), slides=False)()
            policed.pass_over(part(window, window + warm))()
            n = size.of(16, 16, 8) if algorithm == "recalc" else size.of(N_SLID.get(name, 2**19), 2**13, 2**5)
            spent = _again(policed, part(window + warm, window + warm + n), size.of(3, 2, 1))
            row[algorithm], noise = round(spent.best, 1), max(noise, spent.spread)
        row["noise"] = round(noise, 3)
        row |= _event_by_event(size, aggregate, name, part)
        yield row | {
            "the paper: naive, LMTA, DABA, AMTA": ", ".join(number(TABLE_2[name][k]) for k in (0, 2, 3, 5)),
            "in a store: LMTA, AMTA": ", ".join(number(TABLE_2[name][k]) for k in (1, 4)),
        }


def _again(policed: Policed, columns: dict[str, Any], repeats: int) -> Spent:
    """Nanoseconds a row of the same rows from the same window, several times."""
    begun, times, n = policed.states, [], len(columns["x"])
    for _ in range(repeats):
        policed.states = copied(begun)
        run = policed.pass_over(columns)
        before = time.thread_time_ns()
        run()
        times.append((time.thread_time_ns() - before) / n)
    return spent_of(times)


def _event_by_event(size: Size, aggregate: Any, name: str, part: Any) -> Row:
    """The same from Python, in memory and in a store, at a smaller window: nanoseconds an event, by turns."""
    window, count, warm = size.of(2**14, 2**10, 2**3), size.of(1_000, 200, 8), size.of(256, 64, 4)
    n_turns = size.of(7, 3, 1)
    policy, rows = _operations(window)[name][1], part(0, window + warm + (n_turns + 1) * count)
    types = types_of(aggregate, policy)
    events = list(zip(*(rows[name].tolist() for name in types), strict=True))
    with directory() as path:
        windows = {}
        for tree in TREES:
            for label, options in (
                (f"{tree}, memory, from Python", {"compiled": True}),
                (f"{tree}, lmdb, from Python", {"store": f"lmdb://{path}/{tree}", "name": "w"}),
            ):
                slides = sash.aggregator(tree, aggregate, policy=policy, dtype=types, **options)
                for event in events[: window + warm]:  # what slides is compiled on the way
                    slides.insert(*event)
                slides.query()
                windows[label] = slides
        ways = {label: _turn_of(slides, iter(events[window + warm :]), count) for label, slides in windows.items()}
        turns = turns_of(*ways.values(), n_turns=n_turns, clock=time.perf_counter_ns) / count
        for label, slides in windows.items():
            if "lmdb" in label:
                slides.close()
    return _beside_memory(dict(zip(ways, turns.T, strict=True)))


def _beside_memory(turns: dict[str, Any]) -> Row:
    """Means over turns, and what a store takes by what memory does: the middle turn, and how far others are from it.

    Turns are of different events, some of which evict many, so that times differ by what was to be done; both windows
    do the same in the same turn.
    """
    row, noise = {label: round(float(each.mean())) for label, each in turns.items()}, 0.0
    for tree in TREES:
        ratios = turns[f"{tree}, lmdb, from Python"] / turns[f"{tree}, memory, from Python"]
        middle = float(np.median(ratios))
        row[f"{tree}, {STORE_BY_MEMORY}"] = round(middle, 2)
        noise = max(noise, float(np.median(np.abs(ratios / middle - 1))))
    return row | {"noise from Python": round(noise, 3)}


def _turn_of(slides: Any, events: Iterator[Any], count: int) -> Callable[[], Callable[[], None]]:
    """Prepare the next so many events, each followed by a query."""

    def prepare() -> Callable[[], None]:
        following = list(islice(events, count))

        def turn() -> None:
            for event in following:
                slides.insert(*event)
                slides.query()

        return turn

    return prepare


def _analytics_claims(rows: Sequence[Row]) -> list[Claim]:
    claims = []
    for row in rows:
        name, naive, amta, daba = row["operation"], row["recalc"], row["amta"], row["daba"]
        shown = ", ".join(f"{each} {number(row[each])}" for each in ("recalc", "log_mta", "daba", "amta"))
        shown += f" ns (noise {row['noise']:.0%})"
        claims.append(
            Claim(
                f"{name}: AMTA in memory is the fastest of all (table 2)",
                shown,
                amta <= min(naive, daba, row["log_mta"]),
            )
        )
        if name in ("max", "lis"):
            said = TABLE_2[name][3] / TABLE_2[name][5]
            claims.append(
                Claim(
                    f"{name}: bulk eviction puts AMTA {said:.2f} times ahead of DABA; a fifth less counts",
                    f"{number(daba / amta)} times (noise {row['noise']:.0%})",
                    daba / amta > 0.8 * said,
                )
            )
        for tree, called, places in (("amta", "AMTA", (4, 5)), ("log_mta", "Log MTA", (1, 2))):
            more = row[f"{tree}, {STORE_BY_MEMORY}"]
            said = TABLE_2[name][places[0]] / TABLE_2[name][places[1]]
            claims.append(
                Claim(
                    f"{name}: {called} in a store takes {said:.2f} times as long as in memory; a fifth more counts",
                    f"{number(more)} times (noise {row['noise from Python']:.0%})",
                    more < 1.2 * said,
                    STEP_BY_STEP,
                )
            )
    return claims


def _memory(size: Size) -> Iterator[Row]:
    """Insert batches until there is no more memory, or the goal is reached; limits are beyond what a process has.

    What a window asks for does not depend on time, so that repeats reach the same size: there is no noise to show.
    """
    goal = size.of(2**22, 2**20, 2**12)
    names = ("amta, lmdb", "amta", "log_mta, lmdb", "log_mta", "daba", "recalc")
    for mb in size.of((2, 4, 8, 16, 32, 64, 128, 256, 512), (8, 32), (64,)):
        for name in names[: size.of(6, 6, 2)]:
            with directory() as path:
                reached = in_child(_reach, name, goal, mb, path) or 0
            yield point(f"goal {goal:,}", name, mb, reached, "elements")


def _reach(tell: Callable[[int], None], name: str, goal: int, mb: int, path: str) -> None:
    algorithm, _, where = name.partition(", ")
    options = {"store": f"lmdb://{path}/store", "name": "w"} if where else {"compiled": True}
    warm = sash.aggregator(algorithm, sash.sum(), **({**options, "name": "warm"} if where else options))
    warm.bulk_insert(values())  # machine code, and the threads of a store
    warm.query()
    if where:
        warm.close()
    window = sash.aggregator(algorithm, sash.sum(), **options)
    limit_data(mb)
    try:
        while len(window) < goal:
            window.bulk_insert(values())
            tell(len(window))
    except (MemoryError, sash.SashError):
        return


def _memory_claims(rows: Sequence[Row]) -> list[Claim]:
    curves = Curves(rows)
    panel = curves.panels[0]
    goal = int(panel.split()[1].replace(",", ""))
    needed = {each: next((x for x in curves.xs(panel, each) if curves.y(panel, each, x) > 0.999 * goal), None)
              for each in curves.series(panel)}  # fmt: skip
    shown = ", ".join(f"{each} {'more' if mb is None else mb} MB" for each, mb in needed.items())
    stored = max(mb or float("inf") for each, mb in needed.items() if "lmdb" in each)
    others = min(mb or float("inf") for each, mb in needed.items() if each in ("amta", "log_mta", "daba"))
    return [
        Claim(
            "trees in a store reach the goal with the least memory (figure 8)",
            f"the goal is reached with: {shown}",
            stored < min(others, needed.get("recalc") or float("inf")),
        ),
        Claim(
            "the other trees and DABA need 64 times as much",
            f"{number(others / stored)} times; the goal is reached with: {shown}",
            others / stored >= 64,
            "an element is a number of 8 bytes here, and objects of Java of about 1 kB in all there (32 GB for 2^25), "
            "so that what a store takes whatever the window counts for more",
        ),
        Claim(
            "naive needs less than the other forms in memory", shown, (needed.get("recalc") or float("inf")) <= others
        ),
    ]


def _dimensions(size: Size) -> Iterator[Row]:
    rows = 2 ** size.of(15, 12, 3)
    ks = size.of((1, 2, 5, 10, 20, 50), (1, 2, 5), (1, 2))
    alone: Any = None
    for k in ks:
        together = [sash.count(), *[sash.sum()] * k]
        names = {f"count{i}": each for i, each in enumerate(together)}
        found = round_ns(size, names, rows, ("amta",))["amta"]
        alone = alone or found
        yield point("one window of k dimensions", "together", k, found)
        yield point("one window of k dimensions", "apart", k, (k * alone.best, alone.spread))
    alone = None
    for k in ks[: size.of(4, 3, 2)]:  # more take minutes to compile
        found = _stored_dimensions(size, rows, k)
        alone = alone or found
        yield point("in a store, event by event", "together", k, found)
        yield point("in a store, event by event", "apart", k, (k * alone.best, alone.spread))


def _stored_dimensions(size: Size, rows: int, k: int) -> Spent:
    """A round of a window of k dimensions in a store, as events come from Python."""
    aggregates = {f"count{i}": sash.sum("x") for i in range(k)} | {"count": sash.count()}
    count, n_turns = size.of(1_000, 200, 8), size.of(5, 3, 1)
    with directory() as path:
        window = sash.aggregator("amta", aggregates, store=f"lmdb://{path}/store", name="w")
        fill_x = np.random.default_rng(1).random(rows)
        window.bulk_insert({"x": fill_x})

        def turn() -> None:
            for value in fill_x[:count].tolist():
                window.insert(value)
                window.evict()
                window.query()

        found = in_turns({"": lambda: turn}, min(count, rows), n_turns=n_turns, clock=time.perf_counter_ns)[""]
        window.close()
    return found


def _dimension_claims(rows: Sequence[Row]) -> list[Claim]:
    curves, claims = Curves(rows), []
    for panel in curves.panels:
        xs = curves.xs(panel, "together")
        where = "in memory" if panel.startswith("one") else "in a store"
        fit = line(xs, [curves.y(panel, "together", x) for x in xs])
        share, most = fit.slope / curves.y(panel, "together", 1), curves.ratio(panel, "apart", "together", 2)
        claims += [
            Claim(
                f"{where}: latency grows linearly with k (figure 9)",
                f"{number(fit.slope)} ns each, {fit.explained:.0%} of the variance",
                fit.explained > 0.9,
            ),
            Claim(
                f"{where}: one more dimension costs 0.084 of a window of its own (411 of 4,895 ns); at most twice that",
                f"{number(share)}: {number(fit.slope)} of {number(curves.y(panel, 'together', 1))} ns",
                share <= 2 * 0.084,
                ONE_BY_ONE if where == "in a store" else SHARED_LITTLE,
            ),
            Claim(
                f"{where}: windows apart take longer at every k, more so for larger k",
                f"apart by together {most}",
                most.low > 1 and curves.y(panel, "apart") / curves.y(panel, "together") >= most.middle,
                ONE_BY_ONE if where == "in a store" else SHARED_LITTLE,
            ),
        ]
    return claims


EXPERIMENTS = (
    Experiment(
        "mta-exp1-constant-size", "A round at constant sizes", _constant, PAPER, "experiment 1, figure 6",
        "Naive lowest at first, then linear; AMTA and DABA flat, AMTA lowest from 2^9; Log MTA a line over log n; the "
        "store adds about a microsecond.", _constant_claims, Axes("window"),
    ),
    Experiment(
        "mta-exp2-bulk-eviction", "One eviction of many out of 2^23", _evictions, PAPER, "experiment 2, figure 7",
        "Naive constant and high, DABA linear and worse than Naive from 2^20; the trees logarithmic, below half a "
        "millisecond in memory and about 5 in a store.", _eviction_claims, Axes("evicted", log_y=True),
    ),
    Experiment(
        "mta-exp3-operations", "Six operations with their slide policies", _analytics, PAPER, "experiment 3, table 2",
        "AMTA in memory is the fastest for all six; for max and the longest run, whose policies evict in bulk, by 2 "
        "and 1.5 times over DABA; in a store it takes 1.1 to 1.6 times as long.", _analytics_claims,
    ),
    Experiment(
        "mta-exp4-memory", "Window size reached within a limit of memory", _memory, PAPER, "experiment 4, figure 8",
        "Trees in a store reach the goal of 2^25 in 512 MB, Naive in 16 GB, all others in 32 GB.", _memory_claims,
        Axes("MB"),
    ),
    Experiment(
        "mta-exp5-dimensions", "Many dimensions in one window", _dimensions, PAPER, "experiment 5, figure 9",
        "A line of 411 ns for each dimension over 4,158 shared ones, far below k windows.", _dimension_claims,
        Axes("dimensions", log_x=False),
    ),
)  # fmt: skip
