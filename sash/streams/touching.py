"""Which rows have one of some others in their windows: only they can have other answers by these having come or gone.

The engine says so, by counting them over the very windows that are answered. It matters where answers are rounded:
floats that were added up in another order may differ in their last bit, and that is no news.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from sash.algebra.arithmetic import count
from sash.frames.answering import answer
from sash.frames.arrow_tables import Source
from sash.streams.plans import KEY, Plan

if TYPE_CHECKING:
    from sash.frames.spec import Spec

MARKED = "__sash_marked"
N_MARKED = "__sash_n_marked"  # with the number of a spec: how many marked rows are in its window


def is_rounded(plan: Plan) -> bool:
    """Whether an answer may be a float, or have one in it, which differs by the order of rows in the sum."""
    return any(pa.types.is_floating(each) or pa.types.is_nested(each) for each in plan.types.values())


def touched(plan: Plan, rows: Any, keys: Any, marked: Any) -> Any:
    """Which of some sorted rows have a marked one in a window of theirs; they are all, or the last of each key."""
    table = rows.select(plan.read).append_column(KEY, pa.array(keys)).append_column(MARKED, pa.array(marked))
    specs = tuple(_counting(spec, f"{N_MARKED}{k}") for k, spec in enumerate(plan.numbered))
    answered = answer(specs, Source(table))
    counts = [answered.column(name).to_numpy() for spec in specs for name, _ in spec.aggregates]
    return np.logical_or.reduce([each > 0 for each in counts])


def _counting(spec: Spec, name: str) -> Spec:
    """Over the same windows, those with too few rows for an answer too."""
    assert spec.window.extent is not None
    window = replace(spec.window, extent=replace(spec.window.extent, min_rows=0))
    return replace(spec, window=window, aggregates=((name, count().where(MARKED)),), forced=None)
