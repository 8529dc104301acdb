"""What a user would otherwise use, on the same data: whole columns, and single events.

A peer gives its answers first; one that gives others than Sash is reported and not timed. One that takes seconds for
them is timed then and once more, or only then, the others by turns with Sash. Tables of many keys are the suite
`tables`; Spark's own windows are in `spark` and `stream`, other engines of streams in `peers-engines`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

import sash
from bench.experiments.contract import Axes, Claim, Experiment, Row, Size, point
from bench.experiments.fitting import Curves, number
from bench.fifo_rounds import SEED
from bench.measuring import Way, in_turns, spent_of
from bench.peers import AGGREGATES, Table, agrees, peers

PAPER = "DESIGN.md"
NO_BAR = ("Peers", "one of the list; DESIGN.md has no bar for it")
SHORT_NS, LONG_NS, VERY_LONG_NS = 250_000_000, 2_000_000_000, 5_000_000_000
EVENTS = ("max", "sum", "mean", "var")
CALLS = "the four calls alone"
SUBTRACTS = "it adds what comes and subtracts what leaves, which drifts; ours only combines, up to five times a row"


def _columns(size: Size) -> Iterator[Row]:
    values = np.random.default_rng(SEED).random(size.of(4_000_000, 300_000, 500))
    table = peers(values)
    for name in AGGREGATES[: size.of(6, 3, 1)]:
        for rows in size.of((16, 1024, 2**14, 2**17, 2**20), (16, 1024, 2**14), (4, 16)):
            yield from _beside_peers(size, name, rows, values, table)


def _beside_peers(size: Size, name: str, rows: int, values: Any, table: Table) -> Iterator[Row]:
    aggregate = getattr(sash, name)()
    answers, n = sash.slide(values, aggregate, rows=rows), len(values)
    ways: dict[str, Any] = {"sash": _warmed(lambda: sash.slide(values, aggregate, rows=rows))}
    for peer, run in table[name].items():
        taken, found = _taken_ns(run, rows)
        if not agrees(peer, name, found, answers):
            yield point(name, f"{peer}, answers differ", rows, 0.0)
        elif taken > LONG_NS:
            times = [taken] if taken > VERY_LONG_NS else [taken, _taken_ns(run, rows)[0]]
            yield point(name, peer, rows, spent_of(np.array(times) / n))
        elif taken > SHORT_NS:
            ways[peer] = lambda run=run: lambda: run(rows)
        else:
            ways[peer] = _warmed(lambda run=run: run(rows))
    for label, spent in in_turns(ways, n, n_turns=size.of(5, 2, 1), clock=time.perf_counter_ns).items():
        yield point(name, label, rows, spent)


def _warmed(run: Callable[[], Any]) -> Way:
    """A way that is run once before it is timed.

    Else it pays for what the peer before it has left behind: threads that still run, memory handed back, cold caches.
    """

    def prepared() -> Callable[[], Any]:
        run()
        return run

    return prepared


def _taken_ns(run: Callable[[int], Any], rows: int) -> tuple[int, Any]:
    before = time.perf_counter_ns()
    found = run(rows)
    return time.perf_counter_ns() - before, found


def _ahead_claims(rows: Sequence[Row]) -> list[Claim]:
    curves, claims = Curves(rows), []
    for name in curves.panels:
        for peer in (each for each in curves.series(name) if each not in ("sash", CALLS)):
            if "differ" in peer:
                claims.append(Claim(f"{name}: {peer.partition(',')[0]} gives the same answers", "other answers", False))
                continue
            found = curves.ratio(name, peer, "sash")
            claims.append(
                Claim(
                    f"{name}: faster than {peer} at every window",
                    f"{peer} takes {found}",
                    found.low > 1,
                    _why(curves, name, peer),
                )
            )
    return claims


def _why(curves: Curves, name: str, peer: str) -> str:
    if peer == "river":
        does = "it keeps a sorted list, which grows dearer with the window" if name == "max" else SUBTRACTS
        calls = f"our four calls for an event take {number(curves.y(name, CALLS))} ns where they do nothing"
        return f"{does}; {calls}"
    return SUBTRACTS if peer == "bottleneck" and name in ("sum", "mean", "std") else ""


def _events(size: Size) -> Iterator[Row]:
    """Single events from Python, each answered."""
    if find_spec("river") is None:
        return
    values = np.random.default_rng(SEED).random(size.of(20_000, 3_000, 40)).tolist()
    for name in EVENTS[: size.of(4, 4, 1)]:
        for rows in size.of((16, 1024, 2**14), (16, 256), (4,)):
            ways = {
                "sash": lambda name=name, rows=rows: _sash(name, rows),
                "river": lambda name=name, rows=rows: _river(name, rows),
            }
            first, second = (_answers(make(), values) for make in ways.values())
            if not np.allclose(first, second, rtol=1e-6, atol=1e-9):
                yield point(name, "river, answers differ", rows, 0.0)
                continue
            ways[CALLS] = lambda rows=rows: _round(Nothing(rows), rows)
            runs = {each: (lambda make=make: lambda: _answers(make(), values)) for each, make in ways.items()}
            for label, spent in in_turns(runs, len(values), n_turns=size.of(5, 2, 1)).items():
                yield point(name, label, rows, spent)


Step = Callable[[float], Any]


def _answers(step: Step, values: Sequence[float]) -> list[Any]:
    return [step(value) for value in values]


def _sash(name: str, rows: int) -> Step:
    algorithm = "slick_deque" if name == "max" else "two_stacks_lite"
    return _round(sash.aggregator(algorithm, getattr(sash, name)(), compiled=True), rows)


def _round(window: Any, rows: int) -> Step:
    def step(value: float) -> Any:
        if len(window) == rows:
            window.evict()
        window.insert(value)
        answer = window.query()
        return 0.0 if answer is None else answer

    return step


class Nothing:
    """A window that is always full and does nothing."""

    def __init__(self, rows: int) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return self.rows

    def insert(self, value: float) -> None:
        pass

    def evict(self) -> None:
        pass

    def query(self) -> None:
        pass


def _river(name: str, rows: int) -> Step:
    from river import stats, utils

    if name == "max":
        window: Any = stats.RollingMax(rows)
    else:
        window = utils.Rolling({"sum": stats.Sum, "mean": stats.Mean, "var": stats.Var}[name], window_size=rows)

    def step(value: float) -> Any:
        window.update(value)
        return window.get()

    return step


EXPERIMENTS = (
    Experiment(
        "peers-columns",
        "Whole columns, beside bottleneck, pandas, Polars and DuckDB",
        _columns,
        PAPER,
        "what it must reach",
        "faster than each, at every window from 16 to 10^6",
        _ahead_claims,
        Axes("window", log_y=True),
    ),
    Experiment(
        "peers-events",
        "Single events, beside river",
        _events,
        *NO_BAR,
        "river subtracts what leaves, which drifts; ours combine only",
        _ahead_claims,
        Axes("window"),
    ),
)
