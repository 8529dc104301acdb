"""Windows over tables: nanoseconds a row by the number of keys, and Sash beside pandas, Polars and DuckDB.

Two parts. The engine alone: count, sum and max together over sorted columns of 1, 1,000 and 10^6 keys, beside a copy of
the same columns in and out. Whole tables: one declaration, `spec(df)` on a Polars table by time with 1 and 1,000
keys, beside what a user would otherwise write; sorting, grouping and putting answers back are in the time of all of
them. A peer's number is its time by ours: above 1, we are ahead.

A peer that would take more than LIMIT_S seconds is not waited for: its time is foretold from parts of the rows, and
`over 10 s` stands for it.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import sash
from bench.bars import at_least, of
from bench.experiments.contract import Claim, Row
from bench.measuring import best_ns
from sash.engine.columns import Column
from sash.engine.running import Batch, answer_whole
from sash.windows.bounds import Bounds

NAME = "tables"
TOGETHER = {"n": sash.count(), "sum": sash.sum("x"), "max": sash.max("x")}
YEAR_MS = 365 * 86_400_000
SPANS = {"1 hour": "1h", "30 days": "30d"}
LONG = {"1h": "1 HOUR", "30d": "30 DAY"}
KEYS = (1, 1_000)
LIMIT_S = 10
ENOUGH_S = 0.5  # of running a peer over and over for its best time
AGGREGATES = {
    "sum": sash.sum("x"),
    "max": sash.max("x"),
    "std": sash.std("x"),
    "argmax": sash.argmax("x", "i"),
    "median": sash.median("x"),
}


def run(*, quick: bool) -> Iterator[dict[str, Any]]:
    """The engine by keys, then whole tables by window and aggregate."""
    yield from _by_keys(1_000_000 if quick else 10_000_000)
    for n_keys in KEYS:
        yield from _beside_peers(100_000 if quick else 1_000_000, n_keys)


def claims(rows: Sequence[Row]) -> list[Claim]:
    """Ahead of each peer; what one cannot say, or not in time, is no defeat."""
    found = []
    for peer in ("pandas", "polars", "duckdb"):
        beside = [row for row in rows if not str(row.get(peer, "cannot")).startswith(("cannot", "over"))]
        said = f"a declaration over a table is faster than {peer}, whatever keys, windows and aggregates"
        found.append(at_least(said, of(beside, peer, "what", "keys", "window"), 1))
    return found


# --- the engine ------------------------------------------------------------------------------------


def _by_keys(n: int) -> Iterator[dict[str, Any]]:
    generator = np.random.default_rng(20261116)
    x, answers = generator.random(n), [np.empty(n) for _ in TOGETHER]
    for n_keys in (1, 1_000, 1_000_000):
        keys = np.sort(generator.integers(0, n_keys, n))
        begins = np.append(True, keys[1:] != keys[:-1])
        order = np.sort(keys * YEAR_MS + generator.integers(0, YEAR_MS, n)) - keys * YEAR_MS
        batch = Batch(begins, order, {"x": Column(x, None)})
        copy_ns = best_ns(lambda batch=batch: _copied(batch, answers), n)
        mean_gap = YEAR_MS * n_keys // n
        for what, bounds in (
            ("rows 100", Bounds(rows=100)),
            ("about 10 rows", Bounds(span=10 * mean_gap)),
            ("about 1,000 rows", Bounds(span=1_000 * mean_gap)),
            ("everything", Bounds()),
        ):
            ns = best_ns(lambda bounds=bounds, batch=batch: answer_whole(bounds, TOGETHER, batch), n)
            yield {
                "what": what, "keys": n_keys, "sash_ns": round(ns, 1), "copy_ns": round(copy_ns, 1),
                "beyond_ns": round(ns - copy_ns, 1),
            }  # fmt: skip


def _copied(batch: Batch, answers: list[Any]) -> None:
    """Read every column and write every answer, into memory as fresh as that of answers."""
    np.copy(batch.begins), np.copy(batch.order)
    for _ in answers:
        np.copy(batch.columns["x"].values)


# --- whole tables ----------------------------------------------------------------------------------


Ask = Callable[[str, Any], Any]  # (aggregate, length) -> answers in the order of the table; None: it cannot
Peer = Callable[[dict[str, Any]], Ask]


def _beside_peers(n: int, n_keys: int) -> Iterator[dict[str, Any]]:
    import polars as pl

    columns = _table(n, n_keys)
    frame, peers = pl.DataFrame(columns), _peers()
    window = sash.window(by="key", order_by="ts")
    windows: list[tuple[str, Any, Any]] = [(span, short, window.range(span)) for span, short in SPANS.items()]
    windows += [(f"{rows:,} rows", rows, window.rows(rows)) for rows in (100, 100_000)]
    for shown, length, declared in windows:
        for name, aggregate in AGGREGATES.items():
            spec = declared.agg(answer=aggregate)
            answers = spec(frame)["answer"].to_numpy()
            sash_ns = best_ns(lambda spec=spec: spec(frame), n, repeats=5)
            row: dict[str, Any] = {"what": name, "keys": n_keys, "window": shown, "sash_ns": round(sash_ns, 1)}
            for peer, make in peers.items():
                row[peer] = _ratio(make, columns, (name, length), answers, sash_ns)
            yield row


def _ratio(make: Peer, columns: dict[str, Any], case: tuple[str, Any], answers: Any, sash_ns: float) -> Any:
    """The time of a peer by ours, or why there is none."""
    n, before = len(answers), float("inf")
    for part in (64, 16, 4):  # time grows with rows at least, and with the square of them at most
        taken, *_ = _first_run(make, columns, n // part, case)
        growth = taken / max(before, 0.01) if part == 4 else 1.0
        if taken * max(part, growth) > LIMIT_S:
            return f"over {LIMIT_S} s"
        if taken * part**2 < LIMIT_S:
            break
        before = taken
    shortest, found, ask = _first_run(make, columns, n, case)
    if found is None:
        return "cannot"
    if not np.allclose(found, answers, rtol=1e-6, atol=1e-9, equal_nan=True):
        return "differs"
    spent, n_runs = shortest, 1
    while spent < ENOUGH_S and n_runs < 5:
        taken, _ = _timed(ask, case)
        shortest, spent, n_runs = min(shortest, taken), spent + taken, n_runs + 1
    return round(shortest / n * 1e9 / sash_ns, 2)


def _first_run(make: Peer, columns: dict[str, Any], n: int, case: tuple[str, Any]) -> tuple[float, Any, Ask]:
    """Let a peer answer over the first n rows: how long it took, what it found, and it."""
    ask = make({name: column[:n] for name, column in columns.items()})
    return *_timed(ask, case), ask


def _timed(ask: Ask, case: tuple[str, Any]) -> tuple[float, Any]:
    gc.collect()
    before = time.perf_counter()
    found = ask(*case)
    return time.perf_counter() - before, found


def _table(n: int, n_keys: int) -> dict[str, Any]:
    """Rows sorted by time; no key has two rows at the same time, as peers differ in what they make of those."""
    generator = np.random.default_rng(7)
    ts = np.sort(generator.choice(YEAR_MS, n, replace=False)) * 1000
    return {
        "key": generator.integers(0, n_keys, n),
        "ts": (np.datetime64("2018-01-01", "us") + ts.astype("m8[us]")),
        "x": generator.random(n),
        "i": np.arange(n),
    }


def _peers() -> dict[str, Peer]:
    """The peers that are installed."""
    made: dict[str, Peer] = {}
    for name, make in (("pandas", _pandas), ("polars", _polars), ("duckdb", _duckdb)):
        try:
            make({"key": np.zeros(1, np.int64), "ts": np.zeros(1, "M8[us]"), "x": np.zeros(1), "i": np.zeros(1)})
        except ImportError:
            continue
        made[name] = make
    return made


def _pandas(columns: dict[str, Any]) -> Ask:
    import pandas as pd

    table = pd.DataFrame(columns)

    def ask(name: str, length: Any) -> Any:
        if name == "argmax":
            return None
        if isinstance(length, int):
            rolling = table.groupby("key")["x"].rolling(length, min_periods=1)
        else:
            rolling = table.groupby("key").rolling(length, on="ts", closed="both", min_periods=1)["x"]
        found = getattr(rolling, name)()
        if isinstance(length, int):
            return found.droplevel(0).sort_index().to_numpy()
        order = np.argsort(table["key"].to_numpy(), kind="stable")  # of the answers: key by key
        answers = np.empty(len(table))
        answers[order] = found.to_numpy()
        return answers

    return ask


def _polars(columns: dict[str, Any]) -> Ask:
    import polars as pl

    frame, x = pl.DataFrame(columns), pl.col("x")

    def ask(name: str, length: Any) -> Any:
        if isinstance(length, int):
            if name == "argmax":
                return None
            rolled = getattr(x, f"rolling_{name}")(length, min_samples=1).over("key")
            return frame.select(rolled).to_series().to_numpy()
        if name == "argmax":
            answer = pl.col("i").get(x.arg_max()).rolling(index_column="ts", period=length, closed="both").over("key")
        else:
            answer = getattr(x, f"rolling_{name}_by")("ts", window_size=length, closed="both").over("key")
        return frame.select(answer).to_series().to_numpy()

    return ask


def _duckdb(columns: dict[str, Any]) -> Ask:
    import duckdb
    import polars as pl

    functions = {"sum": "sum(x)", "max": "max(x)", "std": "stddev_samp(x)", "argmax": "arg_max(i, x)"}
    functions["median"] = "median(x)"
    connection = duckdb.connect()
    connection.register("rows", pl.DataFrame(columns).to_arrow())

    def ask(name: str, length: Any) -> Any:
        preceding = f"ROWS {length - 1}" if isinstance(length, int) else f"RANGE INTERVAL {LONG[length]}"
        unit, bound = preceding.split(maxsplit=1)
        over = f"(PARTITION BY key ORDER BY ts {unit} BETWEEN {bound} PRECEDING AND CURRENT ROW)"
        query = f"SELECT i, {functions[name]} OVER {over} AS answer FROM rows ORDER BY i"
        return connection.execute(query).fetchnumpy()["answer"]

    return ask
