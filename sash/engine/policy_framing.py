"""Frames of a slide policy: the window of each row, from what the policy says of its own aggregates.

    START        |           row i
      | old ---> |             |       once row i has come, `old` grows by a row while the policy says that it must go;
      `------- total ----------'       what it has grown to leaves, and the rest is the window of row i

The total comes from an in-order algorithm, the old part is folded from the rows themselves. Only rows that leave are
in it, and one more: over the life of a window each row is folded twice at most, and asked about once, plus once for
each row that comes.

Invariants between calls
    I1  the structure holds rows START to ROW - 1, all of the key of row ROW - 1
    I2  FIRST is the first row of that key

Cost in calls of combine, beside that of Two-Stacks Lite: less than 2 a row. Space: the rows of the window.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, NamedTuple, Protocol

import numpy as np

from sash.aggregators import two_stacks_lite
from sash.aggregators.contract import END, MASK, OLDEST, Fifo, State
from sash.aggregators.policy_search import OLD_ROW, TOTAL_ROW, Decision
from sash.algebra.monoid import Function, Monoid
from sash.compiling.cells import Cells
from sash.compiling.jit import compiled, entry, interpreted, is_enabled
from sash.engine.columns import Column
from sash.engine.driving import COLUMNS, ELEMENTS, forgetter
from sash.engine.policing import decision
from sash.engine.structures import Structure, make
from sash.engine.tasks import Kind, columns_for, tasks_of
from sash.windows.bounds import Bounds, EveryRows
from sash.windows.frames import Frames
from sash.windows.framing import Framed, Rows
from sash.windows.policies import Policy

ROW, START, FIRST, N_REGISTERS = 0, 1, 2, 3
OLD, NEW, N_SCRATCH = 0, 1, 2
N_ANSWERS = 2  # of the total, and of the old part


LARGEST, LOWER_63 = 2**63 - 1, np.uint64(2**63 - 1)


class Source(Protocol):
    """Whoever has the columns."""

    @property
    def columns(self) -> Mapping[str, Column]:
        """The columns, by name."""

    @property
    def base(self) -> int:
        """The number of their first row."""


class Asked(NamedTuple):
    """What the policy is asked with: the columns it reads, cells, and two rows of answers."""

    begins: Any
    columns: Any
    scratch: Any
    answers: Any


class PolicyFraming:
    """Frames of one policy at its rows."""

    __slots__ = ("_every", "_kind", "_policy", "_registers", "_source", "_structure", "_walk")

    reads_columns = True  # of all rows in the window, again and again

    def __init__(self, bounds: Bounds, source: Source) -> None:
        assert bounds.policy is not None
        self._policy = bounds.policy
        self._source = source
        self._every = bounds.every.rows if isinstance(bounds.every, EveryRows) else 1
        tasks = tasks_of(source.columns, dict(self._policy.aggregates))
        is_compiled = is_enabled() and all(task.is_compilable for task in tasks)
        self._kind = Kind(tuple(_as_a_number(task.monoid) for task in tasks), is_compiled, has_nulls=True)
        self._structure = Structure(two_stacks_lite.ALGORITHM, self._kind)
        self._walk = _kernel(self._policy, self._kind)
        self._registers = np.zeros(N_REGISTERS, np.int64)

    @property
    def needed(self) -> int:
        """No order value is ever looked at."""
        return int(self._registers[ROW])

    @property
    def begin(self) -> int:
        """No later window begins before this row."""
        return int(self._registers[START])

    def take(self, rows: Rows, *, is_last: bool) -> Framed:
        """Frames of all rows: none ever waits, so it does not matter whether they are the last."""
        first, first_of_key = int(self._registers[ROW]), int(self._registers[FIRST])
        begins = rows.begins[first - rows.base :]
        starts, asked = np.empty(len(begins), np.int64), self._asked(begins, rows.end)

        def walk(state: State, place: Any, done: int) -> int:
            return int(self._walk(state, place, self._registers, asked, done, starts))

        self._structure.work(walk, self._source.base, len(begins))
        numbers = np.arange(first, rows.end)
        if self._every == 1:
            return Framed(len(numbers), Frames(starts, numbers + 1), None)
        firsts = np.maximum.accumulate(np.where(begins, numbers, first_of_key))
        chosen = (numbers - firsts + 1) % self._every == 0
        return Framed(int(chosen.sum()), Frames(starts[chosen], numbers[chosen] + 1), numbers[chosen])

    def _asked(self, begins: Any, end: int) -> Asked:
        tasks = tasks_of(self._source.columns, dict(self._policy.aggregates))
        cells = make(two_stacks_lite.ALGORITHM, self._kind).built.cells
        columns = columns_for(tasks, end - self._source.base, self._kind)
        return Asked(begins, columns, cells.allocate(N_SCRATCH), cells.results(N_ANSWERS))

    def dump(self) -> list[Any]:
        """What is carried from one batch to the next, as plain data."""
        return [self._registers, self._structure.dump()]

    def load(self, dumped: list[Any]) -> None:
        """Become what `dump` wrote."""
        self._registers[:], structure = dumped
        self._structure.load(structure)


@lru_cache(maxsize=64)
def _kernel(policy: Policy, kind: Kind) -> Function:
    """Make walk(state, place, registers, asked, done, starts) -> how many rows are done; it stops at a full ring."""
    jit, outer = (compiled, entry) if kind.is_compiled else (interpreted, interpreted)
    cells, fifo = make(two_stacks_lite.ALGORITHM, kind).inner
    names = [name for name, _ in policy.aggregates]
    decided = decision(policy, list(zip(names, kind.monoids, strict=True)), cells.results(N_ANSWERS), jit)
    must_go, forget = jit(_measurer(cells, fifo, decided)), forgetter(fifo, jit, at_once=True)
    insert, evict = fifo.insert, fifo.evict

    def walk(s: State, place: Any, at: Any, asked: Asked, done: int, starts: Any) -> int:
        for i in range(done, len(starts)):
            row = at[ROW]
            if asked.begins[i]:
                forget(s)
                at[FIRST] = at[START] = place[ELEMENTS] = row
            if s.at[END] - s.at[OLDEST] > s.at[MASK]:
                return i
            insert(s, asked.columns, row - place[COLUMNS])
            for _ in range(must_go(s, place[ELEMENTS] - place[COLUMNS], asked)):
                evict(s)
            starts[i] = at[START] = place[ELEMENTS] + s.at[OLDEST]
            at[ROW] = row + 1
        return len(starts)

    return outer(walk)


def _measurer(cells: Cells, fifo: Fifo, decision: Decision) -> Function:
    """Make must_go(state, shift, asked) -> how many of the oldest elements; element e is row e + shift."""
    lift, lower, combine, query = cells.lift, cells.lower, cells.combine, fifo.query
    decide, clear = decision

    def must_go(s: State, shift: int, asked: Asked) -> int:
        size, oldest = s.at[END] - s.at[OLDEST], s.at[OLDEST] + shift
        clear(asked.answers, TOTAL_ROW)
        lower(asked.answers, TOTAL_ROW, s.pool, query(s))
        lift(asked.scratch, OLD, asked.columns, oldest)
        for n_old in range(1, size + 1):
            clear(asked.answers, OLD_ROW)
            lower(asked.answers, OLD_ROW, asked.scratch, OLD)
            if not decide(asked.answers):
                return n_old - 1
            if n_old < size:
                lift(asked.scratch, NEW, asked.columns, oldest + n_old)
                combine(asked.scratch, OLD, OLD, NEW)
        return size  # type: ignore[no-any-return]

    return must_go


@lru_cache(maxsize=256)
def _as_a_number(monoid: Monoid) -> Monoid:
    """The same aggregate as policies see it: a sum of integers is an integer, and cut off where it exceeds 64 bits."""
    if monoid.outputs != ("hi", "lo"):
        return monoid
    return replace(monoid, lower=_cut_off, outputs=(), finish=None)


def _cut_off(wide: Any) -> int:
    """The number hi * 2**64 + lo, or the nearest one of 64 bits."""
    is_upper, rest = wide[1] > LOWER_63, int(np.int64(wide[1] & LOWER_63))
    if wide[0] == 0 and not is_upper:
        return rest
    if wide[0] == -1 and is_upper:
        return rest - LARGEST - 1
    return LARGEST if wide[0] >= 0 else -LARGEST - 1
