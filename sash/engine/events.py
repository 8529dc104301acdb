"""Single events into cells and single answers out of them; cells read as values, for checks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sash.algebra.monoid import Monoid, identity_of, ungraded
from sash.algebra.state import Row
from sash.errors import DataError


class OneRow:
    """The columns of one aggregate, one row long: those values of an event that it reads."""

    def __init__(self, places: Sequence[int], dtypes: Sequence[Any], *, is_compiled: bool) -> None:
        self._places = places
        self._valid = np.ones(1, np.bool_) if is_compiled else None
        if is_compiled:
            self._values: Any = tuple(np.zeros(1, dtype) for dtype in dtypes)
            self.columns: Any = (self._valid, self._values)
        else:
            self.columns = self._values = tuple([None] for _ in places)

    def put(self, values: tuple[Any, ...]) -> None:
        """Write the values of one event."""
        if self._valid is None:
            for column, place in zip(self._values, self._places):  # noqa: B905 - as many, and on every event's way
                column[0] = values[place]
            return
        self._valid[0] = all(values[place] is not None for place in self._places)
        if not self._valid[0]:
            return
        for column, place in zip(self._values, self._places, strict=True):
            column[0] = values[place]
            if column.dtype.kind in "iub" and column[0] != values[place]:
                raise DataError(f"{values[place]!r} is no {column.dtype}; give dtype= the type of the values")


def take_answer(results: Any, monoid: Monoid) -> Any:
    """Read the answer of one row as a Python value, and make room for the next."""
    values, valid = results
    if isinstance(values, list):
        answer = values[0]
        return answer if monoid.finish is None or answer is None else _finished(answer, monoid)
    if len(valid) and not valid[0]:
        valid[0] = True
        return None
    if monoid.finish is not None:
        return _python(monoid.finish(values)[0])
    return tuple(_python(column[0]) for column in values) if isinstance(values, tuple) else _python(values[0])


def _finished(answer: Any, monoid: Monoid) -> Any:
    assert monoid.finish is not None
    if isinstance(answer, tuple):
        return _python(monoid.finish(tuple(np.array([field]) for field in answer))[0])
    return _python(monoid.finish(np.array([answer]))[0])


def _python(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.copy()
    return value.item() if isinstance(value, np.generic) else value


def answer_of_nothing(monoid: Monoid) -> Any:
    """What a window without rows answers."""
    if not monoid.answers_empty:
        return None
    plain = ungraded(monoid)
    identity = identity_of(plain)
    answer = plain.lower(identity) if plain.lower else identity
    return answer if monoid.finish is None else _finished(answer, monoid)


def reader(pool: Any, *, is_compiled: bool) -> Callable[[int], Any]:
    """How to read a cell of one aggregate as the partial it holds; None if it holds no rows."""
    if not is_compiled:
        partials = pool[1] if isinstance(pool, tuple) else pool
        return lambda cell: partials[cell]
    counts, inner = pool
    if isinstance(inner, tuple):
        return lambda cell: tuple(field[cell].item() for field in inner) if counts[cell] else None
    return lambda cell: inner[cell] if counts[cell] else None


class Folder:
    """Folds the truth, for `check_invariants`: the aggregate of elements first to end - 1."""

    def __init__(self, monoid: Monoid, lifted: list[Any]) -> None:
        self._combine = ungraded(monoid).combine
        self._row = monoid.state if isinstance(monoid.state, Row) else None
        self._lifted = lifted

    def __call__(self, first: int, end: int) -> Any:
        """Fold a range; None if it holds no valid row."""
        total = None
        for partial in self._lifted[first:end]:
            if total is None or partial is None:
                total = partial if total is None else total
            else:
                total = self._join(total, partial)
        return total

    def _join(self, older: Any, newer: Any) -> Any:
        if self._row is None:
            return self._combine(older, newer)
        out = np.empty(self._row.width, self._row.dtype)
        self._combine(older, newer, out)
        return out
