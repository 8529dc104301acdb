"""What Spark will do for a spec: shuffle, sort, passes, rows for each task; then what each pass does, by the engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sash.errors import UnsupportedError
from sash.frames.arrow_tables import Source
from sash.frames.planning import plan
from sash.spark.batch import ZONE
from sash.spark.looking import HOT, MOST_KEYS
from sash.spark.schemas import arrow_schema
from sash.spark.splittable import Splittable, asked_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from sash.frames.spec import Spec

PARTITIONS = "spark.sql.shuffle.partitions"
ADAPTIVE = "spark.sql.adaptive.enabled"
BATCH = "spark.sql.execution.arrow.maxRecordsPerBatch"


def explain(specs: Sequence[Spec], table: DataFrame) -> str:
    """The steps in Spark's words, then each spec in the engine's. No row is looked at."""
    _require_batch(table)
    source = Source(arrow_schema(table.schema, table.sparkSession.conf.get(ZONE)).empty_table())
    passes = "\n\n".join(plan(spec, source, is_assumed=False) for spec in specs)
    return "\n".join(f"{name:<12}{text}" for name, text in _steps(specs, table)) + "\n\n" + passes


def _steps(specs: Sequence[Spec], table: DataFrame) -> list[tuple[str, str]]:
    window, conf = specs[0].window, table.sparkSession.conf
    keys = ", ".join(window.by)
    order = ", ".join([*window.by, *window.order_by])
    steps = []
    if all(spec.placement.is_presorted for spec in specs):
        steps.append(("shuffle", "none: presorted() vouches that each key is in one partition, in order"))
    elif not window.by:
        steps.append(("shuffle", "all rows into one partition: without by there is one key, and one task does it all"))
        steps.append(("sort", f"by {order}"))
    else:
        fewer = ", or fewer where Spark joins small ones" if conf.get(ADAPTIVE, "true") == "true" else ""
        steps.append(("shuffle", f"by {keys}, into {conf.get(PARTITIONS, '200')} partitions{fewer}"))
        steps.append(("sort", f"within each partition, by {order}"))
    several = "" if len(specs) == 1 else f"; {len(specs)} specs share it, and the shuffle and the sort"
    steps.append(("pass", f"one a partition, over Arrow batches of at most {conf.get(BATCH, '10000')} rows{several}"))
    steps.append(("columns", f"all {len(table.columns)} travel to Python and back; select those you need first"))
    steps.append(("rows a task", _rows_of_a_task(specs)))
    steps += _hot_keys(specs, table)
    return steps


def _rows_of_a_task(specs: Sequence[Spec]) -> str:
    asked = asked_of(specs)
    if asked is None:
        return "those of its keys: the largest key is never less than one task"
    return "those of its keys, or of one range of a hot key with what its windows reach back to"


def _hot_keys(specs: Sequence[Spec], table: DataFrame) -> list[tuple[str, str]]:
    """How hot keys will be looked for, or why they will not."""
    asked = asked_of(specs)
    if asked is None:
        return []
    splittable = Splittable(specs, table.schema, str(table.sparkSession.conf.get(ZONE)))
    if splittable.reason is not None:
        return [("hot keys", f"not split: {splittable.reason}")]
    least = "a tenth of the largest one's" if asked.hotter_than is None else f"{asked.hotter_than:,}"
    many = f"{asked.ranges} ranges each"
    if asked.ranges == "auto":
        least, many = f"{asked.hotter_than or HOT:,}", "a range for each so many rows"
    lines = [
        f"a look (2 jobs over the keys and {specs[0].window.order_by[0]}) when the spec is called, for keys of "
        f"more than {least} rows; at most {MOST_KEYS} are split, into {many}",
        "packed where they are read, for each range that needs them; one shuffle of packed batches; a task for each "
        "range sorts and answers; other keys go the ordinary way",
    ]
    longer = "windows longer than a range: one pass and shuffle more, as a partial stands for rows between"
    wide = next((each for each in splittable.too_wide if each), None)
    if wide is not None and asked.ranges == "auto":
        longer = f"not split if windows are longer than a range: {wide}"
    elif wide is not None:
        longer = f"windows longer than a range: all their rows are sent, as {wide}"
    return [("hot keys" if k == 0 else "", line) for k, line in enumerate([*lines, longer])]


def _require_batch(table: DataFrame) -> None:
    """Refuse a stream."""
    if table.isStreaming:
        raise UnsupportedError(
            "this is said of batch tables, and the table is a stream. Explain the spec on a batch table of the same "
            "columns: a stream lets the same engine answer"
        )
