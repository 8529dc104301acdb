"""Sequential Boundary Aggregator: windows of a fixed range and slide, by prefixes and suffixes of chunks.

    slices  | chunk        | chunk        | chunk being filled      |
    slots   | suffixes     | suffixes     | slices        |         |
                 ^ start                  `-- PREFIX -----'
            window = suffix at start + whole chunks between + PREFIX + SLICE

Rows that will leave together are combined on the way in: a *slice* is as long as the slide. Slices
are grouped into chunks. Of the chunk being filled only the running total is needed; when it is
full, its total becomes the first suffix, and one pass from the right makes the others. Answering
takes the suffix where the window starts, the chunks between (their first suffix is their total) and
the running total.

Invariants
    I1  slot j holds slice j + ... + the last slice of its chunk     for slices of finished chunks
    I2  slot j holds slice j                                         for slices of the last chunk, unfinished
    I3  PREFIX holds the slices of the chunk that the last slice is in
    I4  SLICE holds the rows since the last slice
    I5  CURRENT is the first slice of the chunk that the last slice is in: no division is needed to find it

Cost in calls of combine, for slices of one row: insert 1, and once in every chunk of b slices b - 2
for the suffixes; answer 1 or 2 with the chunk length of theorem 1 or 2. Space: up to n + b slices.

Paper: Zhang, Akbarinia, Toumani, "Efficient incremental computation of aggregations over sliding
windows", KDD (2021), sections 4.1 to 4.3.
Departures and errata: for a range of 2^20 and a slide of 1 theorem 1 gives 524289, where the text
prints 5242884. Slots are a ring, so suffixes overwrite slices in place, as section 4.4 counts.
"""

from __future__ import annotations

from typing import NamedTuple

from sash.aggregators.contract import (
    ASSOCIATIVE,
    END,
    MASK,
    N_COMMON,
    OLDEST,
    Algorithm,
    Card,
    Jit,
    Shape,
    State,
    View,
)  # fmt: skip
from sash.algebra.monoid import Function
from sash.compiling.cells import Cells
from sash.errors import DeclarationError

CHUNK, SLIDE, FILLED, CURRENT = range(N_COMMON, N_COMMON + 4)  # slices a chunk; rows a slice; rows since
SLICE, PREFIX, ANSWER, ROW, RING = 0, 1, 2, 3, 4

SHAPE = Shape(n_scratch=4, n_registers=N_COMMON + 4)


class Boundaries(NamedTuple):
    """The operations of a boundary aggregator."""

    add: Function  # (state, columns, i): row i goes into the slice being filled
    close: Function  # (state) -> whether this slice was the last of its chunk
    finish: Function  # (state, first): slots of the chunk that begins at slice `first` become suffixes
    answer: Function  # (state, n, with_slice) -> cell of the last n slices, and the rows since


def chunk_by_count(range_rows: int, slide_rows: int) -> int:
    """Theorem 1: the chunk length, in slices, for which no suffix is waited for."""
    n, rest = divmod(range_rows, slide_rows)
    if n <= slide_rows + rest + 1:
        return n
    return (slide_rows * (n + 1) + rest + 1) // (slide_rows + 1)


