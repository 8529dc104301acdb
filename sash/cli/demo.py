"""`sash demo`: a year of flights through Structured Streaming, checked against batch, with a page of plots at the end.

    arrivals/*.parquet --> readStream, a file a micro-batch --> spec(stream) --> answers/*.parquet, revisions included
                                                                      |
                                      checkpoint/ : Ctrl-C, and the same command goes on

What is done is noted in demo.json; a demo that was finished begins anew, one that was not goes on.
"""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
from rich.table import Table

from sash.cli import flights
from sash.cli.checkpoints import require_same
from sash.cli.console import err, out, waiting
from sash.cli.exits import USAGE, CommandError
from sash.cli.reporting import write_report
from sash.cli.sparks import follow, session
from sash.cli.watching import Log, Watch
from sash.cli.writing import write_whole

NOTE, LOG = "demo.json", "progress.jsonl"
ARRIVALS, ANSWERS, CHECKPOINT = "arrivals", "answers", "checkpoint"
EMITS = ("revise", "final")
SHOWN = ("EWR", "JFK", "LGA", "UA", "B6", "DL")
SETTINGS = {"spark.sql.shuffle.partitions": 2, "spark.sql.streaming.numRecentProgressUpdates": 200}


class Checked(NamedTuple):
    """How the answers of the stream compare with those of batch."""

    rows: int
    answers: int  # revisions included
    different: int
    unanswered: int
    late: int
    revisions: int


def run(directory: Path, *, quick: bool, emit: str, fresh: bool) -> None:
    """Run the demo, or go on with it."""
    if emit not in EMITS:
        raise CommandError(f"--emit is {emit!r}, wanted one of {', '.join(EMITS)}", USAGE)
    began = time.perf_counter()
    note = prepare(directory, {"months": flights.QUICK_MONTHS if quick else flights.ALL_MONTHS, "emit": emit}, fresh)
    with waiting("reading the flights"):
        loaded = flights.load(note["months"])
    n_batches = round(flights.BATCHES_A_MONTH * note["months"])
    if not note["written"]:
        with waiting(f"writing {loaded.rows.num_rows:,} rows as they came, into {n_batches} files"):
            flights.write_arrivals(loaded.rows, directory / ARRIVALS, n_batches)
        note = keep(directory, note | {"written": True})
    files = stream(directory, note, n_batches)
    with waiting("checking every answer against batch"):
        checked, answers = check(directory, note, loaded, files)
    note = keep(directory, note | {"checked": checked._asdict(), "files": [str(each) for each in files],
                                   "seconds": round(time.perf_counter() - began, 1)})  # fmt: skip
    out.print(latest(answers))
    out.print(verdict(checked), markup=False, soft_wrap=True)
    with waiting("drawing the report"):
        written = write_report(directory, None)
    keep(directory, note | {"done": True})
    out.print(f"answers: {directory / ANSWERS}\nreport:  {written}", markup=False, soft_wrap=True)
    if checked.different:
        raise CommandError(f"{checked.different:,} answers of the stream differ from batch; please report this")


def prepare(directory: Path, wanted: dict[str, Any], fresh: bool) -> dict[str, Any]:
    """Make the directory, or find out how far an earlier demo came in it."""
    path = directory / NOTE
    if directory.exists() and any(directory.iterdir()) and not path.exists():
        raise CommandError(f"{directory} is not empty and no demo's; choose another with --directory", USAGE)
    found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    if found is not None and not found["done"] and not fresh:
        if {name: found[name] for name in wanted} != wanted:
            raise CommandError(
                f"{directory} holds an unfinished demo with {found['months']} months and emit={found['emit']}. "
                "Call it in the same way to go on, or with --fresh to begin anew",
                USAGE,
            )
        err.print(f"going on with the demo in {directory}", markup=False)
        return dict(found)
    for part in (ARRIVALS, ANSWERS, CHECKPOINT):
        shutil.rmtree(directory / part, ignore_errors=True)
    (directory / LOG).unlink(missing_ok=True)
    directory.mkdir(parents=True, exist_ok=True)
    return keep(directory, wanted | {"written": False, "done": False})


def keep(directory: Path, note: dict[str, Any]) -> dict[str, Any]:
    """Write down how far it is, at once."""
    write_whole(directory / NOTE, lambda part: part.write_text(json.dumps(note, indent=1), encoding="utf-8"))
    return note


