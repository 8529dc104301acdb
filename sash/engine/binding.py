"""What a window aggregates: declared aggregates, bound to the type of what will be inserted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from sash.algebra.aggregate import Aggregate
from sash.algebra.declaring import agg
from sash.algebra.monoid import Monoid
from sash.compiling.jit import is_enabled
from sash.engine.building import unnested
from sash.engine.events import answer_of_nothing, take_answer
from sash.errors import DeclarationError


class Bound(NamedTuple):
    """The monoids of a window, and how its answers are shown: one, or a dict by name."""

    monoids: tuple[Monoid, ...]
    names: tuple[str, ...] | None
    dtype: Any  # of the values in compiled form
    is_compiled: bool

    @property
    def n_values(self) -> int:
        """How many values an event has."""
        return max(monoid.n_inputs for monoid in self.monoids)

    def answer(self, results: Any) -> Any:
        """Read the answers of one row."""
        pairs = zip(unnested(results, len(self.monoids)), self.monoids, strict=True)
        return self._shown([take_answer(each, monoid) for each, monoid in pairs])

    def answer_of_nothing(self) -> Any:
        """What a window without rows answers."""
        return self._shown([answer_of_nothing(monoid) for monoid in self.monoids])

    def _shown(self, answers: list[Any]) -> Any:
        return answers[0] if self.names is None else dict(zip(self.names, answers, strict=True))


def bind(aggregate: Any, dtype: Any, *, compiled: bool) -> Bound:
    """Bind one aggregate, or a dict of them, to values of a type; None: Python values, interpreted."""
    aggregates = _named(aggregate)
    inputs = None if dtype is None and not compiled else np.dtype(dtype or "f8")
    monoids = tuple(each.bind(*(inputs,) * each.n_inputs) for each in aggregates.values())
    names = tuple(aggregates) if isinstance(aggregate, Mapping) else None
    return Bound(monoids, names, inputs, compiled and is_enabled())


def as_aggregate(given: Any) -> Aggregate:
    """Read an aggregate, or a class that declares one."""
    return given if isinstance(given, Aggregate) else agg(given)


def _named(aggregate: Any) -> dict[str, Aggregate]:
    if not isinstance(aggregate, Mapping):
        single = as_aggregate(aggregate)
        return {single.name: single}
    if not aggregate:
        raise DeclarationError("no aggregate given; pass one, or a dict of names to aggregates")
    return {str(name): as_aggregate(each) for name, each in aggregate.items()}
