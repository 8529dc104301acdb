"""Which algorithm, and why: ordered predicates, the first that holds decides.

Thresholds come from `make bench`; a choice can always be overruled by `algorithm=`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sash.algebra.monoid import Monoid
from sash.algebra.state import Record, Scalar
from sash.compiling.straight import is_straight
from sash.windows.bounds import Bounds, Every

# Which rows are dominated no processor can predict: 16 ns a row against 28 at windows of 100 rows, and so at others.
FEWER_BRANCHES = "{} could forget dominated rows, but as machine code combining takes less time than telling them"


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


def choose_run(question: Question, bounds: Bounds, *, is_exact: bool) -> Choice:
    """Choose an algorithm for sorted rows that come in batches; `is_exact`: order values are integers."""
    if only_grows(bounds, is_exact=is_exact):
        return Choice("running_total", "windows only grow until they begin anew: one running total is enough")
    chosen = choose(question)
    if chosen.algorithm == "slick_deque" and question.is_compiled:
        return Choice("two_stacks_lite", FEWER_BRANCHES.format(question.monoids[0].name))
    return chosen


def only_grows(bounds: Bounds, *, is_exact: bool) -> bool:
    """Whether no row ever leaves a window before all of it does.

    On a grid that is so if windows have no row in common; with floats, rounding may put one into two of them.
    """
    if bounds.rows is not None:
        return False
    if isinstance(bounds.every, Every) and bounds.span is not None and is_exact:
        return bounds.span < bounds.every.step or (bounds.span == bounds.every.step and bounds.closed != "both")
    return bounds.kind in ("everything", "gap", "since")


def is_sliced(bounds: Bounds, *, is_exact: bool) -> bool:
    """Whether rows leave windows together, slice by slice, and windows overlap: on a grid in time, by their age."""
    if not isinstance(bounds.every, Every) or bounds.span is None or bounds.rows is not None:
        return False
    return bounds.span >= bounds.every.step and not only_grows(bounds, is_exact=is_exact)


def _scans(question: Question) -> bool:
    fits = all(fits_registers(monoid) for monoid in question.monoids)
    return question.rows is not None and fits and question.is_compiled and not question.has_nulls


def fits_registers(monoid: Monoid) -> bool:
    """Whether a partial is a number or a few."""
    return isinstance(monoid.state, (Scalar, Record))


def is_arithmetic(monoid: Monoid) -> bool:
    """Whether rows are lifted and combined by plain arithmetic on one or two numbers, which vector code can do."""
    n_numbers = len(monoid.state.names) if isinstance(monoid.state, Record) else 1
    return fits_registers(monoid) and n_numbers <= 2 and is_straight(monoid.lift) and is_straight(monoid.combine)
