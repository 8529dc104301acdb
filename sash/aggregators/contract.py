"""What an in-order algorithm is: a few functions over flat state, made for any kind of cell.

Each algorithm is written once, as a function of `Cells`: `build(cells, jit)` makes `insert`,
`evict` and `query`. With the cells of Python values and no compiler it runs on any object; with
compiled cells it is machine code with the user's combine inside.

State is flat. `pool` begins with `n_scratch` cells of the algorithm's own and goes on with a ring
of slots, `cells_per_slot` cells each; `links` has `links_per_slot` integers a slot; `at` holds
registers. Elements are numbered from 0 in order of arrival for ever; element i has slot
i & at[MASK], so that a ring can be replaced by a larger one without renumbering anything.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from sash.algebra.monoid import Function
from sash.compiling.cells import Cells

OLDEST, END, MASK = 0, 1, 2  # registers of every algorithm: the window is OLDEST <= i < END
N_COMMON = 3

ASSOCIATIVE, INVERTIBLE = "associative", "invertible"  # what an algorithm may ask of combine
SELECTIVE_OR_INVERTIBLE = "selective or invertible"

Jit = Callable[[Function], Function]


class State(NamedTuple):
    """Everything an algorithm knows of its window."""

    pool: Any
    links: Any
    at: Any


class Fifo(NamedTuple):
    """The operations of an in-order algorithm. The caller sees to room, and never evicts from nothing."""

    insert: Function  # (state, columns, i): row i becomes the youngest element
    evict: Function  # (state): the oldest element leaves
    query: Function  # (state) -> the cell that holds the aggregate; state is not empty
    move: Function  # (old state, new state): into a larger or smaller ring
    evict_to: Function | None = None  # (state, element): all before it leave, where that is less work than a loop


@dataclass(frozen=True)
class Shape:
    """How much of everything the state of an algorithm has."""

    n_scratch: int = 0
    cells_per_slot: int = 1
    links_per_slot: int = 0
    n_registers: int = N_COMMON


@dataclass(frozen=True)
class Card:
    """What an algorithm promises; feeds the choice, the tests, the documents and the command line."""

    name: str
    title: str
    order: str  # "in order" or "any"
    needs: str  # of combine: ASSOCIATIVE, INVERTIBLE or SELECTIVE_OR_INVERTIBLE
    amortised: str  # calls of combine for a round of insert, evict and query
    worst: str
    space: str  # partials for a window of n
    bulk: str = "loop"
    range: str = "no"
    fixed: bool = False  # True: the window slides by its own rule, evict() is not for the caller
    paper: str = ""


@dataclass(frozen=True)
class Algorithm:
    """An algorithm as it stands in the catalogue."""

    card: Card
    shape: Shape
    build: Callable[..., Fifo]  # (cells, jit, **options)
    check: Callable[[View], None]
    levels: Callable[[Jit], Any] | None = None  # how its nodes are read, if it keeps every element (levels.Levels)


class View:
    """A window laid open for `check`: its registers, its cells as values, and the truth beside them.

    `truth[i]` is the lifted value of element i, for every element ever inserted.
    """

    def __init__(self, state: State, read: Callable[[int], Any], fold: Callable[[int, int], Any]) -> None:
        self.at = state.at
        self.links = state.links
        self.read = read  # cell -> partial
        self.fold = fold  # (first, end) -> the aggregate of the true elements in that range
        self.place: Callable[[int, int], int] | None = None  # (level, node) -> cell, if nodes are not in rings

    def require(self, invariant: str, claim: bool, detail: object = "") -> None:
        """Fail with the number of the invariant that does not hold."""
        if not claim:
            raise AssertionError(f"{invariant} is broken: {detail} with registers {list(self.at)}")

    def require_cell(self, invariant: str, cell: int, first: int, end: int) -> None:
        """Require that a cell holds the aggregate of the elements first to end - 1."""
        found, wanted = self.read(cell), self.fold(first, end)
        if not same(found, wanted):
            self.require(invariant, False, f"cell {cell} is {found!r}, not {wanted!r} of [{first}, {end})")


def same(found: Any, wanted: Any) -> bool:
    """Equality of partials, rows included."""
    equal = found == wanted
    return bool(equal.all() if hasattr(equal, "all") else equal)


def ring_mover(cells: Cells, shape: Shape, jit: Jit) -> Function:
    """Copy scratch, live slots and registers into a ring of another size."""
    transfer = cells.transfer
    n_scratch, n_cells, n_links = shape.n_scratch, shape.cells_per_slot, shape.links_per_slot

    def move(old: State, new: State) -> None:
        for cell in range(n_scratch):
            transfer(new.pool, cell, old.pool, cell)
        old_mask, new_mask = old.at[MASK], new.at[MASK]
        for i in range(old.at[OLDEST], old.at[END]):
            source, target = n_scratch + n_cells * (i & old_mask), n_scratch + n_cells * (i & new_mask)
            for k in range(n_cells):
                transfer(new.pool, target + k, old.pool, source + k)
            for k in range(n_links):
                new.links[n_links * (i & new_mask) + k] = old.links[n_links * (i & old_mask) + k]
        for register in range(len(old.at)):
            new.at[register] = old.at[register]
        new.at[MASK] = new_mask

    return jit(move)
