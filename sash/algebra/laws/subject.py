"""An aggregate under examination: its functions, made alike for all kinds of state.

Whoever calls `combine` here gets a new partial and keeps the old ones: arguments are copied first,
and a row is written to memory of its own. What the functions really do to their arguments is asked
for by `after`. An exception comes out as `Raised`, with the call that caused it.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np

from sash.algebra.laws.report import shown
from sash.algebra.laws.sameness import independent, is_opaque, same
from sash.algebra.laws.sampling import Run, Values, dtypes_of
from sash.algebra.monoid import Function, Monoid, identity_of
from sash.algebra.state import Object, Row, Scalar

ROUNDING = 1e-9  # relative to the largest number involved
ROUNDING_OF_SINGLES = 1e-4


class Raised(Exception):
    """A function of the aggregate raised; keeps what it was called with."""

    def __init__(self, function: str, arguments: tuple[Any, ...], error: Exception) -> None:
        super().__init__(function)
        self.function = function
        self.error = error
        self.call = f"{function}({', '.join(map(shown, arguments))})"

    @property
    def kind(self) -> tuple[str, type]:
        """Which function raised what; the same kind is told only once."""
        return self.function, type(self.error)


class Subject:
    """The functions of an aggregate, safe to call in any order."""

    def __init__(self, monoid: Monoid) -> None:
        self.monoid = monoid
        self.contexts: list[Values] = []  # rows that `is_same` may combine partials with
        state = monoid.state
        self.row = state if isinstance(state, Row) else None
        self._copied = independent if isinstance(state, (Row, Object)) else _as_it_is
        is_single = any(dtype.kind == "f" and dtype.itemsize < 8 for dtype in dtypes_of(state))
        self.rounding = ROUNDING_OF_SINGLES if is_single else ROUNDING

    @property
    def identity(self) -> Any:
        """The partial of no rows."""
        return self._guarded("identity", identity_of, (self.monoid,))

    def blank(self, filler: Any) -> Any:
        """A row to write to."""
        assert self.row is not None
        return np.full(self.row.width, filler, self.row.dtype)

    def lift(self, values: Values, filler: int = 0) -> Any:
        """Lift the values of a row; `filler` is what a row holds before it is written."""
        return self._fresh("lift", self.monoid.lift, tuple(map(independent, values)), filler)

    def combine(self, older: Any, newer: Any, filler: int = 0) -> Any:
        """Combine two partials."""
        return self._fresh("combine", self.monoid.combine, (self._copied(older), self._copied(newer)), filler)

    def invert(self, whole: Any, older: Any) -> Any:
        """Take the older part away."""
        assert self.monoid.invert is not None
        return self._fresh("invert", self.monoid.invert, (self._copied(whole), self._copied(older)), 0)

    def lower(self, partial: Any) -> Any:
        """Answer."""
        if self.monoid.lower is None:
            return partial
        return self._guarded("lower", self.monoid.lower, (self._copied(partial),))

    def fold(self, run: Run) -> Any:
        """The partial of a run of rows."""
        total = self.lift(run[0])
        for values in run[1:]:
            total = self.combine(total, self.lift(values))
        return total

    def after(self, name: str, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """Call a function on the arguments themselves, and give back what it left of them."""
        out = (self.blank(0),) if self.row and name != "lower" else ()
        self._guarded(name, getattr(self.monoid, name), (*arguments, *out))
        return arguments

    def over_argument(self, name: str, arguments: tuple[Any, ...], place: int) -> Any:
        """What a function of rows writes if its `out` is the memory of an argument."""
        copies = tuple(map(independent, arguments))
        self._guarded(name, getattr(self.monoid, name), (*copies, copies[place]))
        return copies[place]

    def portrait(self, partial: Any) -> Any:
        """A picture of a partial that stays as it is when the partial is changed.

        A copy, if the partial can be copied and compared; else its bytes; else its answer.
        """
        if self.monoid.is_compilable:
            return independent(partial)
        try:
            picture = copy.deepcopy(partial)
        except Exception:  # noqa: BLE001 - whatever a foreign type raises, it cannot be copied
            picture = None
        if picture is not None and same(picture, partial):
            return picture
        return self.lower(partial) if self.monoid.codec is None else self._bytes(partial)

    def is_same(self, left: Any, right: Any, tolerance: float) -> bool:
        """Whether two partials are the same, or answer alike wherever they are used."""
        if same(left, right, tolerance):
            return True
        if is_opaque(left) and self.monoid.codec is not None and self._bytes(left) == self._bytes(right):
            return True
        if self.monoid.lower is None:
            return False
        try:
            pairs = self._in_context(left, right)
            return all(same(self.lower(one), self.lower(other), tolerance) for one, other in pairs)
        except Raised:
            return False

    def stored(self, partial: Any) -> Any:
        """A partial as its state, or its codec, gives it back."""
        return self._guarded("store", self._stored, (partial,))

    def _stored(self, partial: Any) -> Any:
        state, codec = self.monoid.state, self.monoid.codec
        if isinstance(state, Object):
            return codec.decode(codec.encode(partial)) if codec else partial
        if isinstance(state, Row):
            return partial
        if isinstance(state, Scalar):
            return _cast(partial, state.dtype)
        if len(partial) != len(state.names):
            raise ValueError(f"{len(partial)} numbers for the {len(state.names)} field(s) of the state")
        return tuple(_cast(number, dtype) for number, dtype in zip(partial, state.dtypes, strict=True))

    def _bytes(self, partial: Any) -> Any:
        assert self.monoid.codec is not None
        return self._guarded("encode", self.monoid.codec.encode, (partial,))

    def _in_context(self, left: Any, right: Any) -> Iterator[tuple[Any, Any]]:
        yield left, right
        for values in self.contexts:
            other = self.lift(values)
            yield self.combine(left, other), self.combine(right, other)
            yield self.combine(other, left), self.combine(other, right)

    def _fresh(self, name: str, function: Function, arguments: tuple[Any, ...], filler: int) -> Any:
        if self.row is None:
            return self._guarded(name, function, arguments)
        out = self.blank(filler)
        self._guarded(name, function, (*arguments, out))
        return out

    def _guarded(self, name: str, function: Function, arguments: tuple[Any, ...]) -> Any:
        try:
            return function(*arguments)
        except Exception as error:
            raise Raised(name, arguments, error) from error


def _as_it_is(value: Any) -> Any:
    return value


def _cast(number: Any, dtype: np.dtype[Any]) -> Any:
    with np.errstate(all="ignore"):
        return np.full(1, number).astype(dtype)[0].item()
