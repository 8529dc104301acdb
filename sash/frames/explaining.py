"""What will run and why, in words: each spec as declared, then what the engine would do with it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sash.frames.dispatching import is_spark, load, source_of, spark

if TYPE_CHECKING:
    from sash.frames.spec import Spec


class Explanation(str):
    """A text that shows itself as it is, not in quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def explain(specs: tuple[Spec, ...], table: Any) -> Explanation:
    """Explain specs for the types of a table, or for types that their windows and aggregates would take."""
    if table is not None and is_spark(table):
        return Explanation(spark().explain(specs, table))
    planning = load("sash.frames.planning")
    source = planning.assumed(specs) if table is None else source_of(table)
    return Explanation("\n\n".join(planning.plan(spec, source, is_assumed=table is None) for spec in specs))
