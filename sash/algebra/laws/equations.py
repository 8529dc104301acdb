"""The laws of `monoid.py` as equations between two sides that can be computed and compared.

+ is combine, 0 the identity; x, y and z are partials of runs of rows. The claim of an equation names
its two sides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sash.algebra.laws.report import shown
from sash.algebra.laws.sameness import independent, same
from sash.algebra.laws.sampling import Run
from sash.algebra.laws.subject import Subject
from sash.algebra.monoid import Monoid
from sash.algebra.state import Row

NAMES = {
    "L1": "associativity",
    "L2": "identity",
    "L3": "purity",
    "L4": "commutativity",
    "L5": "inverse",
    "L6": "selection",
    "L7": "lift and lower",
}

Sides = Callable[..., tuple[Any, Any]]  # (subject, *runs) -> the two sides


@dataclass(frozen=True)
class Equation:
    """One claim of a law: two sides that must be the same for all runs of rows."""

    law: str
    claim: str  # "left side == right side"
    n_runs: int
    sides: Sides
    applies: Callable[[Monoid], bool] = lambda monoid: True
    is_strict: bool = False  # no rounding is forgiven
    is_lone: bool = False  # runs of several rows would tell nothing more
    hint: str = ""


class Either:
    """Shows as "x or y": what a selection should have given."""

    def __init__(self, x: Any, y: Any) -> None:
        self._choices = x, y

    def __repr__(self) -> str:
        return " or ".join(map(shown, self._choices))


def _associative(s: Subject, x: Run, y: Run, z: Run) -> tuple[Any, Any]:
    a, b, c = s.fold(x), s.fold(y), s.fold(z)
    return s.combine(s.combine(a, b), c), s.combine(a, s.combine(b, c))


def _identity_first(s: Subject, x: Run) -> tuple[Any, Any]:
    return s.combine(s.identity, s.fold(x)), s.fold(x)


def _identity_last(s: Subject, x: Run) -> tuple[Any, Any]:
    return s.combine(s.fold(x), s.identity), s.fold(x)


def _identity_stored(s: Subject) -> tuple[Any, Any]:
    return s.stored(s.identity), s.identity


def _commutative(s: Subject, x: Run, y: Run) -> tuple[Any, Any]:
    a, b = s.fold(x), s.fold(y)
    return s.combine(a, b), s.combine(b, a)


def _inverse(s: Subject, x: Run, y: Run) -> tuple[Any, Any]:
    a, b = s.fold(x), s.fold(y)
    return s.invert(s.combine(a, b), a), b


def _selective(s: Subject, x: Run, y: Run) -> tuple[Any, Any]:
    a, b = s.fold(x), s.fold(y)
    joined = s.combine(a, b)
    return joined, joined if same(joined, a) or same(joined, b) else Either(a, b)


def _arguments(s: Subject, name: str, x: Run, y: Run) -> tuple[Any, Any]:
    older, newer = s.fold(x), s.fold(y)
    return (older, newer) if name == "combine" else (s.combine(older, newer), older)


def _keeps(name: str, place: int) -> Sides:
    """An argument after the call, and before it."""

    def sides(s: Subject, x: Run, y: Run) -> tuple[Any, Any]:
        arguments = _arguments(s, name, x, y)
        before = s.portrait(arguments[place])
        return s.portrait(s.after(name, arguments)[place]), before

    return sides


def _lower_keeps(s: Subject, x: Run) -> tuple[Any, Any]:
    partial = s.fold(x)
    before = s.portrait(partial)
    return s.portrait(s.after("lower", (partial,))[0]), before


def _lift_keeps(s: Subject, x: Run) -> tuple[Any, Any]:
    return s.after("lift", tuple(map(independent, x[0]))), x[0]


def _over_argument(name: str, place: int) -> Sides:
    """A row written over an argument, and elsewhere."""

    def sides(s: Subject, x: Run, y: Run) -> tuple[Any, Any]:
        arguments = _arguments(s, name, x, y)
        elsewhere = s.combine(*arguments) if name == "combine" else s.invert(*arguments)
        return s.over_argument(name, arguments, place), elsewhere

    return sides


def _combine_over_ones(s: Subject, x: Run, y: Run) -> tuple[Any, Any]:
    older, newer = s.fold(x), s.fold(y)
    return s.combine(older, newer, filler=1), s.combine(older, newer, filler=0)


def _lift_over_ones(s: Subject, x: Run) -> tuple[Any, Any]:
    return s.lift(x[0], filler=1), s.lift(x[0], filler=0)


def _lifts_again(s: Subject, x: Run) -> tuple[Any, Any]:
    first = independent(s.lift(x[0]))
    return s.lift(x[0]), first


def _lowers_again(s: Subject, x: Run) -> tuple[Any, Any]:
    partial = s.fold(x)
    first = independent(s.lower(partial))
    return s.lower(partial), first


def _lowers_nothing(s: Subject) -> tuple[Any, Any]:
    return s.lower(s.identity), s.lower(s.identity)


def _stores(s: Subject, x: Run) -> tuple[Any, Any]:
    partial = s.lift(x[0])
    return s.stored(partial), partial


def _has_identity(monoid: Monoid) -> bool:
    return monoid.identity is not None


def _writes(monoid: Monoid) -> bool:
    return isinstance(monoid.state, Row)


def _inverts(monoid: Monoid) -> bool:
    return monoid.invert is not None


def _inverts_exactly(monoid: Monoid) -> bool:
    return monoid.invert is not None and monoid.exact is True


def _writes_inverse(monoid: Monoid) -> bool:
    return _writes(monoid) and _inverts(monoid)


READ_FIRST = "the `out` of a row may be the memory of an argument: read a place before writing it"
OVERWRITE = "the `out` of a row holds anything at first: write every place of it"
DECLARE_INEXACT = "this is rounding: declare exact = False, and windows will only subtract if asked to"
FIT = "what lift gives must fit into the declared state, or survive the declared codec"

LIFT = Equation("L7", "lift(x) again == lift(x)", 1, _lifts_again, is_strict=True, is_lone=True)
STORE = Equation("L7", "x as stored == x", 1, _stores, is_lone=True, hint=FIT)


def _pure(claim: str, n_runs: int, sides: Sides, applies: Any = lambda monoid: True, hint: str = "") -> Equation:
    return Equation("L3", claim, n_runs, sides, applies, is_strict=True, hint=hint)


EQUATIONS = (
    Equation("L1", "(x + y) + z == x + (y + z)", 3, _associative),
    Equation("L2", "0 + x == x", 1, _identity_first, _has_identity),
    Equation("L2", "x + 0 == x", 1, _identity_last, _has_identity),
    Equation("L2", "0 as stored == 0", 0, _identity_stored, _has_identity),
    _pure("x after x + y == x", 2, _keeps("combine", 0)),
    _pure("y after x + y == y", 2, _keeps("combine", 1)),
    _pure("x + y written over x == x + y", 2, _over_argument("combine", 0), _writes, READ_FIRST),
    _pure("x + y written over y == x + y", 2, _over_argument("combine", 1), _writes, READ_FIRST),
    _pure("x + y written over ones == x + y", 2, _combine_over_ones, _writes, OVERWRITE),
    _pure("lift(x) written over ones == lift(x)", 1, _lift_over_ones, _writes, OVERWRITE),
    _pure("x after lift(x) == x", 1, _lift_keeps),
    _pure("x after lower(x) == x", 1, _lower_keeps, lambda monoid: monoid.lower is not None),
    _pure("w after invert(w, x) == w, which is x + y", 2, _keeps("invert", 0), _inverts),
    _pure("x after invert(x + y, x) == x", 2, _keeps("invert", 1), _inverts),
    _pure("invert(w, x) written over w == invert(w, x), w is x + y", 2, _over_argument("invert", 0), _writes_inverse),
    _pure("invert(x + y, x) written over x == invert(x + y, x)", 2, _over_argument("invert", 1), _writes_inverse),
    Equation("L4", "x + y == y + x", 2, _commutative, lambda monoid: monoid.commutative),
    Equation("L5", "invert(x + y, x) == y", 2, _inverse, _inverts),
    Equation("L5", "invert(x + y, x) == y", 2, _inverse, _inverts_exactly, is_strict=True, hint=DECLARE_INEXACT),
    Equation("L6", "x + y == x or y", 2, _selective, lambda monoid: monoid.selective, is_strict=True),
    LIFT,
    STORE,
    Equation("L7", "lower(x) again == lower(x)", 1, _lowers_again, is_strict=True),
    Equation("L7", "lower(0) again == lower(0)", 0, _lowers_nothing, lambda monoid: monoid.answers_empty),
)
