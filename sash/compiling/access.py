"""Reading and writing partials of numbers in compiled pools, one function for each shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from sash.algebra.monoid import Function, Monoid
from sash.algebra.state import Record, Scalar
from sash.compiling.jit import compiled


def access(monoid: Monoid) -> tuple[Function, Function, Function]:
    """load, store and slice for a pool of numbers.

    Places are cast to unsigned: a signed index costs Numba a test for "counted from the end" on
    every access, which is more than the access.
    """
    if isinstance(monoid.state, Scalar):

        def load(pool: Any, i: int) -> Any:
            return pool[np.uintp(i)]

        def store(pool: Any, i: int, partial: Any) -> None:
            pool[np.uintp(i)] = partial

        def cut(pool: Any, start: int, stop: int) -> Any:
            return pool[start:stop]

        return compiled(load), compiled(store), compiled(cut)
    assert isinstance(monoid.state, Record)
    return field_access(len(monoid.state.names))


def field_access(n_fields: int) -> tuple[Function, Function, Function]:
    """load, store and slice for tuples: the first field, then the others."""
    if n_fields == 1:

        def load(pool: Any, i: int) -> Any:
            return (pool[0][np.uintp(i)],)

        def store(pool: Any, i: int, partial: Any) -> None:
            pool[0][np.uintp(i)] = partial[0]

        def cut(pool: Any, start: int, stop: int) -> Any:
            return (pool[0][start:stop],)

    else:
        load_rest, store_rest, cut_rest = field_access(n_fields - 1)

        def load(pool: Any, i: int) -> Any:
            return (pool[0][np.uintp(i)], *load_rest(pool[1:], i))

        def store(pool: Any, i: int, partial: Any) -> None:
            pool[0][np.uintp(i)] = partial[0]
            store_rest(pool[1:], i, partial[1:])

        def cut(pool: Any, start: int, stop: int) -> Any:
            return (pool[0][start:stop], *cut_rest(pool[1:], start, stop))

    return compiled(load), compiled(store), compiled(cut)
