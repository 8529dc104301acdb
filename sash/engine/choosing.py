"""Which algorithm, and why: ordered predicates, the first that holds decides.

Thresholds come from `make bench`; a choice can always be overruled by `algorithm=`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sash.algebra.monoid import Monoid
from sash.algebra.state import Record, Scalar


class Question(NamedTuple):
    """What is known when an algorithm is chosen for whole columns."""

    monoids: Sequence[Monoid]
    rows: int | None  # the length of fixed windows; None: frames of varying length
    has_nulls: bool
    is_compiled: bool


class Choice(NamedTuple):
    """A choice that explains itself."""

    algorithm: str
    why: str


def choose(question: Question) -> Choice:
    """Choose an algorithm for whole columns."""
    if _scans(question):
        return Choice("sba", "windows of a fixed number of rows and partials that fit registers: a boundary scan")
    single = question.monoids[0] if len(question.monoids) == 1 else None
    if single is not None and single.selective:
        return Choice("slick_deque", f"{single.name} selects one of its arguments: dominated rows can be forgotten")
    if all(monoid.invert is not None and monoid.exact is True for monoid in question.monoids):
        return Choice("subtract_on_evict", "every aggregate has an exact inverse: leaving rows are subtracted")
    return Choice("two_stacks_lite", "any associative aggregate, highest throughput")


def _scans(question: Question) -> bool:
    fits = all(fits_registers(monoid) for monoid in question.monoids)
    return question.rows is not None and fits and question.is_compiled and not question.has_nulls


def fits_registers(monoid: Monoid) -> bool:
    """Whether a partial is a number or a few."""
    return isinstance(monoid.state, (Scalar, Record))
