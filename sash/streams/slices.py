"""Slices: on a grid, the rows of a key between two instants become one row as soon as they come.

    rows of a key       x x   x | x       x x | x x x ...      | instants of the grid
    rows of its slices        p |           p |     p ...      their count, sum, least or greatest

A window that ends at an instant and is a whole number of steps long has all rows of a slice in it or none of them. So
one row can stand for them: it waits, is kept and is answered in their place, and a stream on a grid keeps what slices
take instead of what rows take. Rows of the same slice that come in another micro-batch, or were read elsewhere, make
another row of it: so they are put together where they are read, and only slices travel to their shard.

    I1  the row of a slice has the time of the last of its rows, so it is due when they are, in the windows they are in,
        and moves the watermark of its shard as they would, whatever rows of other keys were read beside them
    I2  over rows of slices the rewritten specs answer what the specs answer over the rows

I2 asks that parts can be put together in any order and are plain columns: count, sum, min, max and mean of
numbers. Sums of floats may differ in their last bit, as they may between any two orders of addition. Everything else is
kept row by row; so are rows with a zero that is the min or max of their slice, because 0.0 and -0.0 are equal, and the
first of them is the answer. A sum of integers must fit into 64 bits in every slice, and not only in every window; also
in one of late rows, because which are late is not known yet where rows are read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sash.algebra.aggregate import Aggregate
from sash.algebra.arithmetic import count, sum
from sash.algebra.ordering import max, min
from sash.frames import buffers
from sash.frames.arrow_tables import Source
from sash.frames.carriers import is_plain
from sash.frames.extents import Named
from sash.frames.folding import Groups, fold
from sash.frames.keys import Codes, joint_codes
from sash.frames.rules import RULES, rule_of
from sash.streams.contract import HASH
from sash.streams.plans import Plan, microseconds
from sash.streams.timing import Instants, instants_of, times_of

if TYPE_CHECKING:
    from sash.frames.spec import Spec

PARTIAL = "__sash_partial"
N_ROWS = "__sash_rows"  # how many rows a row of a slice stands for
LATEST = "__sash_latest"  # the time of the last of them, which becomes its own (I1)
PARTS: dict[str, Callable[[Aggregate], list[Aggregate]]] = {  # what is kept of the rows of a slice
    "count": lambda own: [own],
    "sum": lambda own: [own],
    "min": lambda own: [own],
    "max": lambda own: [own],
    "mean": lambda own: [_like(sum, own), _like(count, own)],
}
AGAIN = {"count": sum, "sum": sum, "min": min, "max": max}  # what puts kept parts together


def _like(make: Callable[[str], Aggregate], own: Aggregate) -> Aggregate:
    """Another aggregate of the same column and condition."""
    return replace(make(own.columns[0]), condition=own.condition)


@dataclass(frozen=True)
class Slicing:
    """How rows become rows of slices, and how answers over these become those that were asked for."""

    plan: Plan  # over rows of slices
    folded: Named  # what is kept of the rows of each key and slice
    lowered: dict[str, tuple[str, ...]]  # for each answer the names of the answers it is made of
    extremes: dict[str, str]  # parts that are a min or max of floats, and their columns
    instants: Instants

    def fold(self, rows: Any) -> Any:
        """Rows as they came, put together by key and slice, with the number of each; those that are so already stay."""
        if N_ROWS in rows.schema.names:
            return rows
        has_place = pc.and_(rows.column(self.plan.time).is_valid(), rows.column(HASH).is_valid())
        if pc.all(has_place, min_count=0).as_py():
            return self._folded(rows)
        return pa.concat_tables([self._folded(rows.filter(has_place)), self._alone(rows.filter(pc.invert(has_place)))])

    def _folded(self, rows: Any) -> Any:
        slices = self.instants.numbers(times_of(rows.column(self.plan.time)))
        keys, source = [buffers.single(rows.column(name)) for name in self.plan.window.by], Source(rows)
        codes = joint_codes([*keys, pa.array(slices)], len(slices))
        groups = fold(self.folded, codes, source)
        alone = self._with_zeros(rows, codes, groups)
        if len(alone):
            slices[alone] = slices.max(initial=0) + 1 + np.arange(len(alone))
            groups = fold(self.folded, joint_codes([*keys, pa.array(slices)], len(slices)), source)
        found = groups.answers
        kept = rows.select([name for name in self.schema.names if name not in found]).take(pa.array(groups.rows))
        return self._in_form({**_columns(kept), **found, self.plan.time: found[LATEST]})

    def _alone(self, rows: Any) -> Any:
        """Rows without a place, each by itself: they are counted, and otherwise of no use."""
        nothing = {field.name: pa.nulls(rows.num_rows, field.type) for field in self.schema}
        return self._in_form({**nothing, **_columns(rows), N_ROWS: pa.array(np.ones(rows.num_rows, np.int64))})

    def _in_form(self, columns: dict[str, Any]) -> Any:
        return pa.table([columns[name] for name in self.schema.names], schema=self.schema)

    @property
    def schema(self) -> Any:
        """Of rows of slices on their way to their shard."""
        return self.plan.waiting_schema.append(pa.field(N_ROWS, pa.int64()))

    def _with_zeros(self, rows: Any, codes: Codes, groups: Groups) -> Any:
        """The rows with a zero in slices whose min or max it is."""
        found = np.zeros(rows.num_rows, np.bool_)
        for part, column in self.extremes.items():
            are_zero = _zeros(groups.answers[part])
            if are_zero.any():
                of_code = np.zeros(codes.n_codes, np.bool_)
                of_code[codes.codes[groups.rows[are_zero]]] = True
                found |= of_code[codes.codes] & _zeros(rows.column(column))
        return np.flatnonzero(found)

    def lower(self, table: Any) -> Any:
        """A table of answers over slices, with those that were asked for."""
        for name, parts in self.lowered.items():
            columns = [table.column(part) for part in parts]
            table = table.append_column(name, _mean(*columns) if len(columns) > 1 else columns[0].fill_null(0))
        return table


def _zeros(column: Any) -> Any:
    return buffers.booleans(buffers.single(pc.equal(column, 0.0).fill_null(False)))


def _columns(table: Any) -> dict[str, Any]:
    return dict(zip(table.schema.names, table.columns, strict=True))


def _mean(total: Any, n: Any) -> Any:
    return pc.divide(total.cast(pa.float64()), n.cast(pa.float64()))


def slicing_of(plan: Plan) -> Slicing | None:
    """How a plan can be answered by slices; None if it cannot."""
    return _slicing_of(plan.specs, plan.schema, tuple(plan.types.items()), plan.n_shards) if plan.is_grid else None


@lru_cache(maxsize=64)
def _slicing_of(specs: tuple[Spec, ...], schema: Any, types: tuple[Any, ...], n_shards: int) -> Slicing | None:
    """Found out once for all shards that a worker is given."""
    plan = Plan(specs, schema, dict(types), n_shards)
    instants = instants_of(plan)
    if instants is None or plan.streaming.idle is not None or not _has_timestamps(plan):
        return None
    if not all(_is_sliceable(plan, spec, instants) for spec in plan.specs):
        return None
    parts: dict[Aggregate, str] = {}  # of all specs, each once
    lowered: dict[str, tuple[str, ...]] = {}
    over_slices = tuple(_over_slices(spec, parts, lowered) for spec in plan.specs)
    folded = (*((name, each) for each, name in parts.items()), (N_ROWS, count()), (LATEST, max(plan.time)))
    names = dict.fromkeys((*plan.window.by, *plan.window.order_by))  # a key may break ties too, though there are none
    kept = [*(plan.schema.field(name) for name in names), *_types(plan, folded)]
    own = replace(plan, specs=over_slices, schema=pa.schema(kept))
    return Slicing(own, folded, lowered, _extremes(plan, parts), instants)


def _extremes(plan: Plan, parts: dict[Aggregate, str]) -> dict[str, str]:
    columns = {name: part.columns[0] for part, name in parts.items() if part.name in ("min", "max")}
    return {name: column for name, column in columns.items() if pa.types.is_floating(plan.schema.field(column).type)}


def signature_of(plan: Plan) -> dict[str, str]:
    """What must be the same for state to be understood: whether it is of rows or of slices too, by the columns kept."""
    slicing = slicing_of(plan)
    return plan.signature | ({} if slicing is None else {"columns": slicing.plan.signature["columns"]})


def _has_timestamps(plan: Plan) -> bool:
    return bool(pa.types.is_timestamp(plan.schema.field(plan.time).type))


def _is_sliceable(plan: Plan, spec: Spec, instants: Instants) -> bool:
    extent = spec.window.extent
    assert extent is not None
    if extent.kind != "range" or extent.rows is not None or extent.min_rows or spec.forced is not None:
        return False
    if extent.closed not in ("left", "right") or microseconds(extent.lag) % instants.step:
        return False
    return microseconds(extent.length) % instants.step == 0 and all(
        _has_parts(plan, aggregate) for _, aggregate in spec.aggregates
    )


def _has_parts(plan: Plan, aggregate: Aggregate) -> bool:
    if aggregate.name not in PARTS or rule_of(aggregate) is not RULES[aggregate.name] or aggregate.options:
        return False
    types = [plan.schema.field(name).type for name in aggregate.columns]
    if aggregate.name == "mean":
        return all(map(pa.types.is_floating, types))
    if aggregate.name == "sum":
        return all(pa.types.is_integer(each) or pa.types.is_floating(each) for each in types)
    return all(map(is_plain, types)) or aggregate.name == "count"


def _over_slices(spec: Spec, parts: dict[Aggregate, str], lowered: dict[str, tuple[str, ...]]) -> Spec:
    """The same answers over rows of slices; adds to `parts` what they need, and to `lowered` what is made of what."""
    found: dict[str, Aggregate] = {}
    for name, aggregate in spec.aggregates:
        own = PARTS[aggregate.name](aggregate)
        is_made = aggregate.name in ("count", "mean")
        names = [f"{PARTIAL}_{name}_{k}" for k in range(len(own))] if is_made else [name]
        for each, part in zip(names, own, strict=True):
            found[each] = AGAIN[part.name](parts.setdefault(part, f"{PARTIAL}{len(parts)}"))
        if is_made:
            lowered[name] = tuple(names)
    return replace(spec, aggregates=tuple(found.items()))


def _types(plan: Plan, folded: Named) -> list[Any]:
    """The columns of parts, as the engine makes them."""
    found = fold(folded, Codes(np.empty(0, np.int64), 0), Source(plan.schema.empty_table())).answers
    return [pa.field(name, found[name].type) for name, _ in folded if name.startswith(PARTIAL)]
