"""Suffixes beside prefixes: fixed windows over whole columns, for cheap combines of single numbers.

    rows   ... | old chunk | next old chunk | chunks between | chunk | ...
    window           `----- suffix ----------- middle ----------'- prefix
                            suffixes are made here <--            --> while windows are made there

The boundary scan with chunks so short that all of one fits the first cache. Each step of a scan waits
for the one before, and an addition takes longer to arrive than to begin. So rows are taken by two, with
one step of the scan for both; and the suffixes for the next chunk are made beside the windows of this
one, in one loop: neither scan waits for the other. The middle goes into the prefixes as their
first value. Windows are kept where the answers will be.

Invariants, when chunk j of a period of `rows` rows is entered
    I1  entered holds total 0 + ... + total (j - 1) of this period
    I2  leaving[i] holds total i + ... + last total of the period before
    I3  suffixes[i] holds the rows of the old chunk after row i, for all but its last

Cost in calls of combine: 5 for each row, of which 1.5 wait for the one before, and 3 for each chunk.
Space: the suffixes of 2 chunks, and 2 totals for each chunk of a period.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sash.aggregators import boundary_scan
from sash.aggregators.contract import Jit
from sash.algebra.monoid import Function
from sash.compiling.cells import Values

LONGEST = 256  # rows of a chunk: what is read and written for one fits the first cache, and then some
EIGHT = 8


class Plan(NamedTuple):
    """How a period of `rows` rows is cut into chunks."""

    rows: int
    length: int  # of every chunk but the last
    n_chunks: int
    last: int  # length of the last one


class Memory(NamedTuple):
    """What a scan writes to: suffixes of two chunks, and totals of a period."""

    suffixes: Any
    leaving: Any
    totals: Any


class Chunk(NamedTuple):
    """A chunk that enters or leaves: its first row, its length, and where its suffixes, or those before it, are."""

    start: int
    length: int
    base: int


def plan(rows: int) -> Plan:
    """Cut a period into chunks of one length, as far as possible."""
    n_chunks = -(-rows // LONGEST)
    length = -(-rows // n_chunks)
    n_chunks = -(-rows // length)
    return Plan(rows, length, n_chunks, rows - (n_chunks - 1) * length)


def memory(ops: Values, cut: Plan) -> Memory:
    """Allocate what `scan` needs."""
    return Memory(ops.allocate(2 * cut.length), ops.allocate(cut.n_chunks), ops.allocate(cut.n_chunks))


def build(ops: Values, jit: Jit, *, is_answer: bool) -> Function:
    """Make scan(columns, begin, end, plan, memory, results): the windows of the rows begin to end - 1.

    `begin` is 0, or has a whole window before it. `is_answer`: a partial is the answer itself.
    """
    load, store, lift, combine, lower = ops.load, ops.store, ops.lift, ops.combine, ops.lower
    later_answers = _later_answers(ops, jit, is_answer=is_answer)

    @jit
    def first_windows(columns: Any, end: int, windows: Any) -> None:
        """Windows that began with the first row."""
        running = lift(columns, 0)
        store(windows, 0, running)
        n_twos = (end - 1) // 2
        for k in range(n_twos):
            i = 1 + 2 * k
            one = lift(columns, i)
            store(windows, i, combine(running, one, i, 1))
            running = combine(running, combine(one, lift(columns, i + 1), 1, 1), i, 2)
            store(windows, i + 1, running)
        if end > 1 + 2 * n_twos:
            store(windows, end - 1, combine(running, lift(columns, end - 1), end - 1, 1))

    @jit
    def answer_first(windows: Any, end: int, results: Any) -> None:
        for i in range(end):
            lower(results, i, load(windows, i), i + 1)

    def scan(columns: Any, begin: int, end: int, cut: Plan, room: Memory, results: Any) -> None:
        windows = results[0]
        if begin == 0:
            n_first = min(end, cut.rows)
            first_windows(columns, n_first, windows)
            if not is_answer:
                answer_first(windows, n_first, results)
            begin = cut.rows
        if begin < end:
            later_answers(columns, begin, end, cut, room, results)

    return scan


def _later_answers(ops: Values, jit: Jit, *, is_answer: bool) -> Function:
    """Make later_answers(columns, begin, end, plan, memory, results): `begin` has a whole window before it."""
    load, store, lift, combine, lower = ops.load, ops.store, ops.lift, ops.combine, ops.lower
    leave, (begin_suffixes, scan_chunk) = boundary_scan.build_leave(ops, jit), _scans(ops, jit)

    @jit
    def length_of(chunk: int, cut: Plan) -> int:
        return cut.last if chunk == cut.n_chunks - 1 else cut.length

    @jit
    def total_of(columns: Any, row: int, length: int) -> Any:
        """Some rows together; eight of them wait for one another less than one by one."""
        total, n_eights = lift(columns, row), (length - 1) // EIGHT
        for k in range(n_eights):
            i = row + 1 + EIGHT * k
            one = combine(lift(columns, i), lift(columns, i + 1), 1, 1)
            two = combine(lift(columns, i + 2), lift(columns, i + 3), 1, 1)
            three = combine(lift(columns, i + 4), lift(columns, i + 5), 1, 1)
            four = combine(lift(columns, i + 6), lift(columns, i + 7), 1, 1)
            eight = combine(combine(one, two, 2, 2), combine(three, four, 2, 2), 4, 4)
            total = combine(total, eight, 1 + EIGHT * k, EIGHT)
        for i in range(1 + EIGHT * n_eights, length):
            total = combine(total, lift(columns, row + i), i, 1)
        return total

    @jit
    def first_prefix(columns: Any, start: int, cut: Plan, leaving: Any, chunk: int, entered: Any) -> Any:
        """The first row of a chunk, and before it all that lies between the chunk and the old one."""
        first, n_entered = lift(columns, start), chunk * cut.length
        if cut.n_chunks == 1:
            return first
        if chunk == 0:
            return combine(load(leaving, 1), first, cut.rows - cut.length, 1)
        if chunk == cut.n_chunks - 1:
            return combine(entered, first, n_entered, 1)
        n_leaving = cut.rows - n_entered - cut.length
        middle = combine(load(leaving, chunk + 1), entered, n_leaving, n_entered)
        return combine(middle, first, n_leaving + n_entered, 1)

    @jit
    def answer(windows: Any, start: int, end: int, rows: int, results: Any) -> None:
        for i in range(start, end):
            lower(results, i, load(windows, i), rows)

    @jit
    def later_answers(columns: Any, begin: int, end: int, cut: Plan, room: Memory, results: Any) -> None:
        row = begin - cut.rows
        for chunk in range(cut.n_chunks):
            store(room.totals, chunk, total_of(columns, row, length_of(chunk, cut)))
            row += cut.length
        windows, start, chunk = results[0], begin, 0
        entered = lift(columns, begin)  # of its type: nothing has entered yet
        own = Chunk(begin, length_of(0, cut), 0)
        begin_suffixes(columns, Chunk(begin - cut.rows, own.length, 0), room.suffixes)
        while start < end:
            if chunk == 0:
                leave(cut, cut.n_chunks - 1, room.leaving, room.totals)
            following, after = 0 if chunk == cut.n_chunks - 1 else chunk + 1, start + own.length
            n_next, count = length_of(following, cut), min(own.length, end - start)
            old = Chunk(after - cut.rows, n_next if after < end else 0, cut.length - own.base)
            first = first_prefix(columns, start, cut, room.leaving, chunk, entered)
            total = scan_chunk(columns, own, count, old, cut.rows, first, room.suffixes, windows)
            if not is_answer:
                answer(windows, start, start + count, cut.rows, results)
            entered = total if chunk == 0 else combine(entered, total, chunk * cut.length, own.length)
            store(room.totals, chunk, total)
            start, chunk, own = after, following, Chunk(after, n_next, old.base)

    return later_answers


def _scans(ops: Values, jit: Jit) -> tuple[Function, Function]:
    """Make begin_suffixes, of the first old chunk, and scan_chunk, which makes windows and the next suffixes."""
    load, store, lift, combine = ops.load, ops.store, ops.lift, ops.combine

    @jit
    def last_of(columns: Any, old: Chunk, suffixes: Any) -> Any:
        """The last row of a chunk, which is its shortest suffix."""
        last = lift(columns, old.start + old.length - 1)
        store(suffixes, old.base + old.length - 2, last)
        return last

    @jit
    def leave_two(columns: Any, old: Chunk, k: int, suffix: Any, suffixes: Any) -> Any:
        """Two suffixes more, by one step of the scan."""
        i, n = old.length - 2 - 2 * k, 2 * k + 1
        one = lift(columns, old.start + i)
        two = combine(lift(columns, old.start + i - 1), one, 1, 1)
        store(suffixes, old.base + i - 1, combine(one, suffix, 1, n))
        suffix = combine(two, suffix, 2, n)
        store(suffixes, old.base + i - 2, suffix)
        return suffix

    @jit
    def leave_rest(columns: Any, old: Chunk, begin: int, suffix: Any, suffixes: Any) -> None:
        """All suffixes after those of the first `begin` steps (restores I3)."""
        for k in range(begin, (old.length - 2) // 2):
            suffix = leave_two(columns, old, k, suffix, suffixes)
        if old.length % 2 == 1:
            store(suffixes, old.base, combine(lift(columns, old.start + 1), suffix, 1, old.length - 2))

    @jit
    def begin_suffixes(columns: Any, old: Chunk, suffixes: Any) -> None:
        if old.length > 1:
            leave_rest(columns, old, 0, last_of(columns, old, suffixes), suffixes)

    @jit
    def enter_two(
        columns: Any, own: Chunk, k: int, n: int, running: Any, total: Any, suffixes: Any, windows: Any
    ) -> Any:
        """Two windows more, by one step of the scan; n rows lie before the chunk in all of its windows."""
        i = 1 + 2 * k
        row, place, n_older = own.start + i, own.base + i, own.length - 1 - i
        one = lift(columns, row)
        two = combine(one, lift(columns, row + 1), 1, 1)
        window = combine(running, one, n + i, 1)
        store(windows, row, combine(load(suffixes, place), window, n_older, n + i + 1))
        running = combine(running, two, n + i, 2)
        store(windows, row + 1, combine(load(suffixes, place + 1), running, n_older - 1, n + i + 2))
        return running, combine(total, two, i, 2)

    @jit
    def enter_one(own: Chunk, i: int, n: int, running: Any, suffixes: Any, windows: Any) -> None:
        """The window of a row; for the last row of a chunk nothing of the old one is left."""
        if i < own.length - 1:
            running = combine(load(suffixes, own.base + i), running, own.length - 1 - i, n + i + 1)
        store(windows, own.start + i, running)

    @jit
    def scan_chunk(
        columns: Any, own: Chunk, count: int, old: Chunk, rows: int, running: Any, suffixes: Any, windows: Any
    ) -> Any:
        """The windows of `count` rows of a chunk, and the suffixes of the one that leaves next; the rows' total."""
        n = rows - own.length
        total = suffix = lift(columns, own.start)
        enter_one(own, 0, n, running, suffixes, windows)
        n_enter, n_both = max(min(count, own.length - 1) - 1, 0) // 2, 0
        if old.length > 1:
            suffix, n_both = last_of(columns, old, suffixes), min(n_enter, (old.length - 2) // 2)
        for k in range(n_both):
            running, total = enter_two(columns, own, k, n, running, total, suffixes, windows)
            suffix = leave_two(columns, old, k, suffix, suffixes)
        for k in range(n_both, n_enter):
            running, total = enter_two(columns, own, k, n, running, total, suffixes, windows)
        if old.length > 1:
            leave_rest(columns, old, n_both, suffix, suffixes)
        for i in range(1 + 2 * n_enter, count):
            row = lift(columns, own.start + i)
            running, total = combine(running, row, n + i, 1), combine(total, row, i, 1)
            enter_one(own, i, n, running, suffixes, windows)
        return total

    return begin_suffixes, scan_chunk
