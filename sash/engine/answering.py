"""Columns out: raw results of a kernel as the arrays a user gets."""

from __future__ import annotations

from typing import Any

import numpy as np

from sash.algebra.monoid import Monoid
from sash.algebra.state import Scalar


def answers_of(results: Any, monoid: Monoid, *, masked: bool) -> Any:
    """Turn (answers, valid) into one array; see `sash.slide` for how nulls are shown."""
    values, valid = results
    if isinstance(values, list):
        values, valid = _from_objects(values, monoid)
        if monoid.is_compilable and not valid.any():
            return _nothing(len(values), masked=masked)
    is_complete = valid is None or len(valid) == 0 or bool(valid.all())
    absent = np.empty(0, np.intp) if is_complete else np.flatnonzero(~valid)  # few, as a rule
    _blank(values, absent)
    if monoid.finish is not None:
        values = monoid.finish(values)
    elif isinstance(values, tuple):
        values = _structured(values, monoid)
    if is_complete:
        return np.ma.MaskedArray(values) if masked else values
    if not masked and values.dtype.kind == "f" and values.ndim == 1:
        values[absent] = np.nan
        return values
    mask = np.broadcast_to(~valid.reshape(-1, *(1,) * (values.ndim - 1)), values.shape)
    return np.ma.MaskedArray(values, mask=mask.copy() if values.dtype.names is None else ~valid)


def _nothing(n: int, *, masked: bool) -> Any:
    """Nothing but nulls: of which type they would be, interpreted code cannot tell."""
    return np.ma.MaskedArray(np.zeros(n), mask=True) if masked else np.full(n, np.nan)


def _blank(values: Any, absent: Any) -> None:
    """Nothing was written where there is no answer; put zeros there, so that it is always the same."""
    for column in values if isinstance(values, tuple) else (values,):
        column[absent] = np.zeros(1, column.dtype)[0]


def _structured(columns: tuple[Any, ...], monoid: Monoid) -> Any:
    """Several answers a row: a structured array, one field for each."""
    names = monoid.outputs or tuple(f"f{k}" for k in range(len(columns)))
    answers = np.empty(len(columns[0]), [(name, column.dtype) for name, column in zip(names, columns, strict=True)])
    for name, column in zip(names, columns, strict=True):
        answers[name] = column
    return answers


def _numbers(column: tuple[Any, ...]) -> Any:
    """Numbers of Python as an array; words of 64 bits beside small ones would become floats by themselves."""
    is_words = all(isinstance(value, int) for value in column) and min(column) >= 0
    return np.array(column, np.uint64 if is_words and max(column) >= 2**63 else None)


def _from_objects(values: list[Any], monoid: Monoid) -> tuple[Any, Any]:
    """Answers of interpreted code: numbers where they are numbers, objects otherwise."""
    valid = np.array([value is not None for value in values], np.bool_)
    present = [value for value in values if value is not None]
    if present and all(isinstance(value, tuple) for value in present) and monoid.is_compilable:
        filler = present[0]
        columns = zip(*(filler if value is None else value for value in values), strict=True)
        return tuple(_numbers(column) for column in columns), valid
    if not monoid.is_compilable:
        objects = np.empty(len(values), object)
        objects[:] = values
        return objects, np.ones(0, np.bool_)
    if not present:
        return np.zeros(len(values)), valid
    keeps_type = isinstance(monoid.state, Scalar) and monoid.lower is None
    filled = [present[0] if value is None else value for value in values]
    return np.array(filled, monoid.state.dtype if keeps_type else None), valid  # type: ignore[union-attr]
