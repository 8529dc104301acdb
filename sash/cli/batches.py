"""Tables in memory: read files, answer, write. No Spark, no Java; as much as memory holds."""

from __future__ import annotations

import glob
import json
from pathlib import Path
from typing import Any

import pyarrow.csv as pa_csv
import pyarrow.dataset as pa_dataset
import pyarrow.parquet as pa_parquet
from rich.table import Table as Shown

from sash.cli.console import out, waiting
from sash.cli.exits import CommandError
from sash.cli.pipelines import Pipeline, Sink
from sash.cli.writing import write_whole

SHOWN = 20  # rows


def run_in_memory(pipeline: Pipeline) -> int:
    """Run a pipeline; the number of answers."""
    with waiting(f"reading {pipeline.source.path}"):
        table = read_files(pipeline)
    pipeline.require_columns(table.column_names)
    with waiting(f"answering {table.num_rows:,} rows"):
        answers = pipeline.spec(table)
    write(answers, pipeline.sink)
    return int(answers.num_rows)


def dataset_of(pipeline: Pipeline) -> Any:
    """The files of a pipeline's source; their types are known, no row is read yet."""
    path = pipeline.source.path or ""
    found = sorted(glob.glob(path)) if any(sign in path for sign in "*?[") else [path]
    if not found or not Path(found[0]).exists():
        raise pipeline.file.wrong(("source", "path"), f"source.path: there is nothing at {path}")
    form = pa_dataset.CsvFileFormat() if pipeline.source.format == "csv" else pipeline.source.format
    return pa_dataset.dataset(found if len(found) > 1 else found[0], format=form)


def read_files(pipeline: Pipeline) -> Any:
    """All rows of a pipeline's source."""
    return dataset_of(pipeline).to_table()


def write(answers: Any, sink: Sink) -> None:
    """Write answers to one file, or show the first of them."""
    if sink.format == "show":
        show(answers)
        return
    path = Path(sink.path or "")
    if path.exists() and sink.mode == "error":
        raise CommandError(f'{path} exists; choose another sink.path, or write mode = "overwrite" in [sink]')
    if sink.mode == "append":
        raise CommandError('mode = "append" needs Spark; write engine = "spark" in [run], or mode = "overwrite"')
    path.parent.mkdir(parents=True, exist_ok=True)
    with waiting(f"writing {path}"):
        write_whole(path, lambda part: WRITERS[sink.format](answers, part))


def _write_json(answers: Any, path: Path) -> None:
    with path.open("w", encoding="utf-8") as file:
        for batch in answers.to_batches(max_chunksize=10_000):
            file.writelines(json.dumps(row, default=str) + "\n" for row in batch.to_pylist())


WRITERS = {"parquet": pa_parquet.write_table, "csv": pa_csv.write_csv, "json": _write_json}


def show(answers: Any) -> None:
    """The first rows, as a table."""
    shown = Shown(*answers.column_names)
    for row in answers.slice(0, SHOWN).to_pylist():
        shown.add_row(*(text_of(value) for value in row.values()))
    out.print(shown)
    if answers.num_rows > SHOWN:
        out.print(f"and {answers.num_rows - SHOWN:,} more")


def text_of(value: Any) -> str:
    """A value in a table; null is empty."""
    if value is None:
        return ""
    return f"{value:.4g}" if isinstance(value, float) else str(value)
