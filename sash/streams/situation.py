"""A shard in a micro-batch: what its emission works with."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sash.streams.contract import HASH, Counts
from sash.streams.pages import Pages
from sash.streams.plans import Plan
from sash.streams.timing import Instants, due_at, times_of
from sash.streams.waiting import Waiting


@dataclass
class Situation:
    """A shard in a micro-batch."""

    plan: Plan
    watermark: int
    instants: Instants | None
    pages: Pages
    waiting: Waiting
    counts: Counts
    swept: int

    def due_of(self, rows: Any) -> Any:
        """The watermark at which each row is due."""
        return due_at(times_of(rows.column(self.plan.time)), self.instants)

    def stored(self, rows: Any) -> tuple[Any, Any]:
        """The pages of the keys of some rows, and all rows in them.

        One page more is looked at each time, in turn: so keys that have fallen silent are forgotten too.
        """
        self.swept = (self.swept + 1) % self.pages.n_pages
        numbers = np.unique(np.append(self.pages.of(rows.column(HASH).to_numpy()), self.swept))
        return numbers, self.pages.load(numbers.tolist())
