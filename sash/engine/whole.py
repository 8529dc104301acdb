"""Whole columns at once: the same bytes as a run over batches, with what only whole columns permit.

Rows are not copied, keys are shared out among threads, integer sums that cannot overflow are kept in 64 bits,
and columns without nulls need no counts. None of this changes an answer: keys have nothing in common, and where
one begins, a structure is as good as new.

    rows      [ part of one thread            ][ part of another          ]      cut where a key begins
    frames    [ chunk ][ chunk ][ chunk ][    ][ chunk ][ chunk ][ chunk  ]      computed, used and forgotten
    results   [                  one column for each aggregate            ]      each thread writes its own rows

Where not every row is answered, the frames of a part are computed first, to know how many answers there are. Windows of
the last so many rows need no frames, and quantiles no structure: engine/ranked answers them from all frames.

Memory for answers comes from a `Room`, as engine/placing has it.
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
from sash.engine.groups import Group, framing_of, groups_of, too_short, without
from sash.engine.parallel import each_part, n_threads
from sash.engine.placing import Room
from sash.engine.ranked import frames_by_rows, is_rankable, quantiles
from sash.engine.structures import Structure
from sash.engine.tasks import Task, cut_results, narrowed, tasks_of
from sash.windows.bounds import Bounds
from sash.windows.frames import Frames
from sash.windows.framing import Framed, Rows, unsorted

WORTHWHILE = 1 << 16  # rows for each thread: below, waking it costs more than it saves
CHUNK = 1 << 15  # rows whose frames are computed at once: they are in the cache still when they are used

Part = tuple[int, int]  # rows from, to


def answer_whole(
    bounds: Bounds,
    aggregates: Mapping[str, Any],
    batch: Batch,
    algorithm: str | None = None,
    *,
    is_sorted: bool = False,
    room: Room = np.empty,
) -> Answered:
    """All answers for rows that are all there.

    `is_sorted`: the caller has seen to it that rows are in order. Windows that `count_rows` then do not look at it.
    """
    declared = {name: as_aggregate(each) for name, each in aggregates.items()}
    batch = prepared(batch, bounds, declared.values())
    n, tasks = len(batch.order), tasks_of(batch.columns, declared)
    tasks = [narrowed(task, min(n, bounds.rows or n)) for task in tasks]
    has_nulls = bounds.may_be_empty or any(task.valid is not None for task in tasks)
    is_exact = batch.order.dtype.kind == "i"
    ranked = {place: task for place, task in enumerate(tasks) if algorithm is None and is_rankable(task)}
    with explaining([task.monoid.name for task in tasks]):
        groups = groups_of(
            tasks, bounds, has_nulls=has_nulls, is_exact=is_exact, forced=algorithm, besides=ranked
        )  # fmt: skip
        parts = _parts(batch.begins, is_shareable=bounds.policy is None and all(each.is_shareable for each in groups))
        if count_rows(bounds) and n and (is_sorted or not ranked):
            order = np.broadcast_to(np.int64(0), n) if is_sorted else batch.order
            work = Work.of(groups, tasks, (n, n), room)
            return _answer_by_rows(bounds, batch._replace(order=order), parts, work, ranked)
        chunk = CHUNK if all(group.kind.is_compiled for group in groups) else n + 1
        pieces = _pieces(bounds, batch, parts, chunk=chunk, are_kept=bool(ranked or bounds.min_rows))
        answers = _answers_by_frames(pieces, Work.of(groups, tasks, (n, pieces.n), room), ranked, bounds.min_rows)
    return Answered(*pieces.numbers(n), answers)


def count_rows(bounds: Bounds) -> bool:
    """Whether windows are the last so many rows of a key, at every row, wherever those stand in the order."""
    alike = Bounds(rows=bounds.rows, ties=bounds.ties, min_rows=bounds.min_rows)
    return bounds.rows is not None and bounds == alike


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
        if not framed or framed[0].rows is None:
            return np.arange(n_rows), None
        instants = None if framed[0].instants is None else np.concatenate([each.instants for each in framed])
        return np.concatenate([each.rows for each in framed]), instants

    def joined(self) -> Frames:
        """The frames of all answers; they must have been kept."""
        framed = [each.answered for part in self.frames.values() for each in part]
        return Frames(*(np.concatenate(bounds) for bounds in zip(*framed, strict=True)))


def _pieces(bounds: Bounds, batch: Batch, parts: list[Part], *, chunk: int, are_kept: bool) -> Pieces:
    """Frames in chunks where every row is answered; else those of a part at once, to know how many there are."""
    frames: dict[Part, Iterable[Framed]] = {part: _frames(bounds, batch, part, chunk) for part in parts}
    counts = [end - begin for begin, end in parts]
    if bounds.every is not None or are_kept:
        each_part(parts, lambda begin, end: frames.update({(begin, end): list(frames[begin, end])}))
        counts = [sum(each.n for each in frames[part]) for part in parts]
    firsts = dict(zip(parts, itertools.accumulate([0, *counts]), strict=False))
    return Pieces(frames, firsts, sum(counts))


def _frames(bounds: Bounds, batch: Batch, part: Part, chunk: int) -> Iterator[Framed]:
    """The frames of a part, some rows at a time."""
    begin, end = part
    framing = framing_of(bounds, batch.order.dtype, _Source(batch.columns), begin)
    for stop in itertools.count(begin + chunk, chunk):
        yield framing.take(_rows(batch, max(begin, framing.needed), min(stop, end)), is_last=stop >= end)
        if stop >= end:
            return


def _rows(batch: Batch, begin: int, end: int) -> Rows:
    marks = batch.begins if batch.mark is None else batch.mark.values
    return Rows(begin, batch.order[begin:end], batch.begins[begin:end], marks[begin:end])


class _Source(NamedTuple):
    """The columns of all rows, for framings that read them."""

    columns: Mapping[str, Column]
    base: int = 0


class Work(NamedTuple):
    """Groups with the columns that they read, and the columns of their results."""

    groups: Sequence[Group]
    columns: Sequence[Any]
    results: Sequence[Any]
    room: Room

    @classmethod
    def of(cls, groups: Sequence[Group], tasks: Sequence[Task], sizes: tuple[int, int], room: Room) -> Work:
        """Make room for all answers; sizes: how many rows, how many answers."""
        n_rows, n_answers = sizes
        columns = [group.columns(tasks, n_rows) for group in groups]
        return cls(groups, columns, [_in_room(group.structure().results(n_answers), room) for group in groups], room)

    @property
    def each(self) -> Iterator[tuple[Group, Any, Any]]:
        """Each group, its columns and its results."""
        return zip(self.groups, self.columns, self.results, strict=True)

    def answers(self, is_short: Any) -> dict[int, Column]:
        """The answers of all aggregates, by their places."""
        each = zip(self.groups, self.results, strict=True)
        return {place: column for group, found in each for place, column in group.answers(found, is_short)}


def _in_room(results: Any, room: Room) -> Any:
    """Columns of results elsewhere; only answers, which nothing is written into yet, and not whether there are any."""
    if isinstance(results, tuple):
        return tuple(_in_room(each, room) for each in results)
    is_answers = isinstance(results, np.ndarray) and results.ndim == 1 and results.dtype.kind in "iuf"
    return room(len(results), results.dtype) if is_answers else results


def _answer_by_rows(
    bounds: Bounds, batch: Batch, parts: list[Part], work: Work, ranked: Mapping[int, Task]
) -> Answered:
    """Windows of so many rows: where a key begins is all that must be known, so structures need no frames."""
    rows, n = bounds.rows or 0, len(batch.order)

    def answer(begin: int, end: int) -> None:
        for group, given, found in work.each:
            structure = group.structure()
            assert isinstance(structure, Structure)
            fallen = structure.take_rows(given, _rows(batch, 0, end), begin, rows, found)
            if fallen is not None:
                raise unsorted(batch.order, fallen)

    if work.groups:
        each_part(parts, answer)
    if not ranked and not bounds.min_rows:
        return Answered(np.arange(n), None, _in_order(work.answers(None)))
    frames = frames_by_rows(batch.begins, rows, work.room)
    return Answered(np.arange(n), None, _over_frames(frames, work, ranked, bounds.min_rows))


def _answers_by_frames(pieces: Pieces, work: Work, ranked: Mapping[int, Task], min_rows: int) -> list[Column]:
    """Any windows: frames, and what is computed over them, piece by piece; then quantiles over all of them."""

    def answer(*part: int) -> None:
        place, structures = pieces.firsts[part], [group.structure() for group in work.groups]  # type: ignore[index]
        for framed in pieces.frames[part]:  # type: ignore[index]
            stop = place + framed.n
            for structure, given, found in zip(structures, work.columns, work.results, strict=True):
                own = found if framed.n == pieces.n else cut_results(found, place, stop)
                structure.take(given, 0, framed, own)
            place = stop

    each_part(list(pieces.frames), answer)
    if not ranked and not min_rows:
        return _in_order(work.answers(None))
    return _over_frames(pieces.joined(), work, ranked, min_rows)


def _over_frames(frames: Frames, work: Work, ranked: Mapping[int, Task], min_rows: int) -> list[Column]:
    """The answers of structures that are done, and quantiles; null where frames are too short."""
    is_short = too_short(frames, min_rows)
    by_rank = {place: without(quantiles(task, frames, work.room), is_short) for place, task in ranked.items()}
    return _in_order(work.answers(is_short) | by_rank)


def _in_order(answers: Mapping[int, Column]) -> list[Column]:
    return [answers[place] for place in sorted(answers)]
