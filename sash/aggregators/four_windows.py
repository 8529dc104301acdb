"""Four windows at a time: fixed windows over whole columns, for combines that are plain arithmetic.

    rows      | a  a+1 a+2 |  W - 4 rows in all four           | r  r+1 r+2 r+3 |
    window 0  `----------------------------------------------------'
    window 1       `--------------------------------------------------'
    window 2           `---------------------------------------------------'
    window 3                `--------------------------------------------------'

The windows of four rows in a row differ by three rows at each end. What they share is a window over
blocks of four rows, and slides by a block: the boundary scan finds it, with a quarter of its work.
What is left to do for each row depends on no other row, so that processors do it for many at a time:
a scan, where every step waits for the one before, is what takes time with cheap combines.

If W is not a multiple of four, what is shared has up to three rows before its first block.

Invariants, for the block that begins with row r
    I1  the ring holds the totals of the blocks that the boundary scan reads, block b at b & mask
    I2  shared holds the rows r - (W - 4) to r - 1
    I3  window j is row r - W + 1 + j + ... + row r - (W - 4) - 1, then shared, then row r + ... + row r + j

Cost in calls of combine: 3 for each row, and 1.5 for its share of a block. Space: a quarter of a window
for the ring, and that of the boundary scan.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sash.aggregators import boundary_scan
from sash.aggregators.contract import Jit
from sash.algebra.monoid import Function
from sash.compiling.cells import Values

FOUR = 4
SHORTEST = 2 * FOUR  # rows of a window: what is shared is at least a block
FEW = 8  # blocks that are combined anew for every answer: a scan of so few spends its time on beginning and ending
PIECE = 128  # blocks whose windows are made and answered at once: they stay in the first cache


class Plan(NamedTuple):
    """Windows of `rows` rows: blocks that four of them share, and how many rows before the first of those."""

    rows: int
    shared: boundary_scan.Plan
    rest: int
    n_ring: int


class Memory(NamedTuple):
    """What a scan writes to: totals of blocks, and what the boundary scan needs."""

    ring: Any
    shared: boundary_scan.Memory


class Blocks(NamedTuple):
    """Columns as blocks: they begin with row `origin`, and their totals are in a ring."""

    columns: Any
    origin: int
    ring: Any
    mask: int


class Target(NamedTuple):
    """Which windows are answered, and where."""

    rows: int
    rest: int
    end: int
    results: Any


def plan(rows: int) -> Plan:
    """Cut what four windows share into blocks."""
    shared = boundary_scan.plan(rows // FOUR - 1)
    longest = max(boundary_scan.LANES * shared.length, shared.rest, PIECE)
    return Plan(rows, shared, rows % FOUR, 1 << (shared.rows + longest).bit_length())


def memory(ops: Values, cut: Plan) -> Memory:
    """Allocate what `scan` needs."""
    return Memory(ops.allocate(cut.n_ring), boundary_scan.memory(ops, cut.shared))


def build(ops: Values, jit: Jit) -> Function:
    """Make scan(columns, begin, end, plan, memory, results), as the boundary scan has it."""
    load, store, lift, combine, lower = ops.load, ops.store, ops.lift, ops.combine, ops.lower
    as_rows, fill = _as_rows(ops, jit)
    first_answers = _first_answers(ops, jit, fill)
    piece = _piece(ops, jit)

    @jit
    def lengthen(columns: Any, r: int, shared: Any, base: int, count: int, target: Target) -> None:
        """Put the rows before its first block into what is shared (restores I2)."""
        for i in range(target.rest):
            first = r - (target.rows - FOUR) + target.rest - 1 - i
            n = target.rows - FOUR - target.rest + i
            for k in range(count):
                store(shared, base + k, combine(lift(columns, first + FOUR * k), load(shared, base + k), 1, n))

    @jit
    def some_answers(columns: Any, r: int, shared: Any, target: Target) -> None:
        """Up to four rows, where there are not enough for a piece."""
        n, entered = target.rows - FOUR, shared
        for j in range(min(FOUR, target.end - r)):
            entered = combine(entered, lift(columns, r + j), n + j, 1)
            window, last = entered, r - n - 1
            for step in range(3 - j):
                window = combine(lift(columns, last - step), window, 1, n + j + 1 + step)
            lower(target.results, r + j, window, target.rows)

    @jit
    def answer(blocks: Blocks, shared: Any, base: int, target: Target, start: int, end: int, cut: Any) -> None:
        """Windows over the blocks start to end - 1: each is shared by the rows of the block after it."""
        r = blocks.origin + FOUR * (start + 1)
        lengthen(blocks.columns, r, shared, base, end - start, target)
        n_whole = min(end - start, (target.end - r) // FOUR)
        done = n_whole if n_whole >= PIECE else 0
        for k in range(0, done, PIECE):
            own = min(k, done - PIECE)  # the last piece answers some rows again
            piece(blocks.columns, r + FOUR * own, shared, base + own, target)
        for k in range(done, end - start):
            some_answers(blocks.columns, r + FOUR * k, load(shared, base + k), target)

    @jit
    def share(ring: Any, n_blocks: int, shared: Any, count: int) -> None:
        """Combine the n_blocks blocks from each of `count` on."""
        for k in range(count):
            store(shared, k, load(ring, k))
        for i in range(1, n_blocks):
            for k in range(count):
                store(shared, k, combine(load(shared, k), load(ring, k + i), FOUR * i, FOUR))

    @jit
    def answers_by_few(blocks: Blocks, start: int, end: int, cut: Plan, shared: Any, target: Target) -> None:
        """The same as later_answers, for windows that share few blocks."""
        n_blocks = cut.shared.rows
        while start < end:
            count, first = min(PIECE, end - start), start - n_blocks + 1
            begin = Blocks(blocks.columns, blocks.origin + FOUR * first, blocks.ring, blocks.mask)
            fill(begin, 0, count + n_blocks - 1)
            share(blocks.ring, n_blocks, shared, count)
            answer(blocks, shared, 0, target, start, start + count, cut.shared)
            start += count

    later_answers = boundary_scan.build_later(as_rows, jit, fill, answer)

    def scan(columns: Any, begin: int, end: int, cut: Plan, room: Memory, results: Any) -> None:
        mask = cut.n_ring - 1
        if begin == 0:
            first_answers(Blocks(columns, 0, room.ring, mask), min(end, cut.rows), results)
            begin = cut.rows
        if begin < end:
            blocks = Blocks(columns, begin % FOUR, room.ring, mask)
            first, last = begin // FOUR - 1, (end - blocks.origin + FOUR - 1) // FOUR - 1
            target = Target(cut.rows, cut.rest, end, results)
            if cut.shared.rows <= FEW:
                answers_by_few(blocks, first, last, cut, room.shared.prefixes, target)
            else:
                fill(blocks, first - cut.shared.rows, first)
                later_answers(blocks, first, last, cut.shared, room.shared, target)

    return scan


def _as_rows(ops: Values, jit: Jit) -> tuple[Values, Function]:
    """Blocks as a scan sees rows, and fill(blocks, start, end), which finds their totals (restores I1)."""
    load, store, lift, combine = ops.load, ops.store, ops.lift, ops.combine

    @jit
    def fill_slots(columns: Any, r: int, ring: Any, slot: int, count: int) -> None:
        for k in range(count):
            i = r + FOUR * k
            first = combine(lift(columns, i), lift(columns, i + 1), 1, 1)
            second = combine(lift(columns, i + 2), lift(columns, i + 3), 1, 1)
            store(ring, slot + k, combine(first, second, 2, 2))

    @jit
    def fill(blocks: Blocks, start: int, end: int) -> None:
        while start < end:
            slot = start & blocks.mask
            count = min(end - start, blocks.mask + 1 - slot)
            fill_slots(blocks.columns, blocks.origin + FOUR * start, blocks.ring, slot, count)
            start += count

    @jit
    def lift_block(blocks: Blocks, block: int) -> Any:
        return load(blocks.ring, block & blocks.mask)

    @jit
    def combine_blocks(older: Any, newer: Any, n_older: int, n_newer: int) -> Any:
        return combine(older, newer, FOUR * n_older, FOUR * n_newer)

    return ops._replace(lift=lift_block, combine=combine_blocks), fill


def _piece(ops: Values, jit: Jit) -> Function:
    """Make piece(columns, r, shared, base, target): the windows of a piece of rows, from r on (I3)."""
    load, lift, combine, lower = ops.load, ops.lift, ops.combine, ops.lower

    @jit
    def piece(columns: Any, r: int, shared: Any, base: int, target: Target) -> None:
        results, rows = target.results, max(target.rows, SHORTEST)  # so that compilers know: more than one row
        a, n = r - rows + 1, rows - FOUR
        for k in range(PIECE):
            i, j, own = a + FOUR * k, r + FOUR * k, load(shared, base + k)
            last = lift(columns, i + 2)
            last_two = combine(lift(columns, i + 1), last, 1, 1)
            last_three = combine(lift(columns, i), last_two, 1, 2)
            one = lift(columns, j)
            two = combine(one, lift(columns, j + 1), 1, 1)
            three = combine(two, lift(columns, j + 2), 2, 1)
            four = combine(three, lift(columns, j + 3), 3, 1)
            lower(results, j, combine(combine(last_three, own, 3, n), one, n + 3, 1), rows)
            lower(results, j + 1, combine(combine(last_two, own, 2, n), two, n + 2, 2), rows)
            lower(results, j + 2, combine(combine(last, own, 1, n), three, n + 1, 3), rows)
            lower(results, j + 3, combine(own, four, n, 4), rows)

    return piece


def _first_answers(ops: Values, jit: Jit, fill: Function) -> Function:
    """Make first_answers(blocks, end, results): windows that began with the first row."""
    load, store, lift, combine, lower = ops.load, ops.store, ops.lift, ops.combine, ops.lower

    @jit
    def one_by_one(columns: Any, begin: int, end: int, running: Any, results: Any) -> Any:
        for i in range(begin, end):
            running = combine(running, lift(columns, i), i, 1)
            lower(results, i, running, i + 1)
        return running

    @jit
    def before_each(ring: Any, running: Any, r: int) -> Any:
        """Turn totals of blocks into what came before each block; what came before the block after them."""
        for k in range(PIECE):
            total = load(ring, k)
            store(ring, k, running)
            running = combine(running, total, r + FOUR * k, FOUR)
        return running

    @jit
    def piece(columns: Any, r: int, before: Any, results: Any) -> None:
        for k in range(PIECE):
            i, own = r + FOUR * k, load(before, k)
            n = max(FOUR, i)  # so that compilers know: more than one row
            one = lift(columns, i)
            two = combine(one, lift(columns, i + 1), 1, 1)
            three = combine(two, lift(columns, i + 2), 2, 1)
            four = combine(three, lift(columns, i + 3), 3, 1)
            lower(results, i, combine(own, one, n, 1), n + 1)
            lower(results, i + 1, combine(own, two, n, 2), n + 2)
            lower(results, i + 2, combine(own, three, n, 3), n + 3)
            lower(results, i + 3, combine(own, four, n, 4), n + 4)

    @jit
    def first_answers(blocks: Blocks, end: int, results: Any) -> None:
        columns, ring = blocks.columns, blocks.ring
        running = lift(columns, 0)
        lower(results, 0, running, 1)
        running = one_by_one(columns, 1, min(end, FOUR), running, results)
        r = min(end, FOUR)
        while end - r >= FOUR * PIECE:
            fill(Blocks(columns, r, ring, blocks.mask), 0, PIECE)
            running = before_each(ring, running, r)
            piece(columns, r, ring, results)
            r += FOUR * PIECE
        one_by_one(columns, r, end, running, results)

    return first_answers
