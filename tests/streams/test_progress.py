"""What is read from the progress of a query, and shown of it."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from sash.streams.contract import COUNTED
from sash.streams.progress import metrics, micro_batch, times
from sash.streams.watching import Watch


def progress(batch, rows, ms, **counts):
    """As Spark tells it."""
    observed = dict.fromkeys(COUNTED) | {"rows": rows, "algorithm": "two_stacks_lite"} | counts
    own = {
        "operatorName": "transformWithStateInPySparkExec",
        "numRowsTotal": 7,
        "customMetrics": {"rocksdbSstFileSize": 900},
    }
    other = {"operatorName": "dedupe", "numRowsTotal": 3, "customMetrics": {"rocksdbSstFileSize": 50}}
    return {
        "batchId": batch, "timestamp": "2024-03-30T00:00:00Z", "numInputRows": rows, "stateOperators": [own, other],
        "durationMs": {"triggerExecution": ms}, "eventTime": {"watermark": "2024-03-29T23:50:00.000Z"},
        "observedMetrics": {"sash_3": observed},
    }  # fmt: skip


class Query:
    """A query that has ended."""

    def __init__(self, *recent):
        self.recentProgress = list(recent)

    def awaitTermination(self, seconds):  # noqa: N802
        return True


RECENT = [progress(k, 10, ms, late=1, waiting=k) for k, ms in enumerate([400, 100, 300, 200])]
SILENT = progress(4, 0, 50_000, answers=0)


def test_the_metrics_of_a_query_are_sums_and_times_of_all_micro_batches_that_did_something():
    found = metrics(Query(*RECENT, SILENT))
    assert (found["rows"], found["late"], found["waiting"], found["batches"]) == (40, 4, 3, 4)
    assert (found["p50_ms"], found["p99_ms"], found["max_ms"]) == (200, 400, 400)
    assert (found["algorithm"], found["state_bytes"]) == ("two_stacks_lite", 900)
    assert metrics(Query()) == {}


def test_streams_that_are_answered_side_by_side_in_one_query_are_added_up():
    both = progress(0, 5, 20)
    both["observedMetrics"] |= {"sash_4": {**both["observedMetrics"]["sash_3"], "late": 2}, "of_a_user": {"late": 100}}
    found = metrics(both)
    assert (found["rows"], found["late"], found["algorithm"]) == (10, 2, "two_stacks_lite")


def test_a_percentile_is_one_of_the_times():
    assert times(range(1, 101)) == {"p50_ms": 50, "p99_ms": 99, "max_ms": 100}
    assert times([7]) == {"p50_ms": 7, "p99_ms": 7, "max_ms": 7}
    assert times([]) == {}


def test_a_query_that_is_not_of_sash_has_no_metrics_but_can_be_watched():
    other = {**progress(0, 5, 20), "observedMetrics": {}, "stateOperators": [], "eventTime": {}}
    assert metrics(other) == {}
    assert (micro_batch(other).rows, micro_batch(other).watermark) == (5, None)


@pytest.mark.parametrize("terminal", [True, False])
def test_a_query_is_shown_by_its_micro_batches(terminal):
    screen = io.StringIO()
    Watch(Console(file=screen, force_terminal=terminal, width=160)).follow(Query(*RECENT, SILENT))
    if terminal:
        assert "4 micro-batches, 40 rows; seconds each: p50 0.2, p99 0.4, max 0.4; two_stacks_lite" in screen.getvalue()
    else:
        lines = screen.getvalue().splitlines()
        assert len(lines) == 4
        assert lines[1] == "micro-batch 2: 10 rows in 0.1 s (100/s), 0 revisions, 1 late, 1 waiting"
