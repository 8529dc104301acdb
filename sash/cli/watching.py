"""A streaming query while it runs: a line for each micro-batch, kept in a file for the report.

The progress of a query is asked for a few times a second. On a terminal the last lines are redrawn in place; elsewhere
each micro-batch is printed once.
"""

from __future__ import annotations

import importlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from sash.cli.console import err

EVERY = 0.25  # seconds between two looks
KEPT = 8  # micro-batches on the screen


@dataclass(frozen=True)
class MicroBatch:
    """What is worth keeping of a micro-batch."""

    batch: int
    at: str
    rows: int
    milliseconds: int
    late: int
    answers: int
    revisions: int
    waiting: int
    state_rows: int
    engine_ms: int
    watermark: str | None

    @property
    def rows_a_second(self) -> float:
        """Rows that came, by the time the whole micro-batch took."""
        return 1_000 * self.rows / max(self.milliseconds, 1)


def micro_batch(progress: Any) -> MicroBatch:
    """Read the progress of a query."""
    counts = importlib.import_module("sash.spark").metrics(progress)
    state = progress["stateOperators"] or [{}]
    return MicroBatch(
        batch=progress["batchId"],
        at=progress["timestamp"],
        rows=progress["numInputRows"],
        milliseconds=int(progress["durationMs"].get("triggerExecution", 0)),
        late=counts.get("late", 0),
        answers=counts.get("answers", 0),
        revisions=counts.get("revisions", 0),
        waiting=counts.get("waiting", 0),
        state_rows=int(state[0].get("numRowsTotal", 0)),
        engine_ms=counts.get("engine_us", 0) // 1_000,
        watermark=(progress["eventTime"] or {}).get("watermark"),
    )


class Log:
    """Micro-batches as lines of JSON; a query that goes on appends, and what it does again replaces what it did."""

    def __init__(self, path: Path | None) -> None:
        self.path = path

    def read(self) -> list[MicroBatch]:
        """All that were noted, by number; the last note of each."""
        if self.path is None or not self.path.exists():
            return []
        noted = [MicroBatch(**json.loads(line)) for line in self.path.read_text(encoding="utf-8").splitlines() if line]
        return [each for _, each in sorted({each.batch: each for each in noted}.items())]

    def add(self, batch: MicroBatch) -> None:
        """Note one."""
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(asdict(batch)) + "\n")


class Watch:
    """Follow a query to its end."""

    def __init__(self, log: Log, n_batches: int | None = None) -> None:
        self.log, self.n_batches = log, n_batches
        self.seen: list[MicroBatch] = log.read()

    def follow(self, query: Any) -> None:
        """Wait for the end of a query, and tell on the way."""
        if not err.is_terminal:
            while not query.awaitTermination(EVERY):
                self._take(query, print_each=True)
            self._take(query, print_each=True)
            return
        with Live(self._shown(), console=err, refresh_per_second=4) as live:
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
            self.log.add(batch)
            if print_each:
                err.print(line_of(batch, self.n_batches), markup=False, soft_wrap=True)

    def _shown(self) -> RenderableType:
        if not self.seen:
            return Text("the first micro-batch takes longest: workers start and load their machine code")
        return Group(_table(self.seen[-KEPT:]), Text(self._summary()))

    def _summary(self) -> str:
        total = sum(each.rows for each in self.seen)
        of = f" of {self.n_batches}" if self.n_batches else ""
        return f"{len(self.seen)} micro-batches{of}, {total:,} rows; Ctrl-C stops, the same command goes on from there"


def line_of(batch: MicroBatch, n_batches: int | None) -> str:
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
