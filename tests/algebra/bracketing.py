"""Partials of rows, joined in any bracketing, interpreted and compiled: what the tests of aggregates share."""

from __future__ import annotations

import copy
import math
import random
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import strategies as st

from sash.algebra.aggregate import Aggregate
from sash.algebra.monoid import Monoid, ungraded
from sash.algebra.state import Object, Row
from sash.compiling.compiled_cells import compiled_cells
from sash.compiling.jit import entry, is_enabled
from sash.engine.aggregator import aggregator

needs_machine_code = pytest.mark.skipif(not is_enabled(), reason="machine code is switched off")
both_forms = pytest.mark.parametrize("compiled", [False, True], ids=["interpreted", "compiled"])

seeds = st.integers(0, 2**16)
dyadic = st.integers(-(2**20), 2**20).map(lambda k: k / 16)  # sums of a few are exact
troubled = st.sampled_from([math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, -1.0, 2.5])


class Case(NamedTuple):
    """An aggregate bound to types, and rows to try it on."""

    aggregate: Aggregate
    dtypes: tuple[Any, ...]
    values: Any  # a strategy for each input
    tolerance: float = 0.0

    @property
    def monoid(self) -> Monoid:
        return self.aggregate.bind(*(None if dtype is None else np.dtype(dtype) for dtype in self.dtypes))

    def rows(self, least: int = 1):
        return st.lists(st.tuples(*self.values), min_size=least, max_size=12)


def case(aggregate: Aggregate, dtype: Any, *values: Any, tolerance: float = 0.0) -> Any:
    """A parameter: an aggregate whose inputs all have one type."""
    named = "python" if dtype is None else np.dtype(dtype).name
    return pytest.param(Case(aggregate, (dtype,) * len(values), values, tolerance), id=f"{aggregate.name}-{named}")


class Plain(NamedTuple):
    """A monoid whose functions all return, whatever its state."""

    lift: Any
    combine: Any
    lower: Any
    invert: Any
    identity: Any


def plain(monoid: Monoid) -> Plain:
    """Count in the partial, rows made afresh."""
    monoid = ungraded(monoid)
    lower = monoid.lower or (lambda partial: partial)
    if not isinstance(monoid.state, Row):
        return Plain(monoid.lift, monoid.combine, lower, monoid.invert, monoid.identity)
    state = monoid.state

    def returning(function):
        def fresh(*arguments):
            out = np.full(state.width, 77, state.dtype)
            function(*arguments, out)
            return out

        return fresh

    identity = np.full(state.width, monoid.identity, state.dtype)
    invert = monoid.invert and returning(monoid.invert)
    return Plain(returning(monoid.lift), returning(monoid.combine), lower, invert, identity)


def bracketed(monoid: Monoid, rows, seed: int) -> Any:
    """The partial of some rows, joined in an order that the seed decides."""
    ops, chance = plain(monoid), random.Random(seed)
    parts = [ops.lift(*row) for row in rows]
    while len(parts) > 1:
        at = chance.randrange(len(parts) - 1)
        parts[at : at + 2] = [ops.combine(parts[at], parts[at + 1])]
    return parts[0]


def answer(monoid: Monoid, rows, seed: int = 0) -> Any:
    """What the aggregate answers for some rows; `finish` has had its say."""
    found = plain(monoid).lower(bracketed(monoid, rows, seed))
    if monoid.finish is None:
        return found
    column = tuple(np.array([field]) for field in found) if isinstance(found, tuple) else np.array([found])
    return monoid.finish(column)[0]


def same(x: Any, y: Any, tolerance: float = 0.0) -> bool:
    """Equality item by item; NaN equals NaN."""
    if isinstance(x, (tuple, list, np.ndarray)) and isinstance(y, (tuple, list, np.ndarray)):
        return len(x) == len(y) and all(same(a, b, tolerance) for a, b in zip(x, y, strict=True))
    if x is None or y is None or isinstance(x, str):
        return x == y
    return x == y or (x != x and y != y) or math.isclose(x, y, rel_tol=tolerance, abs_tol=tolerance)


