"""Fixed windows over a column of 10^7 float64, beside a copy of the array; a user's aggregate beside the one built in.

Bottleneck, pandas, Polars and DuckDB on the same windows are peers-columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import sash
from bench.bars import at_most, noise_of, of
from bench.experiments.contract import Claim, Row
from bench.measuring import best_ns, timed

NAME = "slide"
WINDOWS = (16, 1024, 2**17, 2**20)
TO_A_COPY = ("max", "sum", "geomean")  # that the bar is for, in windows from 2^10 on
LOGARITHMS = "a logarithm and an exponential of each, by NumPy"


@sash.aggregate(state="f8")
class UsersMax:
    """A user's copy of the built-in max."""

    identity = -np.inf

    def lift(x):
        return x

    def combine(older, newer):
        return newer if newer > older or newer != newer else older  # noqa: PLR0124 - NaN


def run(*, quick: bool) -> Iterator[dict[str, Any]]:
    """One row for each aggregate and window: nanoseconds a row, and ratios to Sash."""
    n = 1_000_000 if quick else 10_000_000
    values = np.random.default_rng(20261115).random(n)
    copy = np.empty(n)
    copy_ns = best_ns(lambda: np.copyto(copy, values), n, repeats=9)
    fresh_ns = best_ns(lambda: np.copy(values), n, repeats=9)
    log_ns = best_ns(lambda: np.exp(np.log(values, out=copy), out=copy), n)
    yield {"what": "copyto", "sash_ns": round(copy_ns, 2)}
    yield {"what": "copy into a new array", "sash_ns": round(fresh_ns, 2)}
    yield {"what": LOGARITHMS, "sash_ns": round(log_ns, 2), "to a copy": round(log_ns / copy_ns, 2)}
    for name in TO_A_COPY:
        for rows in (w for w in WINDOWS if w <= n):
            yield _beside_copies(name, rows, values, {"to a copy": copy_ns, "to a new copy": fresh_ns})
    for rows in WINDOWS:
        builtin = timed(lambda rows=rows: sash.slide(values, sash.max(), rows=rows), n)
        users = timed(lambda rows=rows: sash.slide(values, UsersMax, rows=rows), n)
        ratio, noise = round(users.best / builtin.best, 2), round(users.spread + builtin.spread, 2)
        yield {"what": "a user's max", "rows": rows, "sash_ns": round(users.best, 2), "to built-in": ratio,
               "noise": noise}  # fmt: skip


def _beside_copies(name: str, rows: int, values: Any, copies: dict[str, float]) -> dict[str, Any]:
    """Beside a copy into memory that is there, and one into a new array, as the answers are."""
    aggregate = getattr(sash, name)()
    ours = timed(lambda: sash.slide(values, aggregate, rows=rows), len(values))
    ratios = {column: round(ours.best / ns, 2) for column, ns in copies.items()}
    return {"what": name, "rows": rows, "sash_ns": round(ours.best, 2), "noise": round(ours.spread, 2), **ratios}


def claims(rows: Sequence[Row]) -> list[Claim]:
    """The bars of fixed windows."""
    found = [_to_a_copy(rows, name, column) for column in ("to a copy", "to a new copy") for name in TO_A_COPY]
    users = [row for row in rows if "to built-in" in row]
    found.append(at_most("a user's max takes at most 1.5 times the one built in", of(users, "to built-in", "rows"), 1.5,
                         noise=noise_of(users)))  # fmt: skip
    return found


def _to_a_copy(rows: Sequence[Row], name: str, column: str) -> Claim:
    """The bar of one aggregate: by memory that is there, which is stricter, or by a new array."""
    where = "memory that is there" if column == "to a copy" else "a new array, as the answers are"
    own = [row for row in rows if row["what"] == name and row.get("rows", 0) >= 2**10 and column in row]
    said = f"{name}: the best choice takes at most 4 times a copy of the array into {where}, in windows of 2^10 to 2^20"
    return at_most(said, of(own, column, "what", "rows"), 4, noise=noise_of(own), why=_why(rows, name))


def _why(rows: Sequence[Row], name: str) -> str:
    alone = next((row["to a copy"] for row in rows if row["what"] == LOGARITHMS), None)
    more = "windows beyond the caches need memory for logarithms beside that for answers, and the copy needs none"
    return f"{LOGARITHMS}, take {alone} times a copy in one thread; {more}" if name == "geomean" and alone else ""
