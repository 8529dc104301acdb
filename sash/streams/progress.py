"""The progress of a query, read: what a micro-batch did, and how long micro-batches take.

Spark tells of each micro-batch in its progress, and with it what Sash has observed. A query remembers the last ones
alone (100, by spark.sql.streaming.numRecentProgressUpdates): whatever is said of a query is over these.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sash.streams.contract import AT_THE_END, COUNTED

METRICS = "sash"  # so begin the names under which counts stand in observedMetrics of a query's progress
ALGORITHM, STATE_BYTES, BATCH_MS = "algorithm", "state_bytes", "batch_ms"
OPERATOR = "transformWithState"  # with this, the name of Sash's operator begins
FILES = "rocksdbSstFileSize"


def metrics(found: Any) -> dict[str, Any]:
    """What Sash counted: in a micro-batch, given its progress; or in those that a query remembers, given the query.

    Of a query, numbers are sums, but for what is there at the end (rows that wait, pages, large keys, bytes of
    state), which is of the last micro-batch; `p50_ms`, `p99_ms` and `max_ms` are of the times of all of them, and
    `batches` is how many.
    """
    if not hasattr(found, "recentProgress"):
        return _of_batch(found)
    told = [
        each for each in map(_of_batch, found.recentProgress) if any(each.get(name) for name in ("rows", "answers"))
    ]
    if not told:
        return {}
    last = {name: told[-1][name] for name in (*AT_THE_END, STATE_BYTES, ALGORITHM)}
    sums = {name: sum(each[name] for each in told) for name in COUNTED}
    return sums | last | {"batches": len(told)} | times([each[BATCH_MS] for each in told])


def _of_batch(progress: Any) -> dict[str, Any]:
    rows = [row for name, row in progress["observedMetrics"].items() if name.partition("_")[0] == METRICS]
    if not rows:
        return {}
    counts = {name: sum(row[name] or 0 for row in rows) for name in COUNTED}
    algorithms = list(dict.fromkeys(row[ALGORITHM] for row in rows if row[ALGORITHM] is not None))
    algorithm = ", ".join(algorithms) if algorithms else None
    return counts | {ALGORITHM: algorithm, STATE_BYTES: state_bytes(progress), BATCH_MS: milliseconds(progress)}


def milliseconds(progress: Any) -> int:
    """How long a micro-batch took, from the look for new rows to the commit."""
    return int(progress["durationMs"].get("triggerExecution", 0))


def state_bytes(progress: Any) -> int:
    """The files of the state, as RocksDB tells after a micro-batch: all shards, those it did not touch included."""
    own = [each for each in progress["stateOperators"] if each["operatorName"].startswith(OPERATOR)]
    return sum(int(each["customMetrics"].get(FILES, 0)) for each in own)


def times(given: Iterable[int]) -> dict[str, int]:
    """The median, the 99th percentile and the maximum: of these very numbers, none in between."""
    ordered = sorted(given)
    if not ordered:
        return {}
    return {"p50_ms": _at(ordered, 0.5), "p99_ms": _at(ordered, 0.99), "max_ms": ordered[-1]}


def _at(ordered: Sequence[int], part: float) -> int:
    return ordered[math.ceil(part * len(ordered)) - 1]


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
    keys: int = 0
    state_bytes: int = 0
    algorithm: str | None = None

    @property
    def rows_a_second(self) -> float:
        """Rows that came, by the time the whole micro-batch took."""
        return 1_000 * self.rows / max(self.milliseconds, 1)


def micro_batch(progress: Any) -> MicroBatch:
    """Read the progress of a query, of Sash or not."""
    counts, state = metrics(progress), progress["stateOperators"] or [{}]
    return MicroBatch(
        batch=progress["batchId"],
        at=progress["timestamp"],
        rows=progress["numInputRows"],
        milliseconds=milliseconds(progress),
        late=counts.get("late", 0),
        answers=counts.get("answers", 0),
        revisions=counts.get("revisions", 0),
        waiting=counts.get("waiting", 0),
        state_rows=int(state[0].get("numRowsTotal", 0)),
        engine_ms=counts.get("engine_us", 0) // 1_000,
        watermark=(progress["eventTime"] or {}).get("watermark"),
        keys=counts.get("keys", 0),
        state_bytes=counts.get(STATE_BYTES, 0),
        algorithm=counts.get(ALGORITHM),
    )
