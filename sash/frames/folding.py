"""Aggregates over all rows of a group, without a window: rows stay as they came, and nothing is sorted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from sash.engine.folding import fold_groups
from sash.engine.tasks import tasks_of
from sash.frames.answering import Columns, Decoder, Reader
from sash.frames.extents import Named
from sash.frames.keys import Codes
from sash.frames.sources import Table


class Groups(NamedTuple):
    """Groups in the order of their first rows."""

    rows: Any  # the number of the first row of each
    answers: Mapping[str, Any]  # Arrow arrays, by name


def fold(aggregates: Named, codes: Codes, source: Table) -> Groups:
    """Fold the rows of each code."""
    columns = Columns(Reader(source), None)
    coded = {name: columns.code(aggregate) for name, aggregate in aggregates}
    tasks = tasks_of(columns.columns, {name: each.aggregate for name, each in coded.items()})
    rows, answers = fold_groups(tasks, *codes)
    arrays = {}
    for (name, aggregate), column in zip(aggregates, answers, strict=True):
        _, rule, inputs = coded[name]
        arrays[name] = Decoder(name, aggregate, rule, inputs, rule.is_nullable).answer(column).array
    return Groups(rows, arrays)
