"""A monoid: what every algorithm needs to know of an aggregate, and all it knows.

`lift` turns one row into a partial, `combine` joins two partials, the older one first, `lower`
turns a partial into the answer. Writing + for combine and 0 for the identity:

Laws (checked by `sash.check_laws`, relied upon everywhere)
    L1  (x + y) + z == x + (y + z)             associative; nothing else is asked of combine
    L2  0 + x == x == x + 0                    identity
    L3  combine changes neither argument       pure (a row's `out` may be the memory of an argument)
    L4  x + y == y + x                         only if `commutative`
    L5  invert(x + y, x) == y                  only if `invert` is given: takes the older part away
    L6  x + y is x or y                        only if `selective`
    L7  lift and lower always give the same    and a partial survives being stored in its state

A *graded* monoid leaves the count of rows to whoever keeps the window: its functions take the
counts as further arguments, combine(older, newer, n_older, n_newer) and lower(partial, n). Where a
window has a known number of rows, nobody then adds up ones; elsewhere `ungraded` puts the count
into the partial.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from sash.algebra.state import Object, Record, Row, State

Function = Callable[..., Any]


@dataclass(frozen=True, eq=False)
class Monoid:
    """An aggregate bound to the types of its inputs."""

    name: str
    state: State
    lift: Function
    combine: Function
    identity: Any = None  # unused by object states: an empty window is represented by None
    lower: Function | None = None  # None: the partial is the answer
    invert: Function | None = None  # invert(whole, older) -> newer
    n_inputs: int = 1
    commutative: bool = False
    selective: bool = False
    exact: bool | None = True  # False: rounding makes invert drift (floats); None: only if values are floats
    graded: bool = False
    neutral: bool = False  # graded, and the identity may be combined like any other partial: no need to look for it
    answers_empty: bool = False  # True: lower(identity) is the answer of an empty window; else null
    outputs: tuple[str, ...] = ()  # names of the answers, if lower gives a tuple
    codec: Codec | None = None  # for object states that plain data cannot express
    finish: Function | None = None  # column of answers -> column of answers, outside compiled code
    narrow: Monoid | None = None  # the same for values known to be small: no overflow is possible
    apart: Apart | None = None  # the same over columns that are prepared as a whole

    @property
    def is_compilable(self) -> bool:
        """Whether partials have a fixed width."""
        return not isinstance(self.state, Object)


class Apart(NamedTuple):
    """A monoid in three steps, of which the first and the last are the same for every number.

    Together they give what it gives, but for rounding. NumPy takes logarithms of a column eight at a time, where
    compiled code calls for one after the other.
    """

    before: Function  # (column, out)
    monoid: Monoid
    after: Function  # (its answers, out), which may be the same memory


@dataclass(frozen=True)
class Codec:
    """How an object state is written to bytes and read back."""

    encode: Callable[[Any], bytes]
    decode: Callable[[bytes], Any]


def ungraded(monoid: Monoid) -> Monoid:
    """Put the count of rows into the partial, as its first field."""
    if not monoid.graded:
        return monoid
    lift, combine, lower, invert = monoid.lift, monoid.combine, monoid.lower, monoid.invert
    assert isinstance(monoid.state, Record)
    assert lower is not None

    def added_combine(older: Any, newer: Any) -> Any:
        return (older[0] + newer[0], *combine(older[1:], newer[1:], older[0], newer[0]))

    def counted_combine(older: Any, newer: Any) -> Any:
        if older[0] == 0.0:
            return newer
        if newer[0] == 0.0:
            return older
        return (older[0] + newer[0], *combine(older[1:], newer[1:], older[0], newer[0]))

    def counted_lower(partial: Any) -> Any:
        return lower(partial[1:], partial[0])

    return replace(
        monoid,
        state=Record(("n", *monoid.state.names), (np.dtype("f8"), *monoid.state.dtypes)),
        lift=_counted_lift(lift, monoid.n_inputs),
        combine=added_combine if monoid.neutral else counted_combine,
        lower=counted_lower,
        invert=_counted_invert(invert) if invert else None,
        identity=(0.0, *monoid.identity),
        graded=False,
    )


def _counted_lift(lift: Function, n_inputs: int) -> Function:
    def lift_none() -> Any:
        return (1.0, *lift())

    def lift_one(x: Any) -> Any:
        return (1.0, *lift(x))

    def lift_two(x: Any, y: Any) -> Any:
        return (1.0, *lift(x, y))

    return (lift_none, lift_one, lift_two)[n_inputs]


def _counted_invert(invert: Function) -> Function:
    def counted_invert(whole: Any, older: Any) -> Any:
        return (whole[0] - older[0], *invert(whole[1:], older[1:], whole[0], older[0]))

    return counted_invert


def identity_of(monoid: Monoid) -> Any:
    """The partial of no rows; a row is filled with its one number."""
    if isinstance(monoid.state, Row):
        return np.full(monoid.state.width, monoid.identity, monoid.state.dtype)
    return monoid.identity
