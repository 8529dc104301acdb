"""What will run and why, before it runs: window, algorithm, reason, cost, state, and what would change the choice."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from sash.aggregators.contract import Card
from sash.algebra.aggregate import Aggregate
from sash.algebra.monoid import Monoid, ungraded
from sash.algebra.state import Record, Row, Scalar
from sash.compiling.jit import is_enabled
from sash.engine import ranked
from sash.engine.binding import as_aggregate
from sash.engine.columns import Column
from sash.engine.groups import Group, groups_of
from sash.engine.ranked import is_rankable
from sash.engine.structures import find_in_order
from sash.engine.tasks import tasks_of
from sash.windows.bounds import Bounds, Every

COUNT_BYTES, ORDER_BYTES = 8, 8  # beside each partial, how many of its rows are valid; beside each row, its order


class Explanation(NamedTuple):
    """One group of aggregates that go through one structure together."""

    aggregates: tuple[str, ...]
    window: str
    algorithm: str
    why: str
    form: str
    cost: str
    state: str
    otherwise: str

    def __str__(self) -> str:
        """One line for each thing to know."""
        rows = [("aggregates", ", ".join(self.aggregates)), *zip(self._fields[1:], self[1:], strict=True)]
        return "\n".join(f"{name:<12}{text}" for name, text in rows)


def explain_run(
    bounds: Bounds,
    aggregates: Mapping[str, Any],
    columns: Mapping[str, Column] | None = None,
    *,
    is_exact: bool = True,
    algorithm: str | None = None,
) -> list[Explanation]:
    """Explain a run over columns of these types, float64 where nothing is known; `is_exact`: the order is integers."""
    declared = {name: as_aggregate(each) for name, each in aggregates.items()}
    tasks = tasks_of(_columns_like(columns or {}, declared.values()), declared)
    groups = groups_of(tasks, bounds, has_nulls=True, is_exact=is_exact, forced=algorithm)
    by_rank = {place for place, task in enumerate(tasks) if algorithm is None and is_rankable(task)}
    return [part for group in groups for part in _parts(group, bounds, tuple(declared), by_rank)]


def _parts(group: Group, bounds: Bounds, names: Sequence[str], by_rank: Collection[int]) -> list[Explanation]:
    """A group, and those of its aggregates apart that whole tables answer by ranks."""
    places = tuple(place for place in group.places if place not in by_rank)
    monoids = dict(zip(group.places, group.kind.monoids, strict=True))
    kind = group.kind._replace(monoids=tuple(monoids[place] for place in places))
    parts = [_explained(group._replace(places=places, kind=kind), bounds, names)] if places else []
    if len(places) < len(group.places):
        parts.append(_by_ranks(group, bounds, [names[place] for place in group.places if place in by_rank]))
    return parts


def _by_ranks(group: Group, bounds: Bounds, names: Sequence[str]) -> Explanation:
    return Explanation(
        tuple(names),
        str(bounds),
        f"{ranked.NAME} ({ranked.TITLE})",
        ranked.WHY.format(group.choice.algorithm),
        "machine code" if is_enabled() else "interpreted Python",
        ranked.COST,
        ranked.STATE,
        f"algorithm('{group.choice.algorithm}'): all values of a window in order, as one partial",
    )


def _columns_like(known: Mapping[str, Column], aggregates: Iterable[Aggregate]) -> dict[str, Column]:
    """A column without rows for each name."""
    types: dict[str, Any] = {name: np.dtype("f8") for each in aggregates for name in each.columns}
    types |= {each.condition: np.dtype("?") for each in aggregates if each.condition is not None}
    types |= {name: column.values.dtype for name, column in known.items()}
    return {name: Column(np.empty(0, dtype), None) for name, dtype in types.items()}


def _explained(group: Group, bounds: Bounds, names: Sequence[str]) -> Explanation:
    card, monoids = find_in_order(group.choice.algorithm).card, group.kind.monoids
    return Explanation(
        tuple(names[place] for place in group.places),
        str(bounds),
        f"{card.name} ({card.title})",
        group.choice.why,
        "machine code" if group.kind.is_compiled else "interpreted Python",
        f"{card.amortised} calls of combine a row on average, {card.worst} at worst, for n rows in the window",
        _state(card, monoids, bounds, is_sliced=group.is_sliced),
        _otherwise(card.name, monoids),
    )


def _state(card: Card, monoids: Sequence[Monoid], bounds: Bounds, *, is_sliced: bool) -> str:
    """What is kept for the key at hand, in bytes where partials have a width."""
    widths = [partial_bytes(monoid) for monoid in monoids]
    each = "Python objects" if None in widths else f"{sum(w or 0 for w in widths)} bytes"
    text = f"{card.space} partials of {each}"
    if is_sliced:
        assert isinstance(bounds.every, Every)
        assert bounds.span is not None
        n_slices = math.ceil(bounds.span / bounds.every.step) + 1
        return f"{text}, for n slices of rows that leave together, not rows; n is at most {n_slices}"
    if bounds.kind in ("span", "delta"):
        text += f", and {ORDER_BYTES} bytes of order a row in the window"
    if bounds.rows is not None:
        text += f"; n is at most {bounds.rows}"
    return text


def partial_bytes(monoid: Monoid) -> int | None:
    """How wide a partial is, with the count of its valid rows; None for Python objects."""
    state = ungraded(monoid).state
    if isinstance(state, Scalar):
        return state.dtype.itemsize + COUNT_BYTES
    if isinstance(state, Record):
        return sum(dtype.itemsize for dtype in state.dtypes) + COUNT_BYTES
    return state.width * state.dtype.itemsize + COUNT_BYTES if isinstance(state, Row) else None


def _otherwise(chosen: str, monoids: Sequence[Monoid]) -> str:
    """What would change the choice."""
    forced = "algorithm('daba_lite') for a bound on every single row"
    if chosen == "running_total":
        return "a bound on rows or span: windows from which rows leave one by one need more than a total"
    if chosen == "slick_deque":
        return f"a second aggregate beside it: two_stacks_lite; {forced}"
    if chosen == "subtract_on_evict":
        return f"an aggregate without an exact inverse beside them: two_stacks_lite; {forced}"
    inexact = sorted({monoid.name for monoid in monoids if monoid.invert is None or monoid.exact is not True})
    if chosen == "two_stacks_lite" and inexact:
        return f"without {', '.join(inexact)}, which cannot be subtracted exactly: subtract_on_evict; {forced}"
    return f"no algorithm asked for by name: the choice is made by algebra; {forced}"
