"""A plan: specs over a stream, with the types of the rows that come and of the answers that go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from sash.errors import UnsupportedError
from sash.frames.answering import policy_aggregates
from sash.streams.contract import FAILURE, HASH, IS_LATE, REVISION
from sash.streams.policing import going_on
from sash.streams.signing import codes_of
from sash.windows.durations import Duration

if TYPE_CHECKING:
    from sash.frames.extents import Extent
    from sash.frames.spec import Spec
    from sash.frames.streaming import Streaming
    from sash.frames.window import Window

KEY = "__sash_key"  # the number of a key in a pass
MICROSECOND = 1_000  # nanoseconds


@dataclass(frozen=True)
class Plan:
    """What a shard needs to know; the same for all of them."""

    specs: tuple[Spec, ...]
    schema: Any  # of rows as they come, Arrow
    types: Mapping[str, Any]  # of answers, by name, as announced
    n_shards: int = 1

    @property
    def window(self) -> Window:
        """Keys, order and grid, the same for all specs."""
        return self.specs[0].window

    @property
    def streaming(self) -> Streaming:
        """How to answer, the same for all specs."""
        return self.specs[0].streaming

    @property
    def failing(self) -> str:
        """What to do with rows that an aggregate cannot take."""
        return self.streaming.failing

    @property
    def extents(self) -> list[Extent]:
        """How far back each spec looks."""
        return [spec.window.extent for spec in self.specs if spec.window.extent is not None]

    @property
    def time(self) -> str:
        """The column of event time."""
        return self.window.order_by[0]

    @property
    def is_grid(self) -> bool:
        """Whether answers are due at instants rather than rows."""
        return self.window.grid is not None and self.window.grid.rows is None

    @property
    def has_policy(self) -> bool:
        """Whether a policy decides how far back the window reaches."""
        return any(extent.policy is not None for extent in self.extents)

    @property
    def may_wait_hot(self) -> bool:
        """Whether new rows may wait beside their pages, with rows in them that no window can reach any more.

        A policy would take what it has given up for what it has left; a revision changes rows that are in pages.
        """
        return self.streaming.emit != "revise" and not self.has_policy and not self.is_grid

    @cached_property
    def read(self) -> list[str]:
        """The columns that keys, order and aggregates read."""
        names = [*self.window.by, *self.window.order_by]
        for spec in self.specs:
            extent = spec.window.extent
            assert extent is not None
            names += [] if extent.column is None else [extent.column]
            for _, aggregate in (*policy_aggregates(spec), *spec.aggregates):
                names += [name for name in (*aggregate.columns, aggregate.condition) if name]
        return list(dict.fromkeys(names))

    @cached_property
    def kept_schema(self) -> Any:
        """Of window data: what is read, or whole rows if they may have to be given out again."""
        if self.streaming.emit == "revise":
            return self.schema.append(pa.field(HASH, pa.int64())).append(pa.field(REVISION, pa.int32()))
        return pa.schema([*(self.schema.field(name) for name in self.read), pa.field(HASH, pa.int64())])

    @cached_property
    def waiting_schema(self) -> Any:
        """Of rows that wait for the watermark."""
        return self.schema.append(pa.field(HASH, pa.int64()))

    @cached_property
    def out_schema(self) -> Any:
        """Of what comes out."""
        if self.is_grid:
            return pa.schema([*(self.schema.field(name) for name in self.window.by), *self.types.items()])
        extra = [pa.field(REVISION, pa.int32())] if self.streaming.emit == "revise" else []
        extra += [pa.field(IS_LATE, pa.bool_())] if self.streaming.late == "aside" else []
        extra += [pa.field(FAILURE, pa.string())] if self.failing == "aside" else []
        return pa.schema([*self.schema, *self.types.items(), *extra])

    @cached_property
    def numbered(self) -> tuple[Spec, ...]:
        """The same specs over rows that are sorted, with keys numbered."""
        first = self.window.order_by[:1]
        numbered = (replace(spec, window=replace(spec.window, by=(KEY,), order_by=first)) for spec in self.specs)
        return tuple(going_on(spec) for spec in numbered)

    def in_shards(self, n: int | None) -> Plan:
        """The same in another number of shards; None: it stays."""
        return self if n is None else replace(self, n_shards=n)

    @cached_property
    def signature(self) -> dict[str, str]:
        """What must be the same for state to be understood; the rest may change."""
        options = self.streaming
        return {
            "by": repr(self.window.by),
            "order_by": repr(self.window.order_by),
            **{f"spec {k}": repr(replace(each, streaming=type(options)())) for k, each in enumerate(self.specs)},
            "emit": options.emit,
            "changes": repr(options.changes),
            "shards": str(self.n_shards),
            "columns": str({name: str(self.kept_schema.field(name).type) for name in self.kept_schema.names}),
            **codes_of(self.specs),
        }


def microseconds(length: Any) -> int:
    """A length of time in whole microseconds; finer ones are refused."""
    if not isinstance(length, Duration):
        return int(length)  # 0: no lag, no origin
    whole, rest = divmod(length.nanoseconds, MICROSECOND)
    if rest:
        raise UnsupportedError(f"{length} is finer than Spark's times, which are in microseconds")
    return whole
