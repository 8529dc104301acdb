"""Cells: how algorithms touch partials without knowing what a partial is.

A *pool* holds partials, and a cell is a place in it, named by an integer. An algorithm combines,
copies, lifts and lowers cells; whether a cell is a number, a few numbers, a row of a matrix or a
Python object is settled here, once for each kind, and so is whether the code is compiled:

    state     compiled pool                    interpreted pool
    Scalar    an array                         a list
    Record    a tuple of arrays, one a field   a list of tuples
    Row       a matrix                         a list of arrays
    Object    (never compiled)                 a list
    several   a pair of pools, nested          a pair of pools, nested

Columns are tuples of arrays, one for each input; results are pairs (answers, valid).

Interpreted pools hold None for "no rows at all", so that nobody calls `combine` with an identity
and null rows need no special care. Compiled pools hold the identity; where rows may be null, the
cells are wrapped by `counting_nulls`, which keeps the number of valid rows beside each partial.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from sash.algebra.monoid import Function


class Fold(NamedTuple):
    """Several cells into one, what has been made so far being held: numbers in registers, all else in the one cell.

    Through the pool each step would wait until the last one has been written, which takes as long as an addition.
    """

    begin: Function  # (pool, dst, src) -> held: that of src alone
    add: Function  # (pool, dst, held, src) -> held + src
    add_both: Function  # (pool, dst, held, older, newer, scratch) -> held + (older + newer)
    end: Function  # (pool, dst, held): dst becomes what is held
    hold: Function  # (pool, src) -> held: that of src, for lead alone
    lead: Function  # (pool, dst, src, held) -> held: dst becomes src + held, and is held then


class Cells(NamedTuple):
    """The operations on one kind of pool."""

    combine: Function  # (pool, dst, older, newer): dst becomes older + newer
    clear: Function  # (pool, dst): dst becomes the identity
    lift: Function  # (pool, dst, columns, i): dst becomes the partial of row i
    lower: Function  # (results, i, pool, src): answer i becomes that of src
    transfer: Function  # (to_pool, dst, from_pool, src)
    invert: Function  # (pool, dst, whole, older): dst becomes whole without older
    newer_wins: Function  # (pool, older, newer): whether older + newer is newer
    allocate: Callable[[int], Any]  # number of cells -> pool
    results: Callable[[int], Any]  # number of rows -> (answers, valid)
    fold: Fold


class Values(NamedTuple):
    """A partial held in registers, for kernels that keep it out of the pool (Scalar, Record)."""

    load: Function  # (pool, i) -> partial
    store: Function  # (pool, i, partial)
    lift: Function  # (columns, i) -> partial
    combine: Function  # (older, newer, n_older, n_newer) -> partial
    lower: Function  # (results, i, partial, n)
    slice: Function  # (pool, start, stop) -> pool
    allocate: Callable[[int], Any]
    results: Callable[[int], Any]


def paired(first: Cells, second: Cells, jit: Callable[[Function], Function]) -> Cells:
    """Two aggregates in one structure: pools, columns and results are pairs."""
    combine_1, clear_1, lift_1, lower_1, transfer_1, invert_1 = first[:6]
    combine_2, clear_2, lift_2, lower_2, transfer_2, invert_2 = second[:6]

    @jit
    def combine(pool: Any, dst: int, older: int, newer: int) -> None:
        combine_1(pool[0], dst, older, newer)
        combine_2(pool[1], dst, older, newer)

    @jit
    def clear(pool: Any, dst: int) -> None:
        clear_1(pool[0], dst)
        clear_2(pool[1], dst)

    @jit
    def lift(pool: Any, dst: int, columns: Any, i: int) -> None:
        lift_1(pool[0], dst, columns[0], i)
        lift_2(pool[1], dst, columns[1], i)

    @jit
    def lower(results: Any, i: int, pool: Any, src: int) -> None:
        lower_1(results[0], i, pool[0], src)
        lower_2(results[1], i, pool[1], src)

    @jit
    def transfer(to_pool: Any, dst: int, from_pool: Any, src: int) -> None:
        transfer_1(to_pool[0], dst, from_pool[0], src)
        transfer_2(to_pool[1], dst, from_pool[1], src)

    @jit
    def invert(pool: Any, dst: int, whole: int, older: int) -> None:
        invert_1(pool[0], dst, whole, older)
        invert_2(pool[1], dst, whole, older)

    @jit
    def newer_wins(pool: Any, older: int, newer: int) -> bool:
        return False  # two selections may choose differently: a product is no selection

    def allocate(n: int) -> Any:
        return first.allocate(n), second.allocate(n)

    def results(n: int) -> Any:
        return first.results(n), second.results(n)

    fold = _paired_folds(first.fold, second.fold, jit)
    return Cells(combine, clear, lift, lower, transfer, invert, newer_wins, allocate, results, fold)


def _paired_folds(first: Fold, second: Fold, jit: Callable[[Function], Function]) -> Fold:
    (begin_1, add_1, add_both_1, end_1, hold_1, lead_1) = first
    (begin_2, add_2, add_both_2, end_2, hold_2, lead_2) = second

    @jit
    def begin(pool: Any, dst: int, src: int) -> Any:
        return begin_1(pool[0], dst, src), begin_2(pool[1], dst, src)

    @jit
    def add(pool: Any, dst: int, held: Any, src: int) -> Any:
        return add_1(pool[0], dst, held[0], src), add_2(pool[1], dst, held[1], src)

    @jit
    def add_both(pool: Any, dst: int, held: Any, older: int, newer: int, scratch: int) -> Any:
        return (
            add_both_1(pool[0], dst, held[0], older, newer, scratch),
            add_both_2(pool[1], dst, held[1], older, newer, scratch),
        )

    @jit
    def end(pool: Any, dst: int, held: Any) -> None:
        end_1(pool[0], dst, held[0])
        end_2(pool[1], dst, held[1])

    @jit
    def hold(pool: Any, src: int) -> Any:
        return hold_1(pool[0], src), hold_2(pool[1], src)

    @jit
    def lead(pool: Any, dst: int, src: int, held: Any) -> Any:
        return lead_1(pool[0], dst, src, held[0]), lead_2(pool[1], dst, src, held[1])

    return Fold(begin, add, add_both, end, hold, lead)


def fold_in_place(combine: Function, transfer: Function, jit: Callable[[Function], Function]) -> Fold:
    """Make the fold of cells that are no numbers: what is held is the place of the cell."""

    @jit
    def begin(pool: Any, dst: int, src: int) -> Any:
        transfer(pool, dst, pool, src)
        return dst

    @jit
    def add(pool: Any, dst: int, held: Any, src: int) -> Any:
        combine(pool, dst, dst, src)
        return held

    @jit
    def add_both(pool: Any, dst: int, held: Any, older: int, newer: int, scratch: int) -> Any:
        combine(pool, scratch, older, newer)
        combine(pool, dst, dst, scratch)
        return held

    @jit
    def end(pool: Any, dst: int, held: Any) -> None:
        pass

    @jit
    def hold(pool: Any, src: int) -> Any:
        return src

    @jit
    def lead(pool: Any, dst: int, src: int, held: Any) -> Any:
        combine(pool, dst, src, held)
        return dst

    return Fold(begin, add, add_both, end, hold, lead)
