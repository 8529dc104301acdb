"""A streaming query while it runs, for whoever looks on: a line for each micro-batch.

The progress of a query is asked for a few times a second. On a terminal the last lines are redrawn in place; elsewhere
each micro-batch is printed once. This is the only module of the streams that needs rich.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from sash.streams.progress import MicroBatch, micro_batch, times

EVERY = 0.25  # seconds between two looks
KEPT = 8  # micro-batches on the screen


class Watch:
    """Follow a query to its end."""

    def __init__(
        self, console: Console, seen: Sequence[MicroBatch] = (), *,
        noting: Callable[[MicroBatch], object] | None = None, n_batches: int | None = None, hint: str = "",
    ) -> None:  # fmt: skip
        self.console, self.n_batches, self.hint = console, n_batches, hint
        self.seen, self._noting = list(seen), noting

    def follow(self, query: Any) -> None:
        """Wait for the end of a query, and tell on the way."""
        if not self.console.is_terminal:
            while not query.awaitTermination(EVERY):
                self._take(query, print_each=True)
            self._take(query, print_each=True)
            return
        with Live(self._shown(), console=self.console, refresh_per_second=4) as live:
            while not query.awaitTermination(EVERY):
                self._take(query)
                live.update(self._shown())
            self._take(query)
            live.update(self._shown())

    def _take(self, query: Any, *, print_each: bool = False) -> None:
        newest = self.seen[-1].batch if self.seen else -1
        for progress in query.recentProgress:
            if progress["batchId"] <= newest or "triggerExecution" not in progress["durationMs"]:
                continue
            batch = micro_batch(progress)
            newest = batch.batch
            if not (batch.rows or batch.answers):
                continue  # Spark moves its watermark once more when all rows are there
            self.seen.append(batch)
            if self._noting is not None:
                self._noting(batch)
            if print_each:
                self.console.print(line_of(batch, self.n_batches), markup=False, soft_wrap=True)

    def _shown(self) -> RenderableType:
        if not self.seen:
            return Text("the first micro-batch takes longest: workers start and load their machine code")
        return Group(_table(self.seen[-KEPT:]), Text(self._summary()))

    def _summary(self) -> str:
        total = sum(each.rows for each in self.seen)
        of = f" of {self.n_batches}" if self.n_batches else ""
        took = ", ".join(
            f"{name[:-3]} {ms / 1e3:.1f}" for name, ms in times(each.milliseconds for each in self.seen).items()
        )
        told = f"{len(self.seen)} micro-batches{of}, {total:,} rows; seconds each: {took}"
        return "; ".join([told, *filter(None, [self.seen[-1].algorithm, self.hint])])


def line_of(batch: MicroBatch, n_batches: int | None = None) -> str:
    """A micro-batch in a line."""
    of = f"/{n_batches}" if n_batches else ""
    return (
        f"micro-batch {batch.batch + 1}{of}: {batch.rows:,} rows in {batch.milliseconds / 1e3:.1f} s "
        f"({batch.rows_a_second:,.0f}/s), {batch.revisions:,} revisions, {batch.late:,} late, {batch.waiting:,} waiting"
    )


def _table(batches: list[MicroBatch]) -> Table:
    table = Table("micro-batch", "rows", "seconds", "rows/s", "answers", "revisions", "late", "waiting", "watermark",
                  box=None)  # fmt: skip
    for each in batches:
        table.add_row(
            str(each.batch + 1), f"{each.rows:,}", f"{each.milliseconds / 1e3:.1f}", f"{each.rows_a_second:,.0f}",
            f"{each.answers:,}", f"{each.revisions:,}", f"{each.late:,}", f"{each.waiting:,}",
            (each.watermark or "")[:16].replace("T", " "),
        )  # fmt: skip
    return table


def watch(query: Any) -> None:
    """Follow a query to its end on standard error."""
    Watch(Console(stderr=True, highlight=False)).follow(query)