def require_laws(monoid: Monoid, rows, seed: int, tolerance: float = 0.0) -> None:
    """Check L1 to L6 of monoid.py on at least three rows, cut into three parts by the seed."""
    ops, chance = plain(monoid), random.Random(seed)
    first, second = sorted(chance.sample(range(1, len(rows)), 2))
    x, y, z = (bracketed(monoid, part, seed) for part in (rows[:first], rows[first:second], rows[second:]))
    before = copy.deepcopy((x, y, z))

    def equal(law: str, found: Any, wanted: Any) -> None:
        assert same(found, wanted, tolerance), f"{law} of {monoid.name}: {found} is not {wanted}"

    joined = ops.combine(x, y)
    equal("L1", ops.combine(joined, z), ops.combine(x, ops.combine(y, z)))
    if not isinstance(monoid.state, Object):
        equal("L2", ops.combine(ops.identity, x), x)
        equal("L2", ops.combine(x, ops.identity), x)
        equal("L2", ops.combine(ops.identity, ops.identity), ops.identity)
    if monoid.commutative:
        equal("L4", ops.combine(y, x), joined)
    if monoid.invert is not None:
        equal("L5", ops.invert(joined, x), y)
    if monoid.selective:
        assert same(joined, x) or same(joined, y), f"L6 of {monoid.name}: {joined} is neither {x} nor {y}"
    if isinstance(monoid.state, Row):
        require_alias_safety(monoid, x, y)
    equal("L3", (x, y, z), before)


def require_alias_safety(monoid: Monoid, x: Any, y: Any) -> None:
    """`out` may be the memory of an argument."""
    wanted = plain(monoid).combine(x, y)
    older, newer = x.copy(), y.copy()
    monoid.combine(older, y, older)
    monoid.combine(x, newer, newer)
    assert same(older, wanted), f"out is older: {older} is not {wanted}"
    assert same(newer, wanted), f"out is newer: {newer} is not {wanted}"


@lru_cache
def _machine(monoid: Monoid) -> Any:
    """Machine code that lifts rows into cells 1, 2, ..., runs (dst, older, newer) and answers the last dst."""
    cells = compiled_cells(monoid)
    clear, lift, combine, lower = cells.clear, cells.lift, cells.combine, cells.lower

    def run(pool, columns, n, program, results):
        clear(pool, 0)
        for i in range(n):
            lift(pool, i + 1, columns, i)
        for step in range(program.shape[0]):
            combine(pool, program[step, 0], program[step, 1], program[step, 2])
        lower(results, 0, pool, program[program.shape[0] - 1, 0])

    return cells, entry(run)


def compiled_answer(monoid: Monoid, rows, dtypes, seed: int) -> Any:
    """What machine code answers, in a bracketing that the seed decides, with identities thrown in."""
    cells, run = _machine(monoid)
    columns = tuple(np.array([row[k] for row in rows], dtype) for k, dtype in enumerate(dtypes))
    pool, (values, valid) = cells.allocate(len(rows) + 1), cells.results(1)
    run(pool, columns, len(rows), _program(len(rows), seed), (values, valid))
    if valid.size and not valid[0]:
        return None
    if monoid.finish is not None:
        return monoid.finish(values)[0]
    return tuple(field[0] for field in values) if isinstance(values, tuple) else values[0]


def _program(n: int, seed: int) -> np.ndarray:
    """Steps that join cells 1 to n in some order, each with cell 0, the identity, before and at the end."""
    chance, cells = random.Random(seed), list(range(1, n + 1))
    steps = [(cell, 0, cell) if chance.random() < 0.5 else (cell, cell, 0) for cell in cells]
    while len(cells) > 1:
        at = chance.randrange(len(cells) - 1)
        older, newer = cells[at : at + 2]
        cells[at : at + 2] = [chance.choice((older, newer))]
        steps.append((cells[at], older, newer))
    return np.array([*steps, (cells[0], cells[0], 0)])


def slid(aggregate: Aggregate, rows, width: int, **options: Any) -> list[Any]:
    """What the engine answers after each row, for windows of the last `width` rows."""
    window, answers = aggregator("two_stacks_lite", aggregate, **options), []
    for row in rows:
        if len(window) == width:
            window.evict()
        window.insert(*row)
        answers.append(window.query())
    return answers


def require_round_trip(aggregate: Aggregate, rows, *, dtype: Any, compiled: bool, tolerance: float = 0.0) -> None:
    """The engine answers every window of four rows as a fold of them does."""
    monoid = aggregate.bind(*(np.dtype(dtype),) * aggregate.n_inputs)
    wanted = [answer(monoid, rows[max(0, end - 4) : end], seed=end) for end in range(1, len(rows) + 1)]
    found = slid(aggregate, rows, 4, dtype=dtype, compiled=compiled)
    assert same(found, wanted, tolerance), f"{found} is not {wanted}"