def chunk_by_time(span: float, slide: float, combine_time: float) -> int:
    """Theorem 2: the same for time windows, where one combine takes `combine_time`."""
    n = int(span // slide)
    rest = span % slide
    extra = slide * rest + combine_time if rest else 0.0
    if n <= (slide + 2 * combine_time + extra) / combine_time:
        return n
    return min(n, int((n * (slide + combine_time) + slide + 2 * combine_time + extra) // (slide + 2 * combine_time)))


def require_window(range_: float, slide: float) -> None:
    """Refuse ranges and slides that make no window."""
    if not slide > 0:
        raise DeclarationError(f"slide must be positive, got {slide!r}")
    if not range_ >= slide:
        raise DeclarationError(f"range must be at least the slide, got range={range_!r} and slide={slide!r}")


def build(cells: Cells, jit: Jit) -> Boundaries:
    """Make the operations for one kind of cell."""
    combine, clear, lift, transfer = cells.combine, cells.clear, cells.lift, cells.transfer

    @jit
    def add(s: State, columns: object, i: int) -> None:
        if s.at[FILLED] == 0:
            lift(s.pool, SLICE, columns, i)
        else:
            lift(s.pool, ROW, columns, i)
            combine(s.pool, SLICE, SLICE, ROW)
        s.at[FILLED] += 1

    @jit
    def close(s: State) -> bool:
        at, end = s.at, s.at[END]
        if at[FILLED] == 0:
            clear(s.pool, SLICE)
        transfer(s.pool, RING + (end & at[MASK]), s.pool, SLICE)
        if end == at[CURRENT] + at[CHUNK]:
            at[CURRENT] = end
        if end == at[CURRENT]:
            transfer(s.pool, PREFIX, s.pool, SLICE)
        else:
            combine(s.pool, PREFIX, PREFIX, SLICE)
        at[END] = end + 1
        at[OLDEST] = max(at[OLDEST], end + 1 - at[MASK])  # slots before are used again
        at[FILLED] = 0
        if end + 1 < at[CURRENT] + at[CHUNK]:
            return False
        transfer(s.pool, RING + (at[CURRENT] & at[MASK]), s.pool, PREFIX)
        return True

    @jit
    def finish(s: State, first: int) -> None:
        """Turn the slices of a chunk into suffixes (restores I1); the first one is its total already."""
        mask = s.at[MASK]
        for j in range(first + s.at[CHUNK] - 2, first, -1):
            combine(s.pool, RING + (j & mask), RING + (j & mask), RING + ((j + 1) & mask))

    @jit
    def answer(s: State, n: int, with_slice: bool) -> int:
        at, mask, length = s.at, s.at[MASK], s.at[CHUNK]
        end, current = at[END], at[CURRENT]
        start = max(at[OLDEST], end - n)
        cell = PREFIX
        if start < current:
            cell, first = RING + (start & mask), current
            while first - length > start:
                first -= length
            while first < current:
                combine(s.pool, ANSWER, cell, RING + (first & mask))
                cell, first = ANSWER, first + length
            combine(s.pool, ANSWER, cell, PREFIX)
            cell = ANSWER
        if not with_slice or at[FILLED] == 0:
            return cell
        if end == at[OLDEST]:
            return SLICE
        combine(s.pool, ANSWER, cell, SLICE)
        return ANSWER

    return Boundaries(add, close, finish, answer)


def check(view: View) -> None:
    """Check I1 to I5, for slices of a number of rows."""
    end, mask = view.at[END], view.at[MASK]
    length, slide, filled = view.at[CHUNK], view.at[SLIDE], view.at[FILLED]
    current = (end - 1) // length * length
    view.require("I5", end == 0 or view.at[CURRENT] == current)
    for j in range(max(view.at[OLDEST], end - mask), end):
        last = j // length * length + length
        is_finished = last <= end
        stop = last if is_finished else j + 1
        view.require_cell("I1" if is_finished else "I2", RING + (j & mask), j * slide, stop * slide)
    if end:
        view.require_cell("I3", PREFIX, current * slide, end * slide)
    if filled:
        view.require_cell("I4", SLICE, end * slide, end * slide + filled)


ALGORITHM = Algorithm(
    Card(
        "sba",
        title="Sequential Boundary Aggregator",
        order="in order",
        needs=ASSOCIATIVE,
        amortised="3",
        worst="n / 2 + 3",
        space="1.5 n",
        fixed=True,
        paper="Zhang, Akbarinia, Toumani, KDD (2021)",
    ),
    SHAPE,
    build,  # type: ignore[arg-type]
    check,
)
