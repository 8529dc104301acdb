"""The report of a demo or of a run: which sections it has, and where their numbers come from."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet

import sash
from sash.cli import flights
from sash.cli.exits import USAGE, CommandError
from sash.cli.report import Plot, Section, Series, page
from sash.cli.watching import Log, MicroBatch
from sash.cli.writing import write_whole

POINTS = 365  # along a year
WEEK = 7 * 86_400
BUSY = 30  # flights in a day, for its mean to say something
EDGES = (1, 5, 15, 30, 60, 120, 240, 480, 960, 1_440)  # minutes


def write_report(place: Path, target: Path | None) -> Path:
    """Write the page of a demo's directory, or of the log of a run."""
    if place.is_dir():
        written = (target or place / "report.html").absolute()
        text = demo_page(place)
    elif place.is_file():
        written = (target or place.with_suffix(".html")).absolute()
        text = page(
            "A stream through Sash", f"From {place.name}.", [micro_batches(_required(Log(place).read(), place))]
        )
    else:
        raise CommandError(
            f"there is nothing at {place}; wanted the directory of a demo, or the log of sash run", USAGE
        )
    write_whole(written, lambda part: part.write_text(text, encoding="utf-8"))
    return written


def _required(batches: list[MicroBatch], place: Path) -> list[MicroBatch]:
    if not batches:
        raise CommandError(f"{place} notes no micro-batch")
    return batches


def demo_page(directory: Path) -> str:
    """The page of a demo that is done."""
    path = directory / "demo.json"
    note: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if "checked" not in note:
        raise CommandError(f"{directory} holds no demo that is done; run: sash demo --directory {directory}", USAGE)
    loaded = flights.load(note["months"])
    declared = flights.spec(note["emit"])
    answers = last_answers(note, loaded.rows)
    batches = Log(directory / "progress.jsonl").read()
    sections = [
        summary(note, loaded, batches), year(answers, loaded), storm(answers), disorder(loaded.rows),
        micro_batches(batches), worst(answers), algorithms(str(declared.explain(loaded.rows))),
    ]  # fmt: skip
    lead = (
        "Every flight that left New York, in the order in which it left, through Spark Structured Streaming. Before "
        "each flight: the last hour, day and thirty days of its airport and of its airline, by scheduled times."
    )
    return page("The flights of 2013", lead, sections)


def last_answers(note: dict[str, Any], rows: Any) -> Any:
    """The rows with their last answers, by time; from the files that the stream wrote."""
    names = ["n", *(f"{what}_{span}" for span in flights.SPANS for what in ("flights", "mean", "max", "p95"))]
    revised = note["emit"] == "revise"
    kept = [*names, *(["revision"] if revised else [])]
    given = pa.concat_tables([pa_parquet.read_table(each, columns=kept) for each in note["files"]])
    numbers = given["n"].to_numpy()
    order = np.argsort(given["revision"].to_numpy(), kind="stable") if revised else np.arange(len(numbers))
    last = np.full(rows.num_rows, -1)
    last[numbers[order]] = order
    there = np.flatnonzero(last >= 0)
    found = rows.take(pa.array(there))
    for name in names[1:]:
        found = found.append_column(name, given[name].take(pa.array(last[there])))
    return found.sort_by([("scheduled", "ascending"), ("n", "ascending")])


def summary(note: dict[str, Any], loaded: flights.Flights, batches: Sequence[MicroBatch]) -> Section:
    """What was done, in numbers."""
    checked = note["checked"]
    took = sum(each.milliseconds for each in batches) / 1e3
    same = checked["different"] == 0
    return Section(
        "What came out",
        f"Each flight counts for its airport and for its airline. {loaded.n_cancelled:,} cancelled flights never came. "
        + ("The last answer for every row was compared with batch: all are the same." if same else
           f"{checked['different']:,} answers DIFFER from batch."),
        facts=[
            ("flights", f"{loaded.n_flights:,}"),
            ("rows compared with batch", f"{checked['rows']:,}"),
            ("answers that differ", f"{checked['different']:,}"),
            ("answers revised", f"{checked['revisions']:,}"),
            ("rows too late", f"{checked['late']:,}"),
            ("micro-batches", f"{sum(each.rows > 0 for each in batches):,}"),
            ("seconds of streaming", f"{took:,.0f}"),
            ("rows a second", f"{sum(each.rows for each in batches) / max(took, 1e-9):,.0f}"),
        ],
    )  # fmt: skip


def year(answers: Any, loaded: flights.Flights) -> Section:
    """Delay over the year, for each airport and airline."""
    who = np.asarray(answers["who"].to_pylist())
    there = set(who.tolist())
    names = [*(name for name in flights.ORIGINS if name in there), *sorted(there - set(flights.ORIGINS))]
    called = flights.ORIGINS | loaded.airlines
    choices = {
        f"{name} {called.get(name, '')}": year_plot(answers.filter(pa.array(who == name)), name) for name in names
    }
    return Section(
        "Delay over time",
        "The mean of the last day jumps with the weather; the mean and the 95th percentile of the last thirty days "
        "show what a passenger should have expected. All three are answers of the same stream, at the same flights.",
        choices=choices,
    )


def year_plot(of_one: Any, name: str) -> Plot:
    """Answers at some flights of one key, evenly over time."""
    seconds = seconds_of(of_one)
    step = max((seconds[-1] - seconds[0]) / POINTS, 1)
    last = np.flatnonzero(np.diff(np.floor((seconds - seconds[0]) / step), append=np.inf))
    shown = of_one.take(pa.array(last))
    return Plot(
        f"Minutes of delay, {name}",
        seconds[last].tolist(),
        [
            Series("mean, last day", rounded(shown["mean_day"]), colour=5, width=1),
            Series("p95, 30 days", rounded(shown["p95_month"]), colour=2, width=2),
            Series("mean, 30 days", rounded(shown["mean_month"]), colour=1, width=2.5),
        ],
        unit="min",
    )


