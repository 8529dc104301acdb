"""A streaming query while it runs, as the commands show it: its micro-batches are kept in a file for the report."""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict
from pathlib import Path

from sash.cli.console import err
from sash.streams import watching
from sash.streams.progress import MicroBatch

__all__ = ["Log", "MicroBatch", "Watch"]

HINT = "Ctrl-C stops, the same command goes on from there"


class Log:
    """Micro-batches as lines of JSON; a query that goes on appends, and what it does again replaces what it did.

    A process that is killed may leave half a line. So a line begins with its newline, and half a one is passed over.
    """

    def __init__(self, path: Path | None) -> None:
        self.path = path

    def read(self) -> list[MicroBatch]:
        """All that were noted, by number; the last note of each."""
        if self.path is None or not self.path.exists():
            return []
        noted = {}
        for line in self.path.read_text(encoding="utf-8").splitlines():
            with contextlib.suppress(json.JSONDecodeError):
                each = MicroBatch(**json.loads(line))
                noted[each.batch] = each
        return [noted[number] for number in sorted(noted)]

    def add(self, batch: MicroBatch) -> None:
        """Note one."""
        if self.path is not None:
            with self.path.open("a", encoding="utf-8") as file:
                file.write("\n" + json.dumps(asdict(batch)))


class Watch(watching.Watch):
    """Follow a query to its end, and note its micro-batches in a log."""

    def __init__(self, log: Log, n_batches: int | None = None) -> None:
        super().__init__(err, log.read(), noting=log.add, n_batches=n_batches, hint=HINT)
