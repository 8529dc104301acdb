"""Logic: any and all over booleans, and their kin over the bits of integers."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from sash.algebra.aggregate import Aggregate, AggregateCard, Dtype, declare
from sash.algebra.inputs import BOOLEAN, INTEGER, from_stored, require_kind, stored, to_stored
from sash.algebra.monoid import Function, Monoid
from sash.algebra.state import Object, Scalar

TRUTH = np.dtype(np.bool_)

ANY = AggregateCard("any", answer="whether a value is true", state="a bit", selective=True)
ALL = AggregateCard("all", answer="whether every value is true", state="a bit", selective=True)
BIT_OR = AggregateCard("bit_or", answer="the bits set in a value", state="an integer")
BIT_AND = AggregateCard("bit_and", answer="the bits set in every value", state="an integer")
BIT_XOR = AggregateCard(
    "bit_xor", answer="the bits set in an odd number of values", state="an integer", invertible=True
)


def any(column: str | None = None) -> Aggregate:
    """Tell whether a boolean column is true somewhere, as Spark's bool_or does."""
    return declare(ANY, _bind_any, column)


def all(column: str | None = None) -> Aggregate:
    """Tell whether a boolean column is true everywhere, as Spark's bool_and does."""
    return declare(ALL, _bind_all, column)


def bit_or(column: str | None = None) -> Aggregate:
    """Join the bits of integers by or."""
    return declare(BIT_OR, _bind_bit_or, column)


def bit_and(column: str | None = None) -> Aggregate:
    """Join the bits of integers by and."""
    return declare(BIT_AND, _bind_bit_and, column)


def bit_xor(column: str | None = None) -> Aggregate:
    """Join the bits of integers by exclusive or."""
    return declare(BIT_XOR, _bind_bit_xor, column)


@lru_cache
def _bind_any(dtype: Dtype) -> Monoid:
    return _truth("any", dtype, _either, identity=0)


@lru_cache
def _bind_all(dtype: Dtype) -> Monoid:
    return _truth("all", dtype, _both, identity=1)


def _truth(name: str, dtype: Dtype, combine: Function, identity: int) -> Monoid:
    dtype = require_kind(name, dtype, BOOLEAN)
    if dtype is None:
        return Monoid(name, Object(), bool, combine, commutative=True, selective=True)
    return Monoid(
        name,
        Scalar(stored(TRUTH)),
        lift=to_stored(TRUTH),
        combine=combine,
        identity=identity,
        lower=from_stored(TRUTH),
        commutative=True,
        selective=True,
    )


def _either(older: Any, newer: Any) -> Any:
    return newer if newer > older else older


def _both(older: Any, newer: Any) -> Any:
    return newer if newer < older else older


@lru_cache
def _bind_bit_or(dtype: Dtype) -> Monoid:
    return _bits("bit_or", dtype, _or, is_full=False)


@lru_cache
def _bind_bit_and(dtype: Dtype) -> Monoid:
    return _bits("bit_and", dtype, _and, is_full=True)


@lru_cache
def _bind_bit_xor(dtype: Dtype) -> Monoid:
    return _bits("bit_xor", dtype, _xor, is_full=False, invert=_xor)


def _bits(name: str, dtype: Dtype, combine: Function, *, is_full: bool, invert: Function | None = None) -> Monoid:
    """A monoid over the bits of integers; its identity has all of them set (`is_full`) or none."""
    dtype = require_kind(name, dtype, INTEGER)
    if dtype is None:
        return Monoid(name, Object(), int, combine, invert=invert, commutative=True)
    full = int(np.iinfo(dtype).max) if dtype.kind == "u" else -1
    return Monoid(
        name,
        Scalar(dtype),
        lift=to_stored(dtype),
        combine=combine,
        identity=full if is_full else 0,
        invert=invert,
        commutative=True,
    )


def _or(older: Any, newer: Any) -> Any:
    return older | newer


def _and(older: Any, newer: Any) -> Any:
    return older & newer


def _xor(older: Any, newer: Any) -> Any:
    return older ^ newer
