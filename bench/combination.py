"""DABA Lite behind a small FiBA, beside FiBA alone, for bounded disorder.

Each round inserts a row at most d places late, evicts the oldest of 2^16 and queries. The two take turns
and are timed by the processor time of the thread, so that what else the machine does falls on both alike;
the ratio is the median over the turns, the times are the best.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

import sash
from bench.bars import at_most, of
from bench.experiments.contract import Claim, Row
from sash.aggregators.fiba.layout import ARITY, LEFT_FINGER, nodes_of
from sash.compiling.jit import entry, interpreted
from sash.engine.behind import Parts, build_parts, new_window, with_room
from sash.engine.binding import bind
from sash.engine.trees import Wanted, grown, new_tree
from sash.testing.monoids import Affine

NAME = "combination"
WINDOW = 2**16
N_TURNS = 7
LATENESS = (0, 2**4, 2**8, 2**12)


class Rounds(NamedTuple):
    """The key that comes with each row, the newest key that leaves, and the values."""

    new: Any
    gone: Any
    columns: Any


def run(*, quick: bool) -> Iterator[dict[str, Any]]:
    """One row for each aggregate and bound: nanoseconds a round, alone and combined."""
    _require_same()
    n = 300_000 if quick else 2_000_000
    values = np.random.default_rng(20261115).random(n) + 0.5
    for name, aggregate in (("sum", sash.sum()),):  # others take half a minute each to compile, twice
        parts = _parts(aggregate, is_compiled=True)
        for lateness in LATENESS:
            turns = _turns(parts, _rounds(n, lateness, values), lateness)
            alone, both = (np.min(turns, axis=0) / n).tolist()
            yield {
                "what": name, "d": lateness, "fiba_ns": round(alone, 1), "daba_behind_fiba_ns": round(both, 1),
                "combined/alone": round(float(np.median(turns[:, 1] / turns[:, 0])), 2),
            }  # fmt: skip


def claims(rows: Sequence[Row]) -> list[Claim]:
    """What it is for."""
    return [at_most("never slower than FiBA alone", of(rows, "combined/alone", "what", "d"), 1)]


def _turns(parts: Parts, rounds: Rounds, lateness: int) -> Any:
    """Nanoseconds of each turn, alone and combined, after one to warm up."""
    turns = np.zeros((N_TURNS + 1, 2))
    for turn in turns:
        for k, way in enumerate((_alone, _combined)):
            before = time.thread_time_ns()
            way(parts, rounds, lateness)
            turn[k] = time.thread_time_ns() - before
    return turns[1:]


def _rounds(n: int, lateness: int, values: Any, *, window: int = WINDOW) -> Rounds:
    """Keys 0 to n - 1, each at most `lateness` places after its turn; a window of the last of them."""
    shifted = np.arange(n) + np.random.default_rng(7).integers(0, lateness + 1, n)
    new = np.argsort(shifted, kind="stable")
    return Rounds(new, np.maximum.accumulate(new) - window, (values,))


def _parts(aggregate: Any, *, is_compiled: bool) -> Parts:
    bound = bind(aggregate, None, compiled=is_compiled)
    return build_parts(Wanted("fiba", bound.monoids, is_compiled, "i8", 4, not is_compiled))


def _alone(parts: Parts, rounds: Rounds, lateness: int) -> Any:
    tree, row, n = new_tree(parts.trees), 0, len(rounds.new)
    results, drive = parts.trees.cells.results(n), _alone_driver(parts)
    while row < n:
        row = drive(tree, rounds, row, n, results)
        if row < n:
            tree = grown(parts.trees, tree)
    return results[0]


def _combined(parts: Parts, rounds: Rounds, lateness: int) -> Any:
    window, row, n = new_window(parts), 0, len(rounds.new)
    results, drive = parts.trees.cells.results(n), _combined_driver(parts)
    while row < n:
        row = drive(window, rounds, row, n, results, lateness)
        if row < n:
            window = with_room(parts, window)
    return results[0]


@lru_cache
def _alone_driver(parts: Parts) -> Any:
    trees = parts.trees
    insert, evict, query, lower = trees.inner.insert, trees.inner.evict, trees.inner.query, trees.cells.lower
    nodes = nodes_of(trees.kit)
    get, first = nodes.get, nodes.first

    def drive_alone(s, rounds, begin, end, results):
        for row in range(begin, end):
            while get(s.links, s.at[LEFT_FINGER], ARITY) > 1 and first(s, s.at[LEFT_FINGER]) <= rounds.gone[row]:
                evict(s, first(s, s.at[LEFT_FINGER]))
            if not insert(s, rounds.new[row], rounds.columns, row):
                return row
            lower(results, row, s.pool, query(s))
        return end

    return (entry if trees.wanted.is_compiled else interpreted)(drive_alone)


@lru_cache
def _combined_driver(parts: Parts) -> Any:
    insert, expire, answer = parts.inner.insert, parts.inner.expire, parts.inner.answer

    def drive_combined(w, rounds, begin, end, results, lateness):
        for row in range(begin, end):
            expire(w, rounds.gone[row])  # nothing of the tree: the window is longer than the lateness
            if not insert(w, rounds.new[row], rounds.columns, row, lateness):
                return row
            answer(results, row, w)
        return end

    return (entry if parts.trees.wanted.is_compiled else interpreted)(drive_combined)


def _require_same() -> None:
    """Both give the same answers, for an aggregate that shows any row lost or out of place."""
    parts = _parts(Affine, is_compiled=False)
    for lateness in (0, 3, 40):
        rounds = _rounds(500, lateness, None, window=60)
        plain = Rounds(rounds.new.tolist(), rounds.gone.tolist(), (list(range(500)),))
        if _alone(parts, plain, lateness) != _combined(parts, plain, lateness):
            raise AssertionError(f"the combination gives other answers for rows {lateness} places late")


if __name__ == "__main__":
    for line in run(quick=True):
        print(line)
