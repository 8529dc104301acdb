"""An aggregate as it is declared: a monoid not yet bound to columns and their types.

`sash.max("x")` names what is wanted; only when the type of x is known does it become a `Monoid`
(64-bit integers and floats need different identities, strings need no fixed width at all). The
card of an aggregate states its algebra once, for documents, tests and the choice of algorithm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sash.algebra.monoid import Monoid
from sash.errors import DeclarationError

Dtype = np.dtype[Any] | None  # None: Python values, one at a time, of any type


@dataclass(frozen=True)
class AggregateCard:
    """What an aggregate promises; one row of the table of aggregates."""

    name: str
    answer: str  # what it computes, in one phrase
    state: str  # what a partial holds
    invertible: bool = False
    commutative: bool = True
    selective: bool = False
    cost: str = "O(1)"  # of one combine, if it is not constant: in what


@dataclass(frozen=True)
class Aggregate:
    """A declared aggregate; immutable, and the same object may stand in many windows."""

    card: AggregateCard
    binder: Callable[..., Monoid] = field(repr=False)
    columns: tuple[str, ...] = ()
    n_inputs: int = 1
    condition: str | None = None
    options: tuple[tuple[str, Any], ...] = ()
    position_last: bool = False  # its last input is the position of the row, unless a column is given

    @property
    def name(self) -> str:
        """The name it is declared by."""
        return self.card.name

    def where(self, column: str) -> Aggregate:
        """Count only the rows where a boolean column is true (null counts as false)."""
        if self.condition is not None:
            raise DeclarationError(f"{self.name} has a condition already: where({self.condition!r})")
        return replace(self, condition=column)

    def bind(self, *dtypes: Dtype) -> Monoid:
        """Make the monoid for inputs of these types."""
        if len(dtypes) != self.n_inputs:
            raise DeclarationError(f"{self.name} takes {self.n_inputs} column(s), got {len(dtypes)}")
        return self.binder(*dtypes)


def declare(
    card: AggregateCard,
    binder: Callable[..., Monoid],
    *columns: str | None,
    n_inputs: int | None = None,
    **options: Any,
) -> Aggregate:
    """Make an aggregate whose columns may still be unnamed (all None)."""
    named = tuple(column for column in columns if column is not None)
    wanted = len(columns) if n_inputs is None else n_inputs
    if named and len(named) != wanted:
        raise DeclarationError(f"{card.name} takes {wanted} column(s), got {', '.join(named)}")
    return Aggregate(card, binder, named, wanted, options=tuple(options.items()))
