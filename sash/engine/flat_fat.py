"""FlatFAT as a thing of its own: values at fixed locations, and the aggregate of all, a prefix or a suffix.

Locations count from 0 here and from 1 in the paper: its a[i] is location i - 1, and its prefix(7) is
prefix(6). A location may hold null.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, NoReturn

from sash.aggregators.contract import END, Fifo
from sash.aggregators.flat_fat import ALGORITHM, ROOT, SCRATCH, Tree, operations
from sash.algebra.monoid import Monoid
from sash.compiling.interpreted_cells import interpreted_cells
from sash.compiling.jit import compiled as machine_code
from sash.compiling.jit import entry, interpreted
from sash.engine import snapshot
from sash.engine.binding import Bound
from sash.engine.building import Built, new_state, nullable, product
from sash.engine.in_order import InOrderAggregator
from sash.errors import DataError, DeclarationError, UnsupportedError


class FlatFat(InOrderAggregator):
    """Values at locations 0 to n - 1, and a tree of aggregates above them.

    Cost in calls of combine: n - 1 to make it; update of m locations at once at most
    m (1 + ceil(log2(n / m))); aggregate 0; prefix and suffix at most ceil(log2 n).

    >>> import sash
    >>> tree = sash.aggregator("flat_fat", sash.concat(), values="abcd")
    >>> tree.update({0: "A", 3: "D"})
    >>> tree.aggregate(), tree.prefix(1), tree.suffix(2)
    ('AbcD', 'Ab', 'cD')
    """

    __slots__ = ("_tree",)

    def __init__(self, bound: Bound, values: Iterable[Any]) -> None:
        built, self._tree = _build(bound.monoids, bound.is_compiled)
        super().__init__(built, bound)
        self._fill(list(values))

    def update(self, changes: Mapping[int, Any]) -> None:
        """Write values to locations, all at once; None for null, tuples if the aggregate takes several."""
        rows = {location: self._row(value) for location, value in changes.items()}
        for location in rows:
            self._require_location(location)
        for location, row in rows.items():
            self._write(location, row)
        self._tree.repair(self._state)

    def aggregate(self) -> Any:
        """Aggregate all locations in their order; null (None) if they hold nothing to aggregate."""
        return self._answer(ROOT)

    def query(self) -> Any:
        """Aggregate all locations, as `aggregate` does."""
        return self.aggregate()

    def prefix(self, i: int) -> Any:
        """Aggregate the locations 0 to i, i included."""
        self._require_location(i)
        self._tree.prefix(self._state, SCRATCH, self._capacity + i)
        return self._answer(SCRATCH)

    def suffix(self, j: int) -> Any:
        """Aggregate the locations j to n - 1."""
        self._require_location(j)
        self._tree.suffix(self._state, SCRATCH, self._capacity + j, self._capacity + len(self) - 1)
        return self._answer(SCRATCH)

    def snapshot(self) -> bytes:
        """Write all locations, and the tree above them, to bytes."""
        return snapshot.write(self._built, self._bound.monoids, self._state)

    def _fill(self, values: list[Any]) -> None:
        if not values:
            raise DeclarationError("flat_fat needs at least one location; give values, or None for each empty one")
        self._state = new_state(self._built, 1 << (len(values) - 1).bit_length())
        self._state.at[END] = len(values)
        for location, value in enumerate(values):
            self._write(location, self._row(value))
        self._tree.repair(self._state)

    def _write(self, location: int, row: tuple[Any, ...]) -> None:
        for columns in self._rows:
            columns.put(row)
        self._tree.write(self._state, location, self._columns, 0)

    def _row(self, value: Any) -> tuple[Any, ...]:
        n_values = max(self._bound.n_values, 1)
        if value is None or n_values == 1:
            return (value,) * n_values
        if not isinstance(value, tuple) or len(value) != n_values:
            raise DataError(f"a location takes a tuple of {n_values} values, got {value!r}")
        return value

    def _require_location(self, location: int) -> None:
        if not 0 <= location < len(self):
            raise DataError(f"location {location!r} is outside 0 to {len(self) - 1}")


@lru_cache(maxsize=256)
def _build(monoids: tuple[Monoid, ...], is_compiled: bool) -> tuple[Built, Tree]:
    if not is_compiled:
        cells = product([interpreted_cells(monoid) for monoid in monoids], interpreted)
        return Built(ALGORITHM, cells, REFUSING, False), operations(cells, interpreted)
    cells = product([nullable(monoid) for monoid in monoids], machine_code)
    inner: Any = operations(cells, machine_code)
    lower: Any = cells.lower
    tree = Tree(*(entry(operation) for operation in inner))
    return Built(ALGORITHM, cells._replace(lower=entry(lower)), REFUSING, True), tree


def _refuse(*arguments: Any) -> NoReturn:
    raise UnsupportedError(
        "flat_fat has a fixed number of locations; nothing is inserted or evicted, update({location: value}) "
        "changes them. Use reactive, which slides a window over it"
    )


REFUSING = Fifo(_refuse, _refuse, _refuse, _refuse)
