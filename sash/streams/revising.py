"""Answers over the chunks of a large key: of new rows, and of others that have changed by them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from sash.streams.changes import differ, with_revisions
from sash.streams.chunks import NEW, Chunks
from sash.streams.contract import REVISION
from sash.streams.held import in_form
from sash.streams.situation import Situation
from sash.streams.timing import times_of
from sash.streams.touching import is_rounded, touched


def answered_large(now: Situation, chunks: Chunks, new: Any) -> Any:
    """New rows of a large key with their answers."""
    since = insert(now, chunks, new)
    rows, answers = now.timed(lambda: chunks.answers(since))
    numbers = rows.column(NEW).to_numpy()
    places = np.flatnonzero(numbers >= 0)
    now.large.keep(chunks, now.watermark)
    return in_form(now.plan, new.take(pa.array(numbers[places])), _picked(answers, places))


def revised_large(now: Situation, chunks: Chunks, new: Any) -> Any:
    """New rows of a large key, and those whose answers are other ones now."""
    since = int(times_of(new.column(now.plan.time))[0])
    before = now.timed(lambda: chunks.answers(since))[1]
    insert(now, chunks, new)
    rows, answers = now.timed(lambda: chunks.answers(since))
    is_new = rows.column(NEW).to_numpy() >= 0
    stored = np.flatnonzero(~is_new)  # the same rows in the same order as before
    moved = is_new.copy()
    for name, old in before.items():
        moved[stored] |= differ(old, answers[name].take(pa.array(stored)))
    if (moved & ~is_new).any() and is_rounded(now.plan):  # all new rows are among these
        moved &= is_new | now.timed(lambda: touched(now.plan, rows, np.zeros(len(is_new), np.int64), is_new))
    now.counts.revisions += int((moved & ~is_new).sum())
    rows = with_revisions(rows, rows.column(REVISION).to_numpy() + (moved & ~is_new))
    chunks.put_back(since, rows)
    now.large.keep(chunks, now.watermark)
    places = np.flatnonzero(moved)
    return in_form(now.plan, rows.take(pa.array(places)), _picked(answers, places))


def insert(now: Situation, chunks: Chunks, new: Any) -> int:
    """Put new rows into chunks, each with its number; the time of the first."""
    kept = new.select(now.plan.kept_schema.names)
    chunks.insert(kept.append_column(NEW, pa.array(np.arange(new.num_rows))))
    return int(times_of(new.column(now.plan.time))[0])


def _picked(answers: dict[str, Any], places: Any) -> dict[str, Any]:
    return {name: each.take(pa.array(places)) for name, each in answers.items()}
