"""How the partial result of an aggregate lies in memory, as its author declares it.

    state="f8"                      Scalar   one number; the partial is that number
    state={"n": "i8", "sum": "f8"}  Record   a few numbers; the partial is a tuple of them
    state=("u8", 256)               Row      many numbers of one type; the partial is an array
    state=object                    Object   any Python value; never compiled

The first three have a fixed width, so they can be compiled and written to bytes as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sash.errors import DeclarationError

KINDS = "biuf"  # boolean, signed, unsigned, floating


@dataclass(frozen=True)
class Scalar:
    """One number."""

    dtype: np.dtype[Any]


@dataclass(frozen=True)
class Record:
    """A tuple of numbers, each with a name and a type of its own."""

    names: tuple[str, ...]
    dtypes: tuple[np.dtype[Any], ...]


@dataclass(frozen=True)
class Row:
    """An array of `width` numbers of one type; combine writes into it."""

    dtype: np.dtype[Any]
    width: int


@dataclass(frozen=True)
class Object:
    """Any Python value."""


State = Scalar | Record | Row | Object


def parse_state(declared: object) -> State:
    """Read a `state=` declaration."""
    if declared is object:
        return Object()
    if isinstance(declared, (Scalar, Record, Row, Object)):
        return declared
    if isinstance(declared, Mapping):
        if not declared:
            raise DeclarationError("state={} has no fields; name at least one, as in {'n': 'i8'}")
        return Record(tuple(declared), tuple(_number(dtype) for dtype in declared.values()))
    if isinstance(declared, tuple) and len(declared) == 2:
        dtype, width = declared
        if not isinstance(width, int) or width < 1:
            raise DeclarationError(f"the width of a row must be a positive integer, got {width!r}")
        return Row(_number(dtype), width)
    return Scalar(_number(declared))


def _number(declared: Any) -> np.dtype[Any]:
    dtype: np.dtype[Any] | None
    try:
        dtype = np.dtype(declared)
    except TypeError:
        dtype = None
    if dtype is None or dtype.kind not in KINDS:
        raise DeclarationError(
            f"{declared!r} is no fixed-width number. A state is a number type such as 'f8' or 'i8', a dict of "
            "them, a pair (type, width) for a row, or object for any Python value"
        )
    return dtype
