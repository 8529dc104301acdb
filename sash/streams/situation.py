"""A shard in a micro-batch: what its emission works with."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from sash.streams.contract import HASH, Counts
from sash.streams.large import LargeKeys
from sash.streams.pages import Pages
from sash.streams.plans import Plan
from sash.streams.slices import Slicing
from sash.streams.timing import Instants, due_at, times_of
from sash.streams.waiting import Waiting

Answers = TypeVar("Answers")


@dataclass
class Situation:
    """A shard in a micro-batch."""

    plan: Plan
    before: int  # the watermark that the rows of this micro-batch came at: rows before it were settled
    watermark: int  # after them
    instants: Instants | None
    pages: Pages
    waiting: Waiting
    large: LargeKeys
    counts: Counts
    swept: int
    slicing: Slicing | None = None  # how the plan, which is over slices then, came of the one over rows

    def lower(self, answers: Any) -> Any:
        """Answers as the plan gives them, with those that were asked for."""
        return answers if self.slicing is None else self.slicing.lower(answers)

    def due_of(self, rows: Any) -> Any:
        """The watermark at which each row is due."""
        return due_at(times_of(rows.column(self.plan.time)), self.instants)

    def timed(self, work: Callable[[], Answers]) -> Answers:
        """Do some work of the engine, and note how long it took."""
        begin = time.perf_counter_ns()
        found = work()
        self.counts.engine_us += (time.perf_counter_ns() - begin) // 1_000
        return found

    def stored(self, rows: Any, *, is_whole: bool = True) -> tuple[Any, Any]:
        """The pages to write anew, and what is stored in them, and of the keys of some rows elsewhere.

        One page more is looked at each time, in turn: so keys that have fallen silent are forgotten too.
        """
        self.swept += 1
        return self.pages.fetch(rows.column(HASH).to_numpy(), self.swept % self.pages.n_pages, is_whole=is_whole)
