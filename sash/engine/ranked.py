"""Quantiles of whole columns: frames are cut into blocks, and the rows of a block are ranked once.

    rows     [ block                  )
    frames    [first      )                     a block takes as many frames as fit into REACH times the
                [          )                    first one, so that most of its rows are ranked for it alone
                     [last              )
                          [ next block            )

Blocks have nothing in common, so threads take them side by side, those of one key too; and ranks of a block fit a
cache that those of all rows would not. The answers are those of the monoid in algebra/quantiles, bit for bit: its
partials are values in order, equal ones by age, and that is what ranks by (value, row) are.

Ranking sorts 64-bit words that hold a value above and a row below, because that takes a third of sorting
row numbers by value. Where a value is wider than the room above, its last bits are cut off, and the few
neighbours that then stand the wrong way round are put right afterwards.

Cost a row: 1 + 1 / (REACH - 1) times that of sorting, and that of engine/ranks. Space: a few words for each row of a
block.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from sash.algebra.monoid import Function
from sash.algebra.quantiles import Quantile
from sash.compiling.bits import bits
from sash.compiling.jit import compiled, entry, interpreted, is_enabled
from sash.engine.columns import Column
from sash.engine.parallel import each_part, n_threads
from sash.engine.placing import Room
from sash.engine.ranks import Asked, Ranked, no_ranks, quantiles_kernel
from sash.engine.tasks import Task
from sash.windows.frames import Frames

LEAST = 1 << 13  # rows of a block, at least: what is done once for it must not be felt
REACH = 4
WORTHWHILE = 1 << 15  # frames for each thread: below, waking it costs more than it saves
SMALLEST, LARGEST = -(2**63), 2**63 - 1
INFINITY = 0x7FF << 52  # as the bits of a float; all above are NaN
PATIENCE = 8  # steps a row that neighbours may be moved; beyond, they are sorted anew

NAME, TITLE = "ranks", "a finger on ranks"
WHY = "rows that are all there are ranked once, and windows are sets of ranks; rows in batches go through {}"
COST = "one place in a sort a row, and a few words of bits looked at, for any number of rows in the window"
STATE = f"a few words a row, for {REACH} times the longest window"


def is_rankable(task: Task) -> bool:
    """Whether an aggregate is a quantile of numbers."""
    return isinstance(task.monoid, Quantile) and task.columns[0].dtype.kind in "biuf"


def frames_by_rows(begins: Any, rows: int, room: Room = np.empty) -> Frames:
    """The frames of windows of the last so many rows of a key, at every row."""
    frames = Frames(room(len(begins), np.int64), room(len(begins), np.int64))
    _rows_kernel(is_enabled())(begins, rows, *frames)
    return frames


@lru_cache(maxsize=2)
def _rows_kernel(is_compiled: bool) -> Function:
    def frame_rows(begins: Any, rows: int, starts: Any, ends: Any) -> None:
        first = 0
        for i in range(len(begins)):
            first = i if begins[i] else first
            starts[i], ends[i] = max(first, i + 1 - rows), i + 1

    return entry(frame_rows) if is_compiled else frame_rows


def quantiles(task: Task, frames: Frames, room: Room = np.empty) -> Column:
    """The answers of a task that `is_rankable`, one for each frame; both bounds of frames ascend."""
    assert isinstance(task.monoid, Quantile)
    n, is_compiled, kernel = len(frames.starts), is_enabled(), quantiles_kernel(is_enabled())
    answers, present = room(n, np.float64), np.ones(n, np.bool_)
    asked = Asked(*frames, task.monoid.q)
    if not is_compiled:
        asked = Asked(frames.starts.tolist(), frames.ends.tolist(), task.monoid.q)

    def answer(first: int, end: int) -> None:
        scratch = Scratch.of(0, room)
        for begin, stop in _blocks(frames, first, end):
            low, high = int(frames.starts[begin]), int(frames.ends[stop - 1])
            if low >= high:  # no row in any of them
                answers[begin:stop], present[begin:stop] = 0.0, False
                continue
            if high - low > len(scratch.words) or not is_compiled:
                scratch = Scratch.of(high - low, room)
            words = no_ranks(high - low, is_compiled)
            kernel(_ranked(task, low, high, scratch), words, asked, begin, stop, answers, present)

    each_part(_parts(n), answer)
    return Column(answers, None if present.all() else present)


def _parts(n: int) -> list[tuple[int, int]]:
    """Cut frames into ranges for threads."""
    count = max(1, min(n_threads(), n // WORTHWHILE)) if is_enabled() else 1
    return list(itertools.pairwise(n * k // count for k in range(count + 1)))


def _blocks(frames: Frames, first: int, end: int) -> Iterator[tuple[int, int]]:
    """Cut frames into blocks; see the header."""
    starts, ends = frames
    while first < end:
        length = max(LEAST, REACH * int(ends[first] - starts[first]))
        stop = first + int(np.searchsorted(ends[first:end], starts[first] + length, "right"))
        yield first, max(stop, first + 1)
        first = max(stop, first + 1)


class Scratch(NamedTuple):
    """What ranking writes into, used for one block after the other."""

    ranks: Any
    values: Any
    words: Any

    @classmethod
    def of(cls, n: int, room: Room) -> Scratch:
        """Room for a block of n rows."""
        if not is_enabled():
            return cls([0] * n, [0.0] * n, [0] * n)
        return cls(room(n, np.int64), room(n, np.float64), room(n, np.int64))


def _ranked(task: Task, low: int, high: int, scratch: Scratch) -> Ranked:
    """Rank the rows low to high - 1. Where there are nulls, they have ranks that nobody asks for."""
    values, n = _in_eight_bytes(task.columns[0][low:high]), high - low
    valid = np.empty(0, np.bool_) if task.valid is None else task.valid[low:high]
    ranks, by_rank, words = (each[:n] for each in scratch)
    rows, column = Ranked(low, ranks, by_rank, valid), Packable(values, values.view(np.int64))
    if not is_enabled():
        rows, column = rows._replace(valid=valid.tolist()), Packable(*(each.tolist() for each in column))
    n_row_bits, (pack, rank) = (n - 1).bit_length(), packing_kernels(values.dtype.kind, is_enabled())
    n_cut = int(pack(column, n_row_bits, words))
    if not rank(column, Words(_sorted(words), n_row_bits, n_cut), PATIENCE * n, rows):
        by_key = np.argsort(_keys(values), kind="stable")
        rank(column, Words(by_key if is_enabled() else by_key.tolist(), n_row_bits, 0), 0, rows)
    return rows


def _in_eight_bytes(values: Any) -> Any:
    """The same numbers as float64, int64 or uint64; none of them is rounded."""
    if values.dtype.kind == "f":
        return values.astype(np.float64, copy=False)
    return values if values.dtype == np.uint64 else values.astype(np.int64, copy=False)


def _sorted(words: Any) -> Any:
    """Words in ascending order, compared without a sign."""
    if isinstance(words, list):
        return sorted(words)
    words.view(np.uint64).sort()
    return words


def _keys(values: Any) -> Any:
    """Integers of 64 bits in the order of the values: -0.0 is 0.0, and all NaN are one, above all numbers."""
    if values.dtype.kind == "f":
        numbers = values + 0.0
        numbers[np.isnan(numbers)] = np.nan
        keys = numbers.view(np.int64)
        return keys ^ ((keys >> 63) & np.int64(LARGEST))
    return (values ^ np.uint64(2**63)).view(np.int64) if values.dtype.kind == "u" else values


class Packable(NamedTuple):
    """Values of eight bytes, and the same bytes as integers with a sign."""

    values: Any
    bits: Any


class Words(NamedTuple):
    """Sorted words: the row in the lowest bits of each, and above it a key without its `n_cut` last bits."""

    words: Any
    n_row_bits: int
    n_cut: int


class Packing(NamedTuple):
    """The two kernels of ranking, before and after the sort; see `packing_kernels`."""

    pack: Function
    rank: Function


@lru_cache(maxsize=8)
def packing_kernels(kind: str, is_compiled: bool) -> Packing:
    """Make pack(column, n_row_bits, words) -> n_cut, and rank(column, words, patience, rows) -> whether it did."""
    jit, outer = (compiled, entry) if is_compiled else (interpreted, interpreted)
    key_of, (_, highest) = jit(_key_maker(kind)), bits(is_compiled)
    settle = jit(_settler(key_of))

    def pack(column: Packable, n_row_bits: int, words: Any) -> int:
        low = high = key_of(column.bits[0])
        for i in range(len(words)):
            key = key_of(column.bits[i])
            low, high = min(low, key), max(high, key)
        n_key_bits = highest(high - low) + 1 if high != low else 0
        n_cut = max(0, n_key_bits + n_row_bits - 64)
        for i in range(len(words)):  # differences beyond 63 bits wrap, and come out right where there is no sign
            words[i] = ((key_of(column.bits[i]) - low) >> n_cut << n_row_bits) + i
        return n_cut

    def rank(column: Packable, sorted_words: Words, patience: int, rows: Ranked) -> bool:
        words, n_row_bits, n_cut = sorted_words
        mask = (1 << n_row_bits) - 1
        for k in range(len(words)):
            words[k] &= mask
        if n_cut > 0 and not settle(words, column.bits, patience):
            return False
        for k in range(len(words)):
            row = words[k]
            value = float(column.values[row])
            rows.ranks[row] = k
            rows.values[k] = value if value == value else math.nan  # noqa: PLR0124 - one NaN, whatever its bits
        return True

    return Packing(outer(pack), outer(rank))


def _key_maker(kind: str) -> Function:
    """Make key_of(bits): see `_keys`."""

    def key_of_float(bits: int) -> int:
        if (bits & LARGEST) > INFINITY:
            return LARGEST
        return 0 if bits == SMALLEST else bits ^ ((bits >> 63) & LARGEST)

    def key_of_unsigned(bits: int) -> int:
        return bits ^ SMALLEST

    def key_of_signed(bits: int) -> int:
        return bits

    return {"f": key_of_float, "u": key_of_unsigned}.get(kind, key_of_signed)


def _settler(key_of: Function) -> Function:
    """Make settle(rows, bits, patience): sort rows by key where they nearly are; False if that takes too long."""

    def settle(rows: Any, bits: Any, patience: int) -> bool:
        before = key_of(bits[rows[0]])
        for i in range(1, len(rows)):
            row, place = rows[i], i
            key = key_of(bits[row])
            if before <= key:
                before = key
                continue
            while place > 0 and key_of(bits[rows[place - 1]]) > key:
                rows[place] = rows[place - 1]
                place -= 1
                patience -= 1
                if patience < 0:
                    return False
            rows[place] = row
        return True

    return settle
