"""DABA Lite behind a finger B-tree: rows that are late, but never by more than is known beforehand.

    oldest                                               newest - lateness        newest
      | DABA Lite: rows whose place is settled | FiBA: rows that others may still precede |
      `---------- times, in the order -------' ^ horizon

Only among the youngest rows can anything still change its place; they are in a small tree. Rows strictly
older than the horizon go on, in order of time, to a queue, where a row takes fewer steps and one partial.
The horizon itself still belongs to the tree, so that rows of equal time are combined wherever they may
still come. A row older than the horizon is refused by whoever calls.

Invariants
    I1  the times of the queue increase strictly, and all are before the horizon
    I2  all times of the tree are after those of the queue
    I3  no time of the tree is before the horizon
    I4  the horizon is that of the newest time that ever came: it never goes back
    I5  the queue is right, and holds the older rows (see daba_lite)
    I6  the tree is right, and holds the younger rows (see fiba)

Cost in calls of combine, for a row d places late: O(log d) in the tree, at most 5 to go on and leave, 1 more
for an answer. At worst all k rows of the tree go on at once, when time leaps. Space: n + 3 partials, and
2 (1 + 1 / min_arity) for each of the k rows in the tree.

Paper: Tangwongsan, Hirzel, Schneider, "In-order sliding-window aggregation in worst-case constant time",
VLDB Journal 30 (2021), whose discussion names the combination.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sash.aggregators import daba_lite, fiba
from sash.aggregators.contract import ASSOCIATIVE, END, MASK, OLDEST, Algorithm, Card, Fifo, Shape
from sash.aggregators.fiba.layout import ARITY, LEFT_FINGER, Kit, nodes_of
from sash.algebra.monoid import Function

LOWEST = np.iinfo(np.int64).min
HAS_NEWEST, N_MARKS = 0, 1
ANSWER, YOUNG, N_SCRATCH = 0, 1, 2


class Window(NamedTuple):
    """Everything the combination knows."""

    tree: Any
    queue: Any
    times: Any  # of the elements of the queue, each in its slot
    newest: Any  # one time: the newest that ever came
    marks: Any
    scratch: Any  # cells


class Operations(NamedTuple):
    """The operations of the combination; a lateness is what may be taken away from a time."""

    insert: Function  # (window, key, columns, row, lateness) -> False if there was no room: nothing has been done
    bulk_insert: Function  # (window, keys, columns, begin, end, lateness) -> row: where room ended, or end + 1
    expire: Function  # (window, key): all of the queue that is not after the key leaves
    answer: Function  # (results, i, window): answer i becomes that of everything
    move: Function  # (queue, larger or smaller queue)


def build(kit: Kit, tree: fiba.Timed, *, is_integer: bool) -> Operations:
    """Make the operations for one kind of cell and key; times that are int64 never overflow."""
    queue = daba_lite.build(kit.cells._replace(lift=kit.cells.transfer), kit.apart)  # its rows are cells of the tree
    retire = _retirer(kit, tree, queue, _horizon_of(kit, is_integer))
    insert = _inserter(kit, tree, retire)
    load, less, leave = kit.keys.load, kit.keys.less, queue.evict

    @kit.apart
    def bulk_insert(w: Window, keys: Any, columns: object, begin: int, end: int, lateness: Any) -> int:
        for row in range(begin, end):
            if not insert(w, load(keys, row), columns, row, lateness):
                return row
        return end + 1 if retire(w, lateness) else end

    @kit.jit
    def expire(w: Window, key: Any) -> None:
        at = w.queue.at
        while at[OLDEST] < at[END] and not less(key, load(w.times, at[OLDEST] & at[MASK])):
            leave(w.queue)

    return Operations(insert, bulk_insert, expire, _answerer(kit, tree, queue), queue.move)


def _horizon_of(kit: Kit, is_integer: bool) -> Function:
    def horizon_of_integers(newest: Any, lateness: Any) -> Any:
        return newest - lateness if newest >= LOWEST + lateness else LOWEST

    def horizon_of_others(newest: Any, lateness: Any) -> Any:
        return newest - lateness

    return kit.jit(horizon_of_integers if is_integer else horizon_of_others)


def _retirer(kit: Kit, tree: fiba.Timed, queue: Fifo, horizon_of: Function) -> Function:
    load, store, less, width = kit.keys.load, kit.keys.store, kit.keys.less, kit.width
    take_out, enqueue, nodes = tree.evict, queue.insert, nodes_of(kit)
    get, first = nodes.get, nodes.first

    def retire(w: Window, lateness: Any) -> bool:
        """Let rows before the horizon go on to the queue (restores I3); False if it has no room for all."""
        s, at = w.tree, w.queue.at
        while get(s.links, s.at[LEFT_FINGER], ARITY) > 1:
            finger = s.at[LEFT_FINGER]
            oldest = first(s, finger)
            if not less(oldest, horizon_of(load(w.newest, 0), lateness)):
                return True
            if at[END] - at[OLDEST] > at[MASK]:
                return False
            store(w.times, at[END] & at[MASK], oldest)
            enqueue(w.queue, s.pool, finger * width + 1)
            take_out(s, oldest)
        return True

    return kit.jit(retire)


def _inserter(kit: Kit, tree: fiba.Timed, retire: Function) -> Function:
    load, store, less, put_in = kit.keys.load, kit.keys.store, kit.keys.less, tree.insert

    def insert(w: Window, key: Any, columns: object, row: int, lateness: Any) -> bool:
        if not retire(w, lateness) or not put_in(w.tree, key, columns, row):
            return False
        if w.marks[HAS_NEWEST] == 0 or less(load(w.newest, 0), key):
            store(w.newest, 0, key)
            w.marks[HAS_NEWEST] = 1
        return True

    return kit.jit(insert)


def _answerer(kit: Kit, tree: fiba.Timed, queue: Fifo) -> Function:
    combine, transfer, lower, get = kit.cells.combine, kit.cells.transfer, kit.cells.lower, nodes_of(kit).get
    ask_tree, ask_queue = tree.query, queue.query

    def answer(results: Any, i: int, w: Window) -> None:
        s, at = w.tree, w.queue.at
        if at[OLDEST] == at[END]:
            lower(results, i, s.pool, ask_tree(s))
        elif get(s.links, s.at[LEFT_FINGER], ARITY) == 1:
            lower(results, i, w.queue.pool, ask_queue(w.queue))
        else:
            transfer(w.scratch, ANSWER, w.queue.pool, ask_queue(w.queue))
            transfer(w.scratch, YOUNG, s.pool, ask_tree(s))
            combine(w.scratch, ANSWER, ANSWER, YOUNG)
            lower(results, i, w.scratch, ANSWER)

    return kit.jit(answer)


ALGORITHM = Algorithm(
    Card(
        "daba_behind_fiba",
        title="DABA Lite behind a finger B-tree",
        order="late by a bound",
        needs=ASSOCIATIVE,
        amortised="log d",
        worst="k, the rows within the bound",
        space="n + 2k (1 + 1/min_arity)",
        paper="Tangwongsan, Hirzel, Schneider, VLDB Journal 30 (2021), discussion",
    ),
    Shape(),
    fiba.refuse_queue("daba_behind_fiba"),
    fiba.check_queue,
)