def stream(directory: Path, note: dict[str, Any], n_batches: int) -> list[str]:
    """Stream what has not been streamed yet; the files that hold the answers."""
    arrivals, answers, checkpoint = (str((directory / each).absolute()) for each in (ARRIVALS, ANSWERS, CHECKPOINT))
    declared = flights.spec(note["emit"])
    require_same(checkpoint, declared, arrivals)
    with session("sash demo", settings=SETTINGS) as spark:
        schema = spark.read.parquet(f"{arrivals}/000.parquet").schema
        rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(arrivals)
        writer = declared(rows).writeStream.format("parquet").option("path", answers)
        query = writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
        follow(query, Watch(Log(directory / LOG), n_batches))
        # Spark's own list: a micro-batch that was broken off may have left files that do not count.
        return [each.removeprefix("file://") for each in spark.read.parquet(answers).inputFiles()]


def check(directory: Path, note: dict[str, Any], loaded: flights.Flights, files: list[str]) -> tuple[Checked, Any]:
    """Compare the last answer for every row with what batch says; the last answers too."""
    declared = flights.spec(note["emit"])
    names = [name for spec in declared.specs for name, _ in spec.aggregates]
    kept = ["n", *names, *(["revision"] if note["emit"] == "revise" else [])]
    given = pa.concat_tables([pa_parquet.read_table(each, columns=kept) for each in files])
    last = _last_of_each(given, loaded.rows.num_rows)
    answered = last[last >= 0]
    final = given.take(pa.array(answered))
    truth = declared(loaded.rows).take(final["n"])
    different = np.zeros(final.num_rows, np.bool_)
    for name in names:
        different |= ~_same(final[name], truth[name])
    batches = Log(directory / LOG).read()
    late, revisions = (sum(getattr(each, name) for each in batches) for name in ("late", "revisions"))
    missing = loaded.rows.num_rows - len(answered)
    return Checked(len(answered), given.num_rows, int(different.sum()), missing, late, revisions), truth


def _last_of_each(given: Any, n_rows: int) -> Any:
    """For each row that came, where its last answer stands among all; -1 if it has none."""
    numbers = given["n"].to_numpy()
    order = np.arange(len(numbers))
    if "revision" in given.column_names:
        order = np.argsort(given["revision"].to_numpy(), kind="stable")
    last = np.full(n_rows, -1)
    last[numbers[order]] = order
    return last


def _same(found: Any, wanted: Any) -> Any:
    """For each row, whether two answers are the same: equal, or both null."""
    nulls = found.is_null().to_numpy() & wanted.is_null().to_numpy()
    equal = pa.compute.equal(found, wanted.cast(found.type)).fill_null(False).to_numpy()
    return equal | nulls


def latest(answers: Any) -> Table:
    """The newest answers of a few airports and airlines."""
    shown = Table("who", "flight", "delay", "mean, hour", "p95, hour", "mean, day", "worst of the day", "mean, 30 days",
                  "p95, 30 days", title="the last flight of each, minutes of delay")  # fmt: skip
    who = np.asarray(answers["who"].to_pylist())
    for name in SHOWN:
        there = np.flatnonzero(who == name)
        if len(there):
            row = answers.slice(int(there[-1]), 1).to_pylist()[0]
            shown.add_row(
                name, row["flight"], str(row["delay"]), f"{row['mean_hour']:.1f}", f"{row['p95_hour']:.0f}",
                f"{row['mean_day']:.1f}", f"{row['worst_day']} ({row['max_day']})", f"{row['mean_month']:.1f}",
                f"{row['p95_month']:.0f}",
            )  # fmt: skip
    return shown


def verdict(checked: Checked) -> str:
    """What the comparison found, in a sentence."""
    if checked.different:
        return f"The stream DIFFERS from batch in {checked.different:,} of {checked.rows:,} rows."
    waiting_still = f", {checked.unanswered:,} wait for a later row" if checked.unanswered else ""
    return (
        f"The stream equals batch: {checked.rows:,} rows compared, 15 answers each, all the same. "
        f"{checked.late:,} rows came too late, {checked.revisions:,} answers were revised{waiting_still}."
    )
