"""A small FiBA for the youngest rows and DABA Lite behind it, beside FiBA alone, for bounded disorder.

The discussion of the DABA report names the combination: rows younger than a latency bound are in a tree,
those older go on, in order, to a queue. Each round inserts a row at most d places late, evicts the oldest
of 2^16 and queries. The two take turns and are timed by the processor time of the thread, so that what else
the machine does falls on both alike; the ratio is the median over the turns, the times are the best.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

import sash
from sash.aggregators import daba_lite
from sash.aggregators.contract import END, MASK, OLDEST, Fifo
from sash.aggregators.fiba.layout import ARITY, LEFT_FINGER, nodes_of
from sash.compiling.jit import compiled, entry, interpreted
from sash.engine.building import Built, new_state
from sash.engine.trees import Wanted, build_trees, grown, new_tree
from sash.testing.monoids import Affine

NAME = "combination"
WINDOW = 2**16
N_TURNS = 9
LATENESS = (0, 2**4, 2**8, 2**12)
ANSWER, YOUNG, N_SCRATCH = 0, 1, 2


class Rounds(NamedTuple):
    """The key that comes with each row, the oldest key that stays, and the oldest that stays in the tree."""

    new: Any
    keep: Any
    young: Any
    columns: Any


class Combined(NamedTuple):
    """A queue, the keys of its elements, and cells beside it."""

    queue: Any
    keys: Any
    scratch: Any


def run(*, quick: bool) -> Iterator[dict[str, Any]]:
    """One row for each aggregate and bound: nanoseconds a round, alone and combined."""
    _require_same()
    n = 400_000 if quick else 2_000_000
    values = np.random.default_rng(20261115).random(n) + 0.5
    for name, aggregate in (("sum", sash.sum()), ("geomean", sash.geomean())):
        for lateness in LATENESS:
            rounds = _rounds(n, lateness, values)
            turns = _turns(aggregate, rounds)
            alone, both = (np.min(turns, axis=0) / n).tolist()
            yield {
                "what": name, "d": lateness, "fiba_ns": round(alone, 1), "daba_behind_fiba_ns": round(both, 1),
                "combined/alone": round(float(np.median(turns[:, 1] / turns[:, 0])), 2),
            }  # fmt: skip


def _turns(aggregate: Any, rounds: Rounds) -> Any:
    """Nanoseconds of each turn, alone and combined, after one to warm up."""
    ways = (_alone, _combined)
    turns = np.zeros((N_TURNS + 1, len(ways)))
    for turn in turns:
        for k, way in enumerate(ways):
            before = time.thread_time_ns()
            way(aggregate, rounds)
            turn[k] = time.thread_time_ns() - before
    return turns[1:]


def _rounds(n: int, lateness: int, values: Any, *, window: int = WINDOW) -> Rounds:
    """Keys 0 to n - 1, each at most `lateness` places after its turn; a window of the last of them."""
    shifted = np.arange(n) + np.random.default_rng(7).integers(0, lateness + 1, n)
    new = np.argsort(shifted, kind="stable")
    newest = np.maximum.accumulate(new)
    return Rounds(new, newest - window + 1, newest - lateness + 1, (values,))


def _trees(aggregate: Any, *, is_compiled: bool = True) -> Any:
    monoid = sash.agg(aggregate).bind(None) if isinstance(aggregate, type) else aggregate.bind(np.dtype("f8"))
    return build_trees(Wanted("fiba", (monoid,), is_compiled, "i8", 4, False))


def _alone(aggregate: Any, rounds: Rounds, *, is_compiled: bool = True) -> Any:
    trees = _trees(aggregate, is_compiled=is_compiled)
    drive = _made(trees, _alone_driver)
    tree, row, n = new_tree(trees), 0, len(rounds.new)
    results = trees.cells.results(n)
    while row < n:
        row = drive(tree, rounds, row, n, results)
        if row < n:
            tree = grown(trees, tree)
    return results[0]


def _combined(aggregate: Any, rounds: Rounds, *, is_compiled: bool = True) -> Any:
    trees = _trees(aggregate, is_compiled=is_compiled)
    drive = _made(trees, _combined_driver)
    built = Built(daba_lite.ALGORITHM, trees.cells, Fifo(*(None,) * 4), is_compiled)
    capacity = 2 * WINDOW
    keys = np.zeros(capacity, np.int64) if is_compiled else [0] * capacity
    older = Combined(new_state(built, capacity), keys, trees.cells.allocate(N_SCRATCH))
    tree, row, n = new_tree(trees), 0, len(rounds.new)
    results = trees.cells.results(n)
    while row < n:
        row = drive(tree, older, rounds, row, n, results)
        if row < n:
            tree = grown(trees, tree)
    return results[0]


_MADE: dict[Any, Any] = {}


def _made(trees: Any, make: Any) -> Any:
    if (trees.wanted, make) not in _MADE:
        _MADE[trees.wanted, make] = (entry if trees.wanted.is_compiled else interpreted)(make(trees))
    return _MADE[trees.wanted, make]


def _alone_driver(trees: Any) -> Any:
    insert, evict, query, lower = trees.inner.insert, trees.inner.evict, trees.inner.query, trees.cells.lower
    nodes = nodes_of(trees.kit)
    get, first = nodes.get, nodes.first

    def drive_alone(s, rounds, begin, end, results):
        for row in range(begin, end):
            while get(s.links, s.at[LEFT_FINGER], ARITY) > 1 and first(s, s.at[LEFT_FINGER]) < rounds.keep[row]:
                evict(s, first(s, s.at[LEFT_FINGER]))
            if not insert(s, rounds.new[row], rounds.columns, row):
                return row
            lower(results, row, s.pool, query(s))
        return end

    return drive_alone


def _combined_driver(trees: Any) -> Any:
    cells, width = trees.cells, trees.kit.width
    insert, evict, query, lower = trees.inner.insert, trees.inner.evict, trees.inner.query, cells.lower
    combine, transfer, nodes = cells.combine, cells.transfer, nodes_of(trees.kit)
    get, first = nodes.get, nodes.first
    jit = compiled if trees.wanted.is_compiled else interpreted
    enqueue, leave, ask, _ = daba_lite.build(cells._replace(lift=transfer), jit)  # its rows are cells of the tree

    def drive_combined(s, older, rounds, begin, end, results):
        queue, keys = older.queue, older.keys
        at = queue.at
        for row in range(begin, end):
            if not insert(s, rounds.new[row], rounds.columns, row):
                return row
            finger = s.at[LEFT_FINGER]
            while get(s.links, finger, ARITY) > 1 and first(s, finger) < rounds.young[row]:
                keys[at[END] & at[MASK]] = first(s, finger)
                enqueue(queue, s.pool, finger * width + 1)
                evict(s, first(s, finger))
                finger = s.at[LEFT_FINGER]
            while at[OLDEST] < at[END] and keys[at[OLDEST] & at[MASK]] < rounds.keep[row]:
                leave(queue)
            if at[OLDEST] == at[END]:
                lower(results, row, s.pool, query(s))
            elif get(s.links, finger, ARITY) == 1:
                lower(results, row, queue.pool, ask(queue))
            else:
                transfer(older.scratch, ANSWER, queue.pool, ask(queue))
                transfer(older.scratch, YOUNG, s.pool, query(s))
                combine(older.scratch, ANSWER, ANSWER, YOUNG)
                lower(results, row, older.scratch, ANSWER)
        return end

    return drive_combined


def _require_same() -> None:
    """Both give the same answers, for an aggregate that shows any row lost or out of place."""
    for lateness in (0, 3, 40):
        rounds = _rounds(500, lateness, None, window=60)
        plain = Rounds(*(each.tolist() for each in rounds[:3]), (list(range(500)),))
        if _alone(Affine, plain, is_compiled=False) != _combined(Affine, plain, is_compiled=False):
            raise AssertionError(f"the combination gives other answers for rows {lateness} places late")


if __name__ == "__main__":
    for line in run(quick=True):
        print(line)
