"""Count the calls of combine: costs are claims about numbers of calls, so they are tested as such.

Interpreted only; the count is a Python integer, which machine code could not reach.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from sash.algebra.aggregate import Aggregate
from sash.algebra.monoid import Monoid
from sash.engine.binding import as_aggregate


@dataclass
class Calls:
    """How often each function of an aggregate has been called."""

    lift: int = 0
    combine: int = 0
    lower: int = 0
    invert: int = 0

    def take(self) -> int:
        """Give the calls of combine since the last time, and begin again."""
        taken, self.combine = self.combine, 0
        return taken

    def counted(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Make a function that counts its calls under a name."""

        def counting(*arguments: Any) -> Any:
            setattr(self, name, getattr(self, name) + 1)
            return function(*arguments)

        return counting


def counting(definition: Any) -> tuple[Aggregate, Calls]:
    """Make the same aggregate with its calls counted, and the counts.

    >>> from sash.engine.aggregator import aggregator
    >>> from sash.testing.monoids import Sum
    >>> counted, calls = counting(Sum)
    >>> window = aggregator("recalc", counted)
    >>> window.bulk_insert([1, 2, 3])
    >>> window.query(), calls.combine
    (6, 2)
    """
    given, calls = as_aggregate(definition), Calls()
    bound: dict[tuple[Any, ...], Monoid] = {}  # so that building twice builds the same

    def bind(*dtypes: Any) -> Monoid:
        if dtypes not in bound:
            bound[dtypes] = _counted(given.bind(*dtypes), calls)
        return bound[dtypes]

    return replace(given, binder=bind), calls


def _counted(monoid: Monoid, calls: Calls) -> Monoid:
    return replace(
        monoid,
        lift=calls.counted("lift", monoid.lift),
        combine=calls.counted("combine", monoid.combine),
        lower=calls.counted("lower", monoid.lower) if monoid.lower else None,
        invert=calls.counted("invert", monoid.invert) if monoid.invert else None,
    )
