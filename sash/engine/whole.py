"""Whole columns at once: the same bytes as a run over batches, with what only whole columns permit.

Rows are not copied, keys are shared out among threads, integer sums that cannot overflow are kept in 64 bits,
and columns without nulls need no counts. None of this changes an answer: keys have nothing in common, and where
one begins, a structure is as good as new.

    rows      [ part of one thread            ][ part of another          ]      cut where a key begins
    frames    [ chunk ][ chunk ][ chunk ][    ][ chunk ][ chunk ][ chunk  ]      computed, used and forgotten
    results   [                  one column for each aggregate            ]      each thread writes its own rows

Where not every row is answered, the frames of a part are computed first, to know how many answers there are.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from sash.compiling.jit import explaining
from sash.engine.batches import Answered, Batch, prepared
from sash.engine.binding import as_aggregate
from sash.engine.columns import Column
from sash.engine.groups import Group, framing_of, groups_of, too_short
from sash.engine.parallel import each_part, n_threads
from sash.engine.tasks import cut_results, narrowed, tasks_of
from sash.windows.bounds import Bounds
from sash.windows.framing import Framed, Rows

WORTHWHILE = 1 << 16  # rows for each thread: below, waking it costs more than it saves
CHUNK = 1 << 15  # rows whose frames are computed at once: they are in the cache still when they are used

Part = tuple[int, int]  # rows from, to


def answer_whole(bounds: Bounds, aggregates: Mapping[str, Any], batch: Batch, algorithm: str | None = None) -> Answered:
    """All answers for rows that are all there."""
    declared = {name: as_aggregate(each) for name, each in aggregates.items()}
    batch = prepared(batch, bounds, declared.values())
    n, tasks = len(batch.order), tasks_of(batch.columns, declared)
    tasks = [narrowed(task, min(n, bounds.rows or n)) for task in tasks]
    has_nulls = bounds.may_be_empty or any(task.valid is not None for task in tasks)
    is_exact = batch.order.dtype.kind == "i"
    with explaining([task.monoid.name for task in tasks]):
        groups = groups_of(tasks, bounds, has_nulls=has_nulls, is_exact=is_exact, forced=algorithm)
        is_compiled = all(group.kind.is_compiled for group in groups)
        parts = _parts(batch.begins, is_shareable=bounds.policy is None and all(each.is_shareable for each in groups))
        pieces = _pieces(bounds, batch, parts, chunk=CHUNK if is_compiled else n + 1)
        answers = _answers(groups, [group.columns(tasks, n) for group in groups], pieces, bounds.min_rows)
    return Answered(*pieces.numbers(n), answers)


def _parts(begins: Any, *, is_shareable: bool) -> list[Part]:
    """Cut the rows into ranges for threads, where keys begin."""
    n = len(begins)
    count = min(n_threads(), n // WORTHWHILE) if is_shareable else 1
    edges = {0, n}
    for k in range(1, count):
        middle = n * k // count
        later = int(begins[middle:].argmax())
        if begins[middle + later]:
            edges.add(middle + later)
    return list(itertools.pairwise(sorted(edges))) or [(0, 0)]


class Pieces(NamedTuple):
    """The frames of each part, piece by piece, and where among all answers those of a part begin."""

    frames: Mapping[Part, Iterable[Framed]]
    firsts: Mapping[Part, int]
    n: int

    def numbers(self, n_rows: int) -> tuple[Any, Any]:
        """The rows of all answers, and their instants."""
        framed = [each for part in self.frames.values() if isinstance(part, list) for each in part]
        if not framed:
            return np.arange(n_rows), None
        instants = None if framed[0].instants is None else np.concatenate([each.instants for each in framed])
        return np.concatenate([each.rows for each in framed]), instants


def _pieces(bounds: Bounds, batch: Batch, parts: list[Part], *, chunk: int) -> Pieces:
    """Frames in chunks where every row is answered; else those of a part at once, to know how many there are."""
    frames: dict[Part, Iterable[Framed]] = {part: _frames(bounds, batch, part, chunk) for part in parts}
    counts = [end - begin for begin, end in parts]
    if bounds.every is not None:
        each_part(parts, lambda begin, end: frames.update({(begin, end): list(frames[begin, end])}))
        counts = [sum(each.n for each in frames[part]) for part in parts]
    firsts = dict(zip(parts, itertools.accumulate([0, *counts]), strict=False))
    return Pieces(frames, firsts, sum(counts))


def _frames(bounds: Bounds, batch: Batch, part: Part, chunk: int) -> Iterator[Framed]:
    """The frames of a part, some rows at a time."""
    begin, end = part
    marks = batch.begins if batch.mark is None else batch.mark.values
    framing = framing_of(bounds, batch.order.dtype, _Source(batch.columns), begin)
    for stop in itertools.count(begin + chunk, chunk):
        rows = slice(max(begin, framing.needed), min(stop, end))
        given = Rows(rows.start, batch.order[rows], batch.begins[rows], marks[rows])
        yield framing.take(given, is_last=stop >= end)
        if stop >= end:
            return


class _Source(NamedTuple):
    """The columns of all rows, for framings that read them."""

    columns: Mapping[str, Column]
    base: int = 0


def _answers(groups: Sequence[Group], columns: Sequence[Any], pieces: Pieces, min_rows: int) -> list[Column]:
    """The answers of all aggregates, in their order."""
    results = [group.structure().results(pieces.n) for group in groups]
    is_short = np.zeros(pieces.n, np.bool_) if min_rows else None

    def answer(*part: int) -> None:
        place, structures = pieces.firsts[part], [group.structure() for group in groups]  # type: ignore[index]
        for framed in pieces.frames[part]:  # type: ignore[index]
            stop = place + framed.n
            for structure, given, found in zip(structures, columns, results, strict=True):
                own = found if framed.n == pieces.n else cut_results(found, place, stop)
                structure.take(given, 0, framed, own)
            if is_short is not None:
                is_short[place:stop] = too_short(framed, min_rows)
            place = stop

    each_part(list(pieces.frames), answer)
    answers = {
        place: each
        for group, found in zip(groups, results, strict=True)
        for place, each in group.answers(found, is_short)
    }
    return [answers[place] for place in sorted(answers)]
