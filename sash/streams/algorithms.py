"""Which algorithms the engine runs for a plan."""

from __future__ import annotations

from sash.engine.explaining import explain_run
from sash.frames.answering import Columns, Reader, arrange, bound_for
from sash.frames.arrow_tables import Source
from sash.streams.plans import Plan


def algorithms(plan: Plan) -> str:
    """Their names; the choice goes by types and algebra, never by rows, so workers make the same."""
    reader = Reader(Source(plan.schema.empty_table()))
    rows = arrange(plan.window, reader)
    columns = Columns(reader, rows)
    names = []
    for spec in plan.specs:
        coded = {name: columns.code(aggregate).aggregate for name, aggregate in spec.aggregates}
        bounds = bound_for(spec, reader, rows, columns).bounds
        is_exact = rows.order.values.dtype.kind == "i"
        parts = explain_run(bounds, coded, columns.columns, is_exact=is_exact, algorithm=spec.forced)
        names += [part.algorithm.split()[0] for part in parts]
    return ", ".join(dict.fromkeys(names))