def storm(answers: Any) -> Section:
    """A week around the day with the greatest mean delay."""
    who = np.asarray(answers["who"].to_pylist())
    of_airports = answers.filter(pa.array(np.isin(who, list(flights.ORIGINS))))
    a_day = of_airports["flights_day"].to_numpy()
    mean = np.where(a_day >= min(BUSY, a_day.max()), of_airports["mean_day"].to_numpy(), -np.inf)
    worst_row = of_airports.slice(int(np.argmax(mean)), 1).to_pylist()[0]
    name, middle = worst_row["who"], worst_row["scheduled"].timestamp()
    of_one = answers.filter(pa.array(who == name))
    seconds = seconds_of(of_one)
    near = np.flatnonzero(np.abs(seconds - middle) <= WEEK / 2)
    week = of_one.take(pa.array(near))
    plot = Plot(
        f"{flights.ORIGINS[name]}, minutes of delay",
        seconds[near].tolist(),
        [
            Series("a flight", week["delay"].to_pylist(), "points", colour=5),
            Series("mean, last hour", rounded(week["mean_hour"]), colour=3, width=1),
            Series("mean, last day", rounded(week["mean_day"]), colour=2, width=2),
            Series("mean, 30 days", rounded(week["mean_month"]), colour=1, width=2),
        ],
        unit="min",
    )
    return Section(
        "A week around the worst day",
        f"On {worst_row['scheduled']:%d %B %Y} the flights from {flights.ORIGINS[name]} were, on the mean of a day, "
        f"{worst_row['mean_day']:.0f} minutes late, the worst of them {worst_row['max_day']:,}. "
        "Each window forgets at its own pace.",
        [plot],
    )


def disorder(rows: Any) -> Section:
    """How far behind the newest row others came."""
    minutes = flights.behind(rows)[::2]  # one of the two rows of a flight
    behind = minutes[minutes > 0]
    counts = np.histogram(behind, bins=[*EDGES, np.inf])[0]
    names = [f"{low} to {high}" for low, high in pairwise(EDGES)] + [f"> {EDGES[-1]}"]
    plot = Plot(
        "Flights by minutes behind the newest (logarithmic)",
        list(range(len(names))),
        [Series("flights", counts.tolist(), "bars", colour=1)],
        names=names,
        named="minutes behind",
        log=True,
    )
    return Section(
        "How disordered they came",
        f"{1 - len(behind) / len(minutes):.0%} of the flights came in order of their scheduled times; the others came "
        f"after one that should have left later. Half of those were at most {np.median(behind):.0f} minutes behind, "
        f"the last one {behind.max():,.0f}.",
        [plot],
    )


def micro_batches(batches: Sequence[MicroBatch]) -> Section:
    """Throughput and latency of each micro-batch."""
    busy = [each for each in batches if each.rows]
    places, names = list(range(len(busy))), [str(each.batch + 1) for each in busy]
    rates = Series("rows a second", [round(each.rows_a_second) for each in busy], "bars")
    rate = Plot("Rows a second", places, [rates], names=names, named="micro-batch")
    time = Plot(
        "Seconds a micro-batch",
        places,
        [
            Series("all of it", [each.milliseconds / 1e3 for each in busy], colour=2, width=2),
            Series("in the engine, over all tasks", [each.engine_ms / 1e3 for each in busy], colour=3, width=2),
        ],
        unit="s",
        names=names,
        named="micro-batch",
    )
    revisions = Series("revisions", [each.revisions for each in busy], "bars", colour=4)
    revised = Plot("Answers revised", places, [revisions], names=names, named="micro-batch")
    plots = [rate, time, *([revised] if any(each.revisions for each in busy) else [])]
    return Section(
        "Micro-batches",
        "The first one starts Python's workers and loads machine code. The engine is what computes windows; the rest "
        "is Spark's: planning, shuffling, state, files.",
        plots,
    )


def worst(answers: Any) -> Section:
    """The flights that were latest."""
    rows = answers.filter(pa.compute.equal(answers["who"], answers["origin"])).sort_by([("delay", "descending")])
    table = [("flight", "from", "to", "scheduled, UTC", "minutes late", "mean of its airport's hour")]
    table += [
        (row["flight"], row["origin"], row["dest"], f"{row['scheduled']:%Y-%m-%d %H:%M}", f"{row['delay']:,}",
         f"{row['mean_hour']:.0f}")
        for row in rows.slice(0, 8).to_pylist()
    ]  # fmt: skip
    return Section("The worst flights", tables=[table])


def algorithms(explained: str) -> Section:
    """Which algorithms ran, and why, from the explanation of the spec."""
    table: list[tuple[str, str]] = [("", "what ran, and why")]
    for block in explained.split("\n\n"):
        for line in block.splitlines():
            name, text = line[:12].strip(), line[12:]
            table.append(("spec", line) if line.startswith("sash.") else (name, text))
    return Section(
        "Which algorithm, and why",
        f"The choice follows from the aggregates, not from the data: spec.explain() of Sash {sash.__version__}.",
        tables=[table],
    )


def seconds_of(rows: Any) -> Any:
    """Scheduled times in seconds since 1970."""
    return rows["scheduled"].cast(pa.int64()).to_numpy() / 1e6


def rounded(column: Any) -> list[float | None]:
    """Numbers with two digits: what an eye can see."""
    return [None if value is None else round(value, 2) for value in column.to_pylist()]
