"""Boundary scan: fixed windows over whole columns, by prefixes and suffixes of chunks.

    rows   ... | old chunk          | chunks between | chunk          | ...
    window          `-- suffix -----'---- middle ----'-- prefix --'
                    older than rows - 1 leave one by one           one by one they enter

The window of a row is a suffix of the chunk that is leaving, the whole chunks between, and a prefix
of the chunk that is entering: the idea of SBA, with three changes for the memory of today. Chunks
are as long as fits the first cache, however long the window, and repeat with period `rows`, so that
the leaving chunk is always whole. The middle goes into the suffix scan as its first value, so that
it costs nothing per row. And four chunks are scanned in step: each scan waits for its last
addition, four of them wait together.

Layout of a period: n_chunks chunks of `length` rows, then one of the `rest`.

Invariants, when chunk j of a period is entered
    I1  entered holds total 0 + ... + total (j - 1) of this period
    I2  leaving[i] holds total i + ... + last total of the period before

Cost in calls of combine: 3 for each row, and 3 for each chunk. Space: 4 chunks and 2 totals for
each chunk of a period.

Paper: Zhang, Akbarinia, Toumani, "Efficient incremental computation of aggregations over sliding
windows", KDD (2021), section 4.
Departure: the paper's chunk is about half a window (theorem 1), because there a second thread
computes the suffixes in time; here the chunk is what the cache holds.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sash.aggregators.contract import Jit
from sash.algebra.monoid import Function
from sash.compiling.cells import Values

LANES = 4
LONGEST = 2048  # rows of a chunk: the prefixes of four fit the second-level cache


class Plan(NamedTuple):
    """How a period of `rows` rows is cut into chunks."""

    rows: int
    length: int  # of every chunk but the last
    n_chunks: int  # of that length
    rest: int  # length of the last one; 0: there is none
    n_prefixes: int  # room for prefixes that are not answered yet


class Memory(NamedTuple):
    """What a scan writes to: prefixes of four chunks, and totals of a period."""

    prefixes: Any
    leaving: Any
    totals: Any


class Place(NamedTuple):
    """Where a scan is: a row, its chunk in the period, and where its prefix is kept."""

    start: int
    chunk: int
    base: int


def plan(rows: int) -> Plan:
    """Cut a period: one chunk if it is short, else a multiple of four and a rest."""
    if rows <= LONGEST:
        return Plan(rows, rows, 1, 0, LANES * LONGEST)
    groups = -(-rows // (LANES * LONGEST))
    length = rows // (LANES * groups)
    rest = rows - LANES * groups * length
    return Plan(rows, length, LANES * groups, rest, max(LANES * LONGEST, rest))


def memory(ops: Values, cut: Plan) -> Memory:
    """Allocate what `scan` needs: short chunks are answered many at a time."""
    n_totals = cut.n_chunks + 1
    return Memory(ops.allocate(cut.n_prefixes), ops.allocate(n_totals), ops.allocate(n_totals))


def build(ops: Values, jit: Jit, *, in_place: bool, is_answer: bool) -> Function:
    """Make scan(columns, begin, end, plan, memory, results): the windows of the rows begin to end - 1.

    `begin` is 0, or has a whole window before it. `in_place`: a partial is of the type of an answer,
    so prefixes are kept where the answers will be. `is_answer`: and a partial is the answer itself.
    """
    load, lift, combine, lower = ops.load, ops.lift, ops.combine, ops.lower

    @jit
    def answer(columns: Any, prefixes: Any, base: int, results: Any, start: int, end: int, cut: Plan) -> None:
        for i in range(end - start):
            lower(results, start + i, load(prefixes, base + i), cut.rows)

    @jit
    def first_answers(columns: Any, end: int, results: Any) -> None:
        """Windows that began with the first row."""
        running = lift(columns, 0)
        lower(results, 0, running, 1)
        for i in range(1, end):
            running = combine(running, lift(columns, i), i, 1)
            lower(results, i, running, i + 1)

    @jit
    def nothing(columns: Any, start: int, end: int) -> None:
        pass

    later_answers = build_later(ops, jit, nothing, answer, in_place=in_place, is_answer=is_answer)

    def scan(columns: Any, begin: int, end: int, cut: Plan, room: Memory, results: Any) -> None:
        if begin == 0:
            first_answers(columns, min(end, cut.rows), results)
            begin = cut.rows
        if begin < end:
            later_answers(columns, begin, end, cut, room, results)

    return scan


def build_later(
    ops: Values, jit: Jit, prepare: Function, answer: Function, *, in_place: bool = False, is_answer: bool = False
) -> Function:
    """Make later_answers(columns, begin, end, plan, memory, results): `begin` has a whole window before it.

    prepare(columns, start, end) is called before the rows start to end - 1 are lifted the first time.
    answer(columns, prefixes, base, results, start, end, plan) is called with the windows of the rows start
    to end - 1, in the prefixes from base on.
    """
    load, store, lift, combine = ops.load, ops.store, ops.lift, ops.combine
    leave, (forward_four, backward_four) = build_leave(ops, jit), _four_chunks(ops, jit)

    @jit
    def forward(columns: Any, start: int, length: int, prefixes: Any, base: int) -> Any:
        """Store the prefixes of one chunk; its total."""
        total = lift(columns, start)
        store(prefixes, base, total)
        for i in range(1, length):
            total = combine(total, lift(columns, start + i), i, 1)
            store(prefixes, base + i, total)
        return total

    @jit
    def backward(columns: Any, old: int, last: int, prefixes: Any, base: int, older: Any, n_older: int) -> None:
        """Put the older part of the window before every prefix, from row `last` of the chunk down."""
        for step in range(last + 1):
            i = last - step
            store(prefixes, base + i, combine(older, load(prefixes, base + i), n_older + step, i + 1))
            older = combine(lift(columns, old + i), older, 1, n_older + step)

    @jit
    def period_before(columns: Any, begin: int, cut: Plan, totals: Any) -> None:
        """The totals of the chunks of the period that ends with row `begin`."""
        row = begin - cut.rows
        for chunk in range(cut.n_chunks + 1 if cut.rest > 0 else cut.n_chunks):
            length = cut.rest if chunk == cut.n_chunks else cut.length
            total = lift(columns, row)
            for i in range(1, length):
                total = combine(total, lift(columns, row + i), i, 1)
            store(totals, chunk, total)
            row += length

    @jit
    def middle(cut: Plan, leaving: Any, chunk: int, entered: Any) -> Any:
        """What lies between chunk and its predecessor one period ago; there is more than one chunk."""
        before = chunk * cut.length
        after = cut.rows - before - cut.length
        if after <= 0 or chunk == cut.n_chunks:
            return entered
        if before == 0:
            return load(leaving, chunk + 1)
        return combine(load(leaving, chunk + 1), entered, after, before)

    @jit
    def enter(entered: Any, total: Any, chunk: int, cut: Plan) -> Any:
        return total if chunk == 0 else combine(entered, total, chunk * cut.length, cut.length)

    @jit
    def four(columns: Any, at: Place, cut: Plan, room: Memory, prefixes: Any, entered: Any) -> Any:
        """Four chunks of one period in step; what has entered after them."""
        start, length, chunk = at.start, cut.length, at.chunk
        totals = forward_four(columns, start, length, prefixes, at.base)
        old = start - cut.rows
        if cut.n_chunks == 1:
            older = (
                lift(columns, old + length - 1), lift(columns, old + 2 * length - 1),
                lift(columns, old + 3 * length - 1), lift(columns, old + 4 * length - 1),
            )  # fmt: skip
            backward_four(columns, old, length, prefixes, at.base, older, 1)
            return entered
        after_1 = enter(entered, totals[0], chunk, cut)
        after_2 = enter(after_1, totals[1], chunk + 1, cut)
        after_3 = enter(after_2, totals[2], chunk + 2, cut)
        older = (
            middle(cut, room.leaving, chunk, entered), middle(cut, room.leaving, chunk + 1, after_1),
            middle(cut, room.leaving, chunk + 2, after_2), middle(cut, room.leaving, chunk + 3, after_3),
        )  # fmt: skip
        for lane in range(LANES):
            store(room.totals, chunk + lane, totals[lane])
        backward_four(columns, old, length, prefixes, at.base, older, cut.rows - length)
        return enter(after_3, totals[3], chunk + 3, cut)

    @jit
    def one(columns: Any, at: Place, length: int, cut: Plan, room: Memory, prefixes: Any, entered: Any) -> Any:
        """One chunk, or the `length` rows of it that there are; what has entered after it."""
        total = forward(columns, at.start, length, prefixes, at.base)
        whole = cut.rest if at.chunk == cut.n_chunks else cut.length
        old, last = at.start - cut.rows, whole - 1
        if cut.n_chunks == 1:
            older, n_older, last = lift(columns, old + last), 1, last - 1
        else:
            older, n_older = middle(cut, room.leaving, at.chunk, entered), cut.rows - whole
        while last >= length:  # rows of the old chunk that are in every one of these windows
            older = combine(lift(columns, old + last), older, 1, n_older)
            last, n_older = last - 1, n_older + 1
        backward(columns, old, last, prefixes, at.base, older, n_older)
        store(room.totals, at.chunk, total)
        return enter(entered, total, at.chunk, cut)

    @jit
    def later_answers(columns: Any, begin: int, end: int, cut: Plan, room: Memory, results: Any) -> None:
        """The rows begin to end - 1, all of which have `rows` rows before them."""
        period_before(columns, begin, cut, room.totals)
        prefixes = results[0] if in_place else room.prefixes
        start = answered = begin
        entered, chunk = lift(columns, begin), 0
        while start < end:
            if chunk == 0:
                leave(cut, cut.n_chunks if cut.rest > 0 else cut.n_chunks - 1, room.leaving, room.totals)
            at = Place(start, chunk, start if in_place else start - answered)
            is_rest = chunk == cut.n_chunks
            if end - start >= LANES * cut.length and not is_rest:
                prepare(columns, start, start + LANES * cut.length)
                entered = four(columns, at, cut, room, prefixes, entered)
                start, chunk = start + LANES * cut.length, chunk + LANES
            else:
                length = min(cut.rest if is_rest else cut.length, end - start)
                prepare(columns, start, start + length)
                entered = one(columns, at, length, cut, room, prefixes, entered)
                start, chunk = start + length, chunk + 1
            if chunk > cut.n_chunks or (cut.rest == 0 and chunk >= cut.n_chunks):
                chunk = 0
            next_up = cut.rest if chunk == cut.n_chunks else LANES * cut.length
            is_full = in_place or start - answered + next_up > cut.n_prefixes
            if not is_answer and (is_full or start >= end):
                answer(columns, prefixes, answered if in_place else 0, results, answered, start, cut)
                answered = start

    return later_answers


def build_leave(ops: Values, jit: Jit) -> Function:
    """Make leave(plan, last, leaving, totals), for a period whose last chunk has that number."""
    load, store, combine = ops.load, ops.store, ops.combine

    @jit
    def leave(cut: Any, last: int, leaving: Any, totals: Any) -> None:
        """The period is over: its totals, summed up from the right, are what will leave (restores I2)."""
        suffix = load(totals, last)
        store(leaving, last, suffix)
        for j in range(last - 1, -1, -1):
            suffix = combine(load(totals, j), suffix, cut.length, cut.rows - (j + 1) * cut.length)
            store(leaving, j, suffix)

    return leave


def _four_chunks(ops: Values, jit: Jit) -> tuple[Function, Function]:
    """The two scans over four adjacent chunks in step."""
    load, store, lift, combine = ops.load, ops.store, ops.lift, ops.combine

    @jit
    def forward_four(columns: Any, start: int, length: int, prefixes: Any, base: int) -> Any:
        s_1, s_2, s_3 = start + length, start + 2 * length, start + 3 * length
        b_1, b_2, b_3 = base + length, base + 2 * length, base + 3 * length
        t_0, t_1, t_2, t_3 = lift(columns, start), lift(columns, s_1), lift(columns, s_2), lift(columns, s_3)
        store(prefixes, base, t_0)
        store(prefixes, b_1, t_1)
        store(prefixes, b_2, t_2)
        store(prefixes, b_3, t_3)
        for i in range(1, length):
            t_0 = combine(t_0, lift(columns, start + i), i, 1)
            t_1 = combine(t_1, lift(columns, s_1 + i), i, 1)
            t_2 = combine(t_2, lift(columns, s_2 + i), i, 1)
            t_3 = combine(t_3, lift(columns, s_3 + i), i, 1)
            store(prefixes, base + i, t_0)
            store(prefixes, b_1 + i, t_1)
            store(prefixes, b_2 + i, t_2)
            store(prefixes, b_3 + i, t_3)
        return (t_0, t_1, t_2, t_3)

    @jit
    def backward_four(columns: Any, old: int, length: int, prefixes: Any, base: int, older: Any, n_older: int) -> None:
        o_1, o_2, o_3 = old + length, old + 2 * length, old + 3 * length
        b_1, b_2, b_3 = base + length, base + 2 * length, base + 3 * length
        q_0, q_1, q_2, q_3 = older
        last = length - 2 if n_older == 1 else length - 1  # a single older row is the last of the old chunk
        for step in range(last + 1):
            i, n = last - step, n_older + step
            store(prefixes, base + i, combine(q_0, load(prefixes, base + i), n, i + 1))
            store(prefixes, b_1 + i, combine(q_1, load(prefixes, b_1 + i), n, i + 1))
            store(prefixes, b_2 + i, combine(q_2, load(prefixes, b_2 + i), n, i + 1))
            store(prefixes, b_3 + i, combine(q_3, load(prefixes, b_3 + i), n, i + 1))
            q_0 = combine(lift(columns, old + i), q_0, 1, n)
            q_1 = combine(lift(columns, o_1 + i), q_1, 1, n)
            q_2 = combine(lift(columns, o_2 + i), q_2, 1, n)
            q_3 = combine(lift(columns, o_3 + i), q_3, 1, n)

    return forward_four, backward_four
