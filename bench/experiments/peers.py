"""What a user would otherwise use, on the same data: whole columns, and single events.

A peer gives its answers first; one that gives others than Sash is reported and not timed. Tables of many keys are the
suite `tables`; Spark's own windows are in `spark` and `stream`, other engines of streams in `peers-engines`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np

import sash
from bench.experiments.contract import Axes, Claim, Experiment, Row, Size, point
from bench.experiments.fitting import Curves
from bench.fifo_rounds import SEED
from bench.measuring import in_turns
from bench.peers import AGGREGATES, peers

PAPER = "DESIGN.md"
LONG_NS = 2_000_000_000
EVENTS = ("max", "sum", "mean", "var")


def _columns(size: Size) -> Iterator[Row]:
    values = np.random.default_rng(SEED).random(size.of(4_000_000, 300_000, 500))
    for name in AGGREGATES[: size.of(6, 3, 1)]:
        for rows in size.of((16, 1024, 2**14, 2**17, 2**20), (16, 1024, 2**14), (4, 16)):
            yield from _beside_peers(size, name, rows, values)


def _beside_peers(size: Size, name: str, rows: int, values: Any) -> Iterator[Row]:
    aggregate = getattr(sash, name)()
    answers, n = sash.slide(values, aggregate, rows=rows), len(values)
    ways: dict[str, Any] = {"sash": lambda: lambda: sash.slide(values, aggregate, rows=rows)}
    for peer, run in peers()[name].items():
        before = time.perf_counter_ns()
        found = run(values, rows)
        taken = time.perf_counter_ns() - before
        if not _agrees(peer, name, found, answers):
            yield point(name, f"{peer}, answers differ", rows, 0.0)
        elif taken > LONG_NS:  # once is enough
            yield point(name, peer, rows, taken / n)
        else:
            ways[peer] = lambda run=run: lambda: run(values, rows)
    for label, spent in in_turns(ways, n, n_turns=size.of(5, 2, 1), clock=time.perf_counter_ns).items():
        yield point(name, label, rows, spent)


def _agrees(peer: str, name: str, found: Any, answers: Any) -> bool:
    if peer == "bottleneck" and name == "argmax":  # it counts back from the row
        found = np.arange(len(found)) - found
    return np.allclose(found, answers, rtol=1e-6, atol=1e-9, equal_nan=True)


def _ahead_claims(rows: Sequence[Row]) -> list[Claim]:
    curves, claims = Curves(rows), []
    for name in curves.panels:
        for peer in (each for each in curves.series(name) if each != "sash"):
            if "differ" in peer:
                claims.append(Claim(f"{name}: {peer.partition(',')[0]} gives the same answers", "other answers", False))
                continue
            found = curves.ratio(name, peer, "sash")
            claims.append(Claim(f"{name}: faster than {peer} at every window", f"{peer} takes {found}", found.low > 1))
    return claims


def _events(size: Size) -> Iterator[Row]:
    """Single events from Python, each answered; ours interpreted, as they are by default."""
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
            runs = {each: (lambda make=make: lambda: _answers(make(), values)) for each, make in ways.items()}
            for label, spent in in_turns(runs, len(values), n_turns=size.of(5, 2, 1)).items():
                yield point(name, label, rows, spent)


Step = Callable[[float], Any]


def _answers(step: Step, values: Sequence[float]) -> list[Any]:
    return [step(value) for value in values]


def _sash(name: str, rows: int) -> Step:
    window = sash.aggregator("slick_deque" if name == "max" else "two_stacks_lite", getattr(sash, name)())

    def step(value: float) -> Any:
        if len(window) == rows:
            window.evict()
        window.insert(value)
        answer = window.query()
        return 0.0 if answer is None else answer

    return step


def _river(name: str, rows: int) -> Step:
    from river import stats, utils

    if name == "max":
        window: Any = stats.RollingMax(rows)
    else:
        window = utils.Rolling({"sum": stats.Sum, "mean": stats.Mean, "var": stats.Var}[name](), rows)

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
        PAPER,
        "what it must reach",
        "river subtracts what leaves, which drifts; ours combine only",
        _ahead_claims,
        Axes("window"),
    ),
)
