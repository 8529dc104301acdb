"""Ranks in a window, and a finger on one of them: quantiles of frames, a few steps of the finger a row.

The values of some rows are ranked once. The window is then a set of ranks, a bit for each, and a quantile
is the k-th of them. Rows come and go one by one, so k and what lies below it change by one at a time: a finger that
stays on the k-th present rank goes to its neighbour, and seldom farther. The neighbour above is known, because answers
lie between the two.

    level 1    bit j: word j of level 0 is not zero                      a word has 64 bits
    level 0    0010 0101 0000 1000 ...   bit r: rank r is in the window
                     ^ ^beside
                     place               `below` present ranks are smaller

Neighbours are found by going up until a word has another bit, and down again: mostly within the word.

Invariants, between rows
    I1  bit r of level 0 is set if and only if the row of rank r is in the window and not null
    I2  a bit of a higher level is set if and only if its word is not zero; the highest level is one word
    I3  n ranks are present
    I4  if there are any, `place` is one of them, and `below` of them are smaller
    I5  and `beside` is the next larger one present, or the number of ranks if there is none
    I6  the rows in the window are oldest <= row < beyond

A window that has no row in common with the one before, as that of the first row of a key, is not reached row by row:
where many ranks are present, all words are cleared.

Cost for r ranks: a row enters and leaves once, O(log r / log 64) each at worst and one word as a rule; the finger
moves at most one place for each of them. Space: a little more than a bit for each rank.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from sash.aggregators.contract import Jit
from sash.algebra.monoid import Function
from sash.algebra.quantiles import between
from sash.compiling.bits import Bits, bits
from sash.compiling.jit import compiled, entry, interpreted

WORD, SHIFT = 64, 6  # ranks in a word, and its logarithm
CLEARED = 8  # words that are cleared while one row leaves


class Ranked(NamedTuple):
    """Rows from number `base` on, ranked: equal values by row."""

    base: int
    ranks: Any  # of each row
    values: Any  # float64, by rank; NaN, above all numbers, is one value
    valid: Any  # which rows are not null; empty: all


class Asked(NamedTuple):
    """Frames of row numbers, and which quantile of them."""

    starts: Any
    ends: Any
    q: float


def no_ranks(n: int, is_compiled: bool) -> Any:
    """The words of an empty set of ranks below n."""
    n_words, level = 0, n
    while n_words == 0 or level > 1:
        level = -(-level // WORD)
        n_words += level
    return np.zeros(n_words, np.int64) if is_compiled else [0] * n_words


class Set(NamedTuple):
    """Operations on a set of ranks below n; see `set_of_ranks`."""

    add: Function
    remove: Function
    after: Function
    before: Function


def set_of_ranks(jit: Jit, *, is_compiled: bool) -> Set:
    """Make add, remove (words, n, rank), after(words, n, rank) -> the next present rank, or n, and before: or -1."""
    return Set(*_marking(jit), *_neighbours(jit, bits(is_compiled)))


def _marking(jit: Jit) -> tuple[Function, Function]:
    """Make add and remove; both restore I2 from the lowest level upwards, as far as a word has changed.

    Whether the word of a rank was empty no processor can predict, so the level above is written in any case.
    """

    @jit
    def add(words: Any, n: int, rank: int) -> None:
        words[np.uintp(rank >> SHIFT)] |= 1 << (rank & (WORD - 1))
        first, n_words = 0, ((n - 1) >> SHIFT) + 1
        while n_words > 1:
            first, n_words, rank = first + n_words, ((n_words - 1) >> SHIFT) + 1, rank >> SHIFT
            place = np.uintp(first + (rank >> SHIFT))
            word = words[place]
            words[place] = word | (1 << (rank & (WORD - 1)))
            if word != 0:
                return

    @jit
    def remove(words: Any, n: int, rank: int) -> None:
        word = words[np.uintp(rank >> SHIFT)] & ~(1 << (rank & (WORD - 1)))
        words[np.uintp(rank >> SHIFT)] = word
        first, n_words = 0, ((n - 1) >> SHIFT) + 1
        while n_words > 1:
            first, n_words, rank = first + n_words, ((n_words - 1) >> SHIFT) + 1, rank >> SHIFT
            place = np.uintp(first + (rank >> SHIFT))
            word = words[place] & ~(int(word == 0) << (rank & (WORD - 1)))
            words[place] = word
            if word != 0:
                return

    return add, remove


def _neighbours(jit: Jit, of_word: Bits) -> tuple[Function, Function]:
    """Make after and before: up to the first word with a bit on that side, and down along its nearest ones."""
    lowest, highest = of_word

    @jit
    def after(words: Any, n: int, rank: int) -> int:
        first, n_words, level = 0, ((n - 1) >> SHIFT) + 1, 0
        others = words[np.uintp(rank >> SHIFT)] & (-2 << (rank & (WORD - 1)))
        while others == 0:
            if n_words == 1:
                return n
            first, n_words, rank, level = first + n_words, ((n_words - 1) >> SHIFT) + 1, rank >> SHIFT, level + 1
            others = words[np.uintp(first + (rank >> SHIFT))] & (-2 << (rank & (WORD - 1)))
        rank = (rank >> SHIFT << SHIFT) + lowest(others)
        while level > 0:
            first -= ((n - 1) >> (SHIFT * level)) + 1
            rank = (rank << SHIFT) + lowest(words[np.uintp(first + rank)])
            level -= 1
        return rank

    @jit
    def before(words: Any, n: int, rank: int) -> int:
        first, n_words, level = 0, ((n - 1) >> SHIFT) + 1, 0
        others = words[np.uintp(rank >> SHIFT)] & ((1 << (rank & (WORD - 1))) - 1)
        while others == 0:
            if n_words == 1:
                return -1
            first, n_words, rank, level = first + n_words, ((n_words - 1) >> SHIFT) + 1, rank >> SHIFT, level + 1
            others = words[np.uintp(first + (rank >> SHIFT))] & ((1 << (rank & (WORD - 1))) - 1)
        rank = (rank >> SHIFT << SHIFT) + highest(others)
        while level > 0:
            first -= ((n - 1) >> (SHIFT * level)) + 1
            rank = (rank << SHIFT) + highest(words[np.uintp(first + rank)])
            level -= 1
        return rank

    return after, before


class Finger(NamedTuple):
    """Where the finger is; kept in registers of the processor."""

    n: int
    place: int
    below: int
    beside: int


class Moves(NamedTuple):
    """Operations on a set of ranks with a finger; see `moves`."""

    enter: Function
    leave: Function
    seek: Function


def moves(ranks: Set, jit: Jit) -> Moves:
    """Make enter, leave (words, n, finger, rank) and seek(words, n, finger, k) -> the finger; k counts from 0."""
    add, remove, after, before = ranks

    @jit
    def enter(words: Any, n: int, at: Finger, rank: int) -> Finger:
        add(words, n, rank)
        if at.n == 0:
            return Finger(1, rank, 0, n)
        beside = rank if at.place < rank < at.beside else at.beside
        return Finger(at.n + 1, at.place, at.below + int(rank < at.place), beside)

    @jit
    def leave(words: Any, n: int, at: Finger, rank: int) -> Finger:
        n_present, place, below, beside = at
        below -= int(rank < place)
        if rank == beside:
            beside = after(words, n, rank)
        elif rank == place and beside < n:
            place, beside = beside, after(words, n, beside)
        elif rank == place:
            place = before(words, n, rank)
            below -= 1
        remove(words, n, rank)
        return Finger(n_present - 1, place, below, beside)

    @jit
    def seek(words: Any, n: int, at: Finger, k: int) -> Finger:
        n_present, place, below, beside = at
        while below < k:
            place, beside = beside, after(words, n, beside)
            below += 1
        while below > k:
            place, beside = before(words, n, place), place
            below -= 1
        return Finger(n_present, place, below, beside)

    return Moves(enter, leave, seek)


@lru_cache(maxsize=2)
def quantiles_kernel(is_compiled: bool) -> Function:
    """Make quantiles(rows, words, asked, first, end, answers, present): those of the frames first to end - 1.

    Both bounds of frames ascend. Rows that lie between two windows are never looked at. `words` are all zero.
    """
    jit, outer = (compiled, entry) if is_compiled else (interpreted, interpreted)
    enter, leave, seek = moves(set_of_ranks(jit, is_compiled=is_compiled), jit)

    def quantiles(rows: Ranked, words: Any, asked: Asked, first: int, end: int, answers: Any, present: Any) -> None:
        n, base, at, oldest, beyond = len(rows.ranks), rows.base, Finger(0, 0, 0, 0), 0, 0
        for i in range(first, end):
            start, stop = asked.starts[i] - base, asked.ends[i] - base
            if start >= beyond and CLEARED * at.n > len(words):
                _clear(words)
                at, oldest = Finger(0, 0, 0, 0), beyond
            for row in range(oldest, min(start, beyond)):
                if _is_there(rows, row):
                    at = leave(words, n, at, rows.ranks[np.uintp(row)])
            oldest, beyond = max(oldest, start), max(beyond, start)
            for row in range(beyond, stop):
                if _is_there(rows, row):
                    at = enter(words, n, at, rows.ranks[np.uintp(row)])
            beyond = max(beyond, stop)
            present[i] = at.n > 0
            if at.n == 0:
                answers[i] = 0.0
                continue
            position = asked.q * (at.n - 1)
            at = seek(words, n, at, int(position))
            left = right = rows.values[np.uintp(at.place)]
            if int(position) != position:
                right = rows.values[np.uintp(at.beside)]
            answers[i] = between(left, right, position)

    return outer(quantiles)


def _clear(words: Any) -> None:
    for place in range(len(words)):
        words[np.uintp(place)] = 0


def _is_there(rows: Ranked, row: int) -> bool:
    return len(rows.valid) == 0 or bool(rows.valid[np.uintp(row)])
