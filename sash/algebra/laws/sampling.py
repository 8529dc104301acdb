"""Rows to try an aggregate on, the simplest first, and runs of them."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Iterator
from itertools import product, takewhile
from typing import Any

import numpy as np

from sash.algebra.state import Object, Record, State
from sash.errors import DeclarationError

Values = tuple[Any, ...]  # of one row, one for each input
Run = tuple[Values, ...]  # rows that follow one another; their partials are folded

# NaN and the infinities are left out: a plain `older if older > newer else newer` is not
# associative among NaNs, and no law is broken by writing it. Pass them as samples to ask about them.
NUMBERS = (0, 1, -1, 2, -2, 3, 0.5, -0.1, 10.25, 1e12, -1e12)
INTEGERS = (0, 1, -1, 2, -2, 3, 10, 100, -1000, 10**6, -(10**9))
TEXTS = ("", "a", "b", "ab", "z")
SMALL, LARGE = 3, 4  # with several inputs: all rows of the first few values, and some of the last

LIMIT = {1: 1000, 2: 30, 3: 9}  # samples whose every combination is tried, by how many are combined
N_RANDOM = 200
LONGEST = 4


def default_pools(state: State, n_inputs: int) -> list[list[Values]]:
    """Rows for an aggregate that came without samples; the first pool it can work on is the one."""
    fractions = isinstance(state, Object) or any(dtype.kind == "f" for dtype in dtypes_of(state))
    pools = (NUMBERS, INTEGERS, TEXTS) if fractions else (INTEGERS, TEXTS)
    return [_rows(pool, n_inputs) for pool in pools]


def dtypes_of(state: State) -> tuple[np.dtype[Any], ...]:
    """The types of the numbers in a state."""
    if isinstance(state, Object):
        return ()
    return state.dtypes if isinstance(state, Record) else (state.dtype,)


def given_rows(samples: Iterable[Any], n_inputs: int) -> list[Values]:
    """Read the samples of the user: values, or tuples of values; nulls never reach an aggregate."""
    rows = [_row(sample, n_inputs) for sample in samples]
    rows = [row for row in rows if all(value is not None for value in row)]
    if not rows:
        raise DeclarationError("no samples to try: samples= holds nothing but nulls")
    return sorted(rows, key=_simplicity)


def _row(sample: Any, n_inputs: int) -> Values:
    if n_inputs == 0:
        return ()
    if n_inputs == 1:
        return (_plain(sample),)
    if not isinstance(sample, (tuple, list)) or len(sample) != n_inputs:
        raise DeclarationError(f"the aggregate takes {n_inputs} values a row; {sample!r} is no such tuple")
    return tuple(_plain(value) for value in sample)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _rows(values: tuple[Any, ...], n_inputs: int) -> list[Values]:
    if n_inputs <= 1:
        return [(value,) for value in values] if n_inputs else [()]
    ends = values[-LARGE:]
    shifted = [tuple(ends[(i + k) % len(ends)] for k in range(n_inputs)) for i in range(len(ends))]
    return sorted([*product(values[:SMALL], repeat=n_inputs), *shifted], key=_simplicity)


def _simplicity(row: Values) -> tuple[Any, ...]:
    """Sort key: small whole numbers, then fractions, then short things, then long things."""
    if not all(isinstance(value, (int, float)) for value in row):
        return 1, len(repr(row)), 0, repr(row)
    finite = [value for value in row if math.isfinite(value)]
    is_whole = finite == [value // 1 for value in finite]
    return 0, not is_whole, sum(map(abs, finite)), -sum(finite)


def simplest_runs(rows: list[Values], n_runs: int) -> Iterator[tuple[Run, ...]]:
    """Every choice of single rows, those of the simplest rows first."""
    ranks = range(min(len(rows), LIMIT[n_runs])) if n_runs else range(0)
    for chosen in sorted(product(ranks, repeat=n_runs), key=sum):
        yield tuple((rows[rank],) for rank in chosen)


def longer_runs(rows: list[Values], n_runs: int) -> Iterator[tuple[Run, ...]]:
    """Runs of several rows; the same ones every time."""
    chance = random.Random(n_runs)
    for _ in range(N_RANDOM if n_runs else 0):
        yield tuple(tuple(chance.choices(rows, k=chance.randint(1, LONGEST))) for _ in range(n_runs))


def simpler(runs: tuple[Run, ...], rows: list[Values]) -> Iterator[tuple[Run, ...]]:
    """One row fewer, or one row replaced by a simpler one."""
    for place, run in enumerate(runs):
        for i in range(len(run)):
            if len(run) > 1:
                yield (*runs[:place], (*run[:i], *run[i + 1 :]), *runs[place + 1 :])
    for place, run in enumerate(runs):
        for i, row in enumerate(run):
            for other in takewhile(lambda simple, row=row: simple is not row, rows):  # type: ignore[misc]
                yield (*runs[:place], (*run[:i], other, *run[i + 1 :]), *runs[place + 1 :])
