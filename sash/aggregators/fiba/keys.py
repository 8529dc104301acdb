"""Reading and writing keys and node numbers, one small family for each kind of key.

    object   anything with an order, in a list (interpreted)
    i8, f8   a number, in an array
    pair     (time, tie-breaker), in two arrays, compared one after the other: rows with equal times
             stay separate

Compiled families cast places to unsigned, as compiling/access does and for the same reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from sash.aggregators.contract import Jit
from sash.algebra.monoid import Function

OBJECT, INTEGER, FLOAT, PAIR = "object", "i8", "f8", "pair"
KINDS = (OBJECT, INTEGER, FLOAT, PAIR)


class Keys(NamedTuple):
    """The operations on one kind of key, and on arrays of node numbers beside them."""

    load: Function  # (keys, i) -> key
    store: Function  # (keys, i, key)
    less: Function  # (key, key) -> bool
    read: Function  # (numbers, i) -> number
    write: Function  # (numbers, i, number)
    allocate: Callable[[int], Any]  # number of keys -> keys
    numbers: Callable[[int], Any]  # number of node numbers -> numbers
    registers: Callable[[int], Any]


def keys_of(kind: str, jit: Jit) -> Keys:
    """Make the family of a kind of key."""
    if kind == OBJECT:
        return _listed(jit)
    load, store, less, allocate = _paired() if kind == PAIR else _single(kind)

    def read(numbers: Any, i: int) -> Any:
        return np.int64(numbers[np.uintp(i)])

    def write(numbers: Any, i: int, number: int) -> None:
        numbers[np.uintp(i)] = number

    return Keys(
        jit(load), jit(store), jit(less), jit(read), jit(write),
        allocate=allocate,
        numbers=lambda n: np.zeros(n, np.int32),
        registers=lambda n: np.zeros(n, np.int64),
    )  # fmt: skip


def _single(kind: str) -> tuple[Function, Function, Function, Callable[[int], Any]]:
    def load(keys: Any, i: int) -> Any:
        return keys[np.uintp(i)]

    def store(keys: Any, i: int, key: Any) -> None:
        keys[np.uintp(i)] = key

    return load, store, _less, lambda n: np.zeros(n, kind)


def _paired() -> tuple[Function, Function, Function, Callable[[int], Any]]:
    def load(keys: Any, i: int) -> Any:
        return keys[0][np.uintp(i)], keys[1][np.uintp(i)]

    def store(keys: Any, i: int, key: Any) -> None:
        keys[0][np.uintp(i)] = key[0]
        keys[1][np.uintp(i)] = key[1]

    def less(key: Any, other: Any) -> bool:
        return bool(key[0] < other[0] or (key[0] == other[0] and key[1] < other[1]))

    return load, store, less, lambda n: (np.zeros(n, np.int64), np.zeros(n, np.int64))


def _listed(jit: Jit) -> Keys:
    def load(keys: Any, i: int) -> Any:
        return keys[i]

    def store(keys: Any, i: int, key: Any) -> None:
        keys[i] = key

    return Keys(
        jit(load), jit(store), jit(_less), jit(load), jit(store),
        allocate=lambda n: [None] * n,
        numbers=lambda n: [0] * n,
        registers=lambda n: [0] * n,
    )  # fmt: skip


def key_at(keys: Any, i: int) -> Any:
    """Read a key outside compiled code, as a Python value."""
    if isinstance(keys, tuple):
        return tuple(column[i].item() for column in keys)
    return keys[i] if isinstance(keys, list) else keys[i].item()


def _less(key: Any, other: Any) -> bool:
    return bool(key < other)
