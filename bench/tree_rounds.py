"""Rounds of evict, insert and query over one tree, compiled: rows that come late by a distance.

As in section 5.1 of the FiBA paper, each round evicts the oldest row and inserts one that d rows are younger than. One
loop does what every experiment asks of a tree (rounds, single rounds by the clock, ranges, windows of time), because
machine code for one takes half a minute to make: searches, splits and merges are all inlined into it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from bench.alike import picking
from bench.cycles import clock, cost_ticks
from bench.fifo_rounds import copied
from sash.algebra.monoid import Function
from sash.compiling.jit import entry, interpreted
from sash.engine.binding import bind
from sash.engine.trees import Trees, Wanted, build_trees, grown, new_tree

GAP = 2**20  # between the times of neighbouring rows, for those that come between them
CHUNK = 5_000
N_ALIKE = 8  # trees of which a round is clocked together
YOUNGEST = 2**62  # a time after all others


class Moves(NamedTuple):
    """What happens row by row: some leave, one comes, and answers are asked for."""

    new: Any  # the key that comes
    old: Any  # the keys that leave, in order
    until: Any  # row i evicts old[until[i]] to old[until[i + 1] - 1]
    firsts: Any  # where a range begins that is asked for too; empty if none is
    columns: Any


def moves(new: Any, old: Any, until: Any = None, firsts: Any = (), values: Any = None) -> Moves:
    """Moves of numbers that are seeded; unless said, each row evicts one.

    Columns are laid out alike, as another layout would be another half a minute of compiling.
    """
    until = np.arange(len(new) + 1) if until is None else until
    values = np.random.default_rng(2).random(len(new)) if values is None else values
    keys = (np.ascontiguousarray(each, np.int64) for each in (new, old, until, firsts))
    return Moves(*keys, (np.ascontiguousarray(values),))


def trees_of(algorithm: str, aggregate: Any, min_arity: int) -> Trees:
    """A kind of tree, compiled unless SASH_JIT=0 says otherwise."""
    bound = bind(aggregate, "f8", compiled=True)
    return build_trees(Wanted(algorithm, bound.monoids, bound.is_compiled, "i8", min_arity, has_nulls=False))


def run_moves(trees: Trees, tree: Any, given: Moves, results: Any = None) -> Callable[[], Any]:
    """Prepare a run over some rows: it gives the tree, which may be another one, grown on the way."""
    run = run_alike(trees, [tree], given, results=results)
    return lambda: run()[0]


def run_alike(
    trees: Trees, alike: list[Any], given: Moves, spent: Any = (), results: Any = None
) -> Callable[[], list[Any]]:
    """Prepare a run of trees that are alike over the same rows: row by row all take it, before any takes the next.

    `results` get the answers, if they are given.
    """
    n, spent = len(given.new), np.asarray(spent, np.int64)
    if not trees.wanted.is_compiled:
        given = Moves(*(each.tolist() for each in given[:-1]), (given.columns[0].tolist(),))
    driver, results = moves_driver(trees), trees.cells.results(n) if results is None else results

    def take() -> list[Any]:
        grow, row = alike, 0
        while row < n:
            row = driver(tuple(grow), given, row, results, spent)
            if row < n:
                grow = [grown(trees, each) for each in grow]
        return grow

    return take


@lru_cache(maxsize=64)
def moves_driver(trees: Trees) -> Function:
    """Make drive(trees, moves, begin, results, spent) -> row; it stops where trees must grow.

    Each tree takes each row, and they are alike: one, or N_ALIKE, which is compiled apart. The insertion comes first:
    it alone may fail for lack of room, in the first tree if it does, and then nothing has happened yet. If `spent` has
    a place for each row, it gets the ticks of its round of all trees.
    """
    inner, lower, now = trees.inner, trees.cells.lower, clock(trees.wanted.is_compiled)
    store, pick = picking(trees.wanted.is_compiled)
    insert, evict, query, query_range = inner.insert, inner.evict, inner.query, inner.query_range

    def drive_moves(alike: Any, given: Moves, begin: int, results: Any, spent: Any) -> int:
        is_clocked, with_range = len(spent) > 0, len(given.firsts) > 0
        before, place = 0, store(alike)
        for row in range(begin, len(given.new)):
            if is_clocked:
                before = now()
            for number in range(len(alike)):
                s = pick(place, number, alike)
                if not insert(s, given.new[row], given.columns, row):
                    return row
                for k in range(given.until[row], given.until[row + 1]):
                    evict(s, given.old[k])
                lower(results, row, s.pool, query(s))
                if with_range:
                    lower(results, row, s.pool, query_range(s, given.firsts[row], YOUNGEST))
            if is_clocked:
                spent[row] = now() - before
        return len(given.new)

    return (entry if trees.wanted.is_compiled else interpreted)(drive_moves)


class LateMoves:
    """A window of n rows and rounds over it; from turn to turn the rows move on."""

    def __init__(self, n: int, chunk: int = CHUNK) -> None:
        self.n, self.chunk, self.n_gone, self.n_come = n, chunk, 0, 0
        for begin in range(0, n, 2**16):
            times = np.arange(begin, min(begin + 2**16, n)) * GAP
            self.ready(moves(times, times[:0], np.zeros(len(times) + 1, np.int64)))()

    def ready(self, given: Moves) -> Callable[[], None]:
        """Prepare any rows."""
        raise NotImplementedError

    def in_order(self) -> Callable[[], None]:
        """Prepare rounds that insert at the young end."""
        return self.ready(self._in_order())

    def at(self, d: int) -> Callable[[], None]:
        """Prepare rounds at a distance, which must not be larger than those before."""
        return self.ready(self._at(d))

    def scattered(self, d: int) -> Callable[[], None]:
        """Prepare rounds whose rows come d places late on average, each by itself: up to twice as late, or in order.

        The young end moves on with the rows, so a window that takes these takes no others.
        """
        steps = self.n_gone + np.arange(self.chunk)
        late = np.random.default_rng(self.n_gone).integers(0, 2 * d + 1, self.chunk)
        self.n_gone += self.chunk
        return self.ready(moves((steps + self.n - late) * GAP + 1 + steps % (GAP - 1), steps * GAP))

    def _in_order(self) -> Moves:
        old = (self.n_gone + np.arange(self.chunk)) * GAP
        self.n_gone += self.chunk
        return moves(old + self.n * GAP, old)

    def _at(self, d: int) -> Moves:
        steps = np.arange(self.chunk)
        if d >= self.n:  # the row before all others, which leaves with this round
            before_all = self.n_gone * GAP - 1 - steps
            return moves(before_all, before_all)
        old, new = (self.n_gone + steps) * GAP, (self.n - d - 1) * GAP + 1 + self.n_come + steps
        self.n_gone, self.n_come = self.n_gone + self.chunk, self.n_come + self.chunk
        return moves(new, old)


class TreeRounds(LateMoves):
    """The same of one of our trees."""

    def __init__(self, trees: Trees, n: int, chunk: int = CHUNK) -> None:
        self.trees, self.tree = trees, new_tree(trees)
        super().__init__(n, chunk)

    def clocked(self, d: int, count: int) -> tuple[Any, int]:
        """The ticks of each of so many rounds at a distance, 0 for rows in order, and how many trees shared a reading.

        Where a round takes less than ten readings of the clock, the same rounds of some trees that are alike are read
        together, and a round is one's share: it may be less than a round alone takes, as trees do not wait for each
        other, or more, as they share the caches; the mean of whole turns tells. A round that makes room is left out.
        """
        few, _ = self._clocked(d, min(count, self.chunk), 1)
        n_alike = 1 if np.median(few) >= 10 * cost_ticks() else N_ALIKE
        return self._clocked(d, count, n_alike)

    def _clocked(self, d: int, count: int, n_alike: int) -> tuple[Any, int]:
        spent: list[Any] = []
        alike = [copied(self.tree, number) for number in range(n_alike)]
        while sum(map(len, spent)) < count:
            ticks = np.zeros(self.chunk, np.int64)
            alike = run_alike(self.trees, alike, self._at(d) if d else self._in_order(), ticks)()
            spent.append(ticks[ticks > 0])
        self.tree = alike[0]
        return np.concatenate(spent)[:count] / n_alike, n_alike

    @property
    def answers(self) -> Any:
        """Those of the last rows."""
        return self.results[0]

    def ready(self, given: Moves) -> Callable[[], None]:
        """Prepare any rows."""
        self.results = self.trees.cells.results(len(given.new))
        run = run_moves(self.trees, self.tree, given, self.results)

        def take() -> None:
            self.tree = run()

        return take


class LateRounds(TreeRounds):
    """A window whose d youngest rows stay: every row that comes is d places late, however long it goes on."""

    def __init__(self, trees: Trees, n: int, d: int, chunk: int = CHUNK) -> None:
        super().__init__(trees, n, chunk)
        self.d = d

    def rounds(self, n_small: int = 0) -> Callable[[], None]:
        """Prepare rounds; with n_small, each asks for the youngest so many rows too."""
        n, lower, gone = self.n, self.n - self.d, self.n_come + np.arange(self.chunk)
        first_new = (lower - 1) * GAP + 1
        new, old = first_new + gone, np.where(gone < lower, gone * GAP, first_new + gone - lower)
        firsts: Any = ()
        if n_small:
            n_late = n_small - self.d  # of the rows asked for; the others are the ones that stay
            firsts = np.where(gone + 1 >= n_late, new - n_late + 1, (n - n_small + gone + 1) * GAP)
        self.n_come += self.chunk
        return self.ready(moves(new, old, None, firsts))
