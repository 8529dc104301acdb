"""From an algorithm and some aggregates to functions that run: interpreted, or machine code.

What is built is kept for the life of the process, so that asking twice compiles once.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from sash.aggregators.contract import (
    ASSOCIATIVE,
    MASK,
    SELECTIVE_OR_INVERTIBLE,
    Algorithm,
    Fifo,
    State,
)  # fmt: skip
from sash.algebra.monoid import Monoid
from sash.algebra.state import Row
from sash.compiling.cells import Cells, paired
from sash.compiling.compiled_cells import compiled_cells, counting_nulls
from sash.compiling.interpreted_cells import counting_rows, interpreted_cells
from sash.compiling.jit import compiled, entry, inlined, interpreted
from sash.errors import UnsupportedError


class Built(NamedTuple):
    """An algorithm made for some aggregates; `fifo` is called from Python."""

    algorithm: Algorithm
    cells: Cells
    fifo: Fifo
    is_compiled: bool
    options: tuple[Any, ...] = ()  # what else decides the meaning of its state

    def empty_cell(self, capacity: int) -> int:
        """A cell that no algorithm touches: it always holds no rows."""
        return self.algorithm.shape.n_scratch + self.algorithm.shape.cells_per_slot * capacity


@lru_cache(maxsize=256)
def build(algorithm: Algorithm, monoids: tuple[Monoid, ...], is_compiled: bool, options: tuple[Any, ...]) -> Built:
    """Make the operations of an algorithm over a product of aggregates whose rows may be null."""
    inexact = bool(dict(options).get("inexact", False))
    chosen = {name: value for name, value in options if name != "inexact"}
    chosen |= require_algebra(algorithm, monoids, inexact=inexact)
    decisive = tuple(sorted(chosen.items()))
    if not is_compiled:
        cells = interpreted_product(algorithm, monoids, chosen)
        return Built(algorithm, cells, algorithm.build(cells, interpreted, **chosen), False, decisive)
    cells = product([nullable(monoid) for monoid in monoids], compiled)
    fifo = algorithm.build(cells, inlined, **chosen)
    outer = Fifo(*(entry(operation) for operation in fifo if operation is not None))
    return Built(algorithm, cells._replace(lower=entry(cells.lower)), outer, True, decisive)


def nullable(monoid: Monoid) -> Cells:
    """Compiled cells for a column that may hold nulls."""
    return counting_nulls(compiled_cells(monoid), answers_empty=monoid.answers_empty)


def interpreted_product(algorithm: Algorithm, monoids: Sequence[Monoid], options: dict[str, Any]) -> Cells:
    """Interpreted cells for an algorithm with the options that `require_algebra` found."""
    inverts = algorithm.card.needs != ASSOCIATIVE and not options.get("selective")
    kinds = [interpreted_cells(monoid) for monoid in monoids]
    return product([counting_rows(cells) for cells in kinds] if inverts else kinds, interpreted)


def product(cells: Sequence[Cells], jit: Any) -> Cells:
    """One kind of cell for several aggregates: pairs of pairs, so that fifty of them nest six deep."""
    if len(cells) == 1:
        return cells[0]
    middle = len(cells) // 2
    return paired(product(cells[:middle], jit), product(cells[middle:], jit), jit)


def nested(parts: Sequence[Any]) -> Any:
    """Pair up what belongs to several aggregates, as the cells of a product want it."""
    if len(parts) == 1:
        return parts[0]
    middle = len(parts) // 2
    return nested(parts[:middle]), nested(parts[middle:])


def unnested(pair: Any, count: int) -> list[Any]:
    """Take the pairs of `nested` apart."""
    if count == 1:
        return [pair]
    middle = count // 2
    return unnested(pair[0], middle) + unnested(pair[1], count - middle)


def require_algebra(algorithm: Algorithm, monoids: Sequence[Monoid], *, inexact: bool) -> dict[str, Any]:
    """Refuse aggregates the algorithm is not right for; options that follow from their algebra."""
    needs = algorithm.card.needs
    if needs == ASSOCIATIVE:
        return {}
    if needs == SELECTIVE_OR_INVERTIBLE and len(monoids) == 1 and monoids[0].selective:
        _require_comparable(algorithm.card.name, monoids[0])
        return {"selective": True}
    for monoid in monoids:
        _require_inverse(algorithm.card.name, monoid, inexact)
    return {"selective": False} if needs == SELECTIVE_OR_INVERTIBLE else {}


def _require_comparable(algorithm: str, monoid: Monoid) -> None:
    """Refuse rows: which of two was chosen shows only in a third, and kernels have no memory for it."""
    if isinstance(monoid.state, Row):
        raise UnsupportedError(
            f"{algorithm} compares partials, and {monoid.name} has rows for partials. "
            "Use two_stacks_lite, which never compares them"
        )


def _require_inverse(algorithm: str, monoid: Monoid, inexact: bool) -> None:
    if monoid.invert is None:
        raise UnsupportedError(
            f"{algorithm} needs an inverse, but {monoid.name} has none. "
            "Use two_stacks_lite, which needs associativity alone"
        )
    if monoid.exact is False and not inexact:
        raise UnsupportedError(
            f"{algorithm} would subtract floats, and {monoid.name} would drift. "
            "Use two_stacks_lite, or pass inexact=True to accept the drift"
        )


def new_state(built: Built, capacity: int) -> State:
    """Empty state with room for `capacity` elements, a power of two."""
    shape = built.algorithm.shape
    n_links = shape.links_per_slot * capacity
    pool = built.cells.allocate(built.empty_cell(capacity) + 1)
    if built.is_compiled:
        links, at = np.zeros(n_links, np.int64), np.zeros(shape.n_registers, np.int64)
    else:
        links, at = [0] * n_links, [0] * shape.n_registers  # type: ignore[assignment]
    at[MASK] = capacity - 1
    return State(pool, links, at)
