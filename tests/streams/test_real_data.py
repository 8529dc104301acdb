"""The parity law on real rows: bicycle rides that come when they end, flights that come when they leave.

Both are late by nature: an event is known minutes or hours after the time it is filed under, and others overtake it.
"""

from __future__ import annotations

import zipfile
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import sash
from sash.streams import chunks, large
from tests.streams.test_parity import check_eager, check_final, check_revise

pytestmark = pytest.mark.usefixtures("interpreted")

FOLDERS = (Path("data/citibike_jc"), Path("../shared/data/citibike_jc"), Path("../data/citibike_jc"))
N = 2_500
CHECKS = {"final": check_final, "eager": check_eager, "revise": check_revise}


@lru_cache
def rides():
    """Rides of less than an hour, by the time they began at a station, in the order in which they ended."""
    folder = next((each for each in FOLDERS if each.is_dir()), None)
    if folder is None:
        pytest.skip(f"no Citi Bike rides in any of {', '.join(map(str, FOLDERS))}")
    with zipfile.ZipFile(sorted(folder.glob("*.zip"))[0]) as archive:
        read = pa.csv.read_csv(archive.open(archive.namelist()[0]))
    table = pa.table({
        "who": read["start station id"].cast(pa.int64()), "ts": read["starttime"].cast(pa.timestamp("us")),
        "amount": read["tripduration"].cast(pa.int64()), "what": read["bikeid"].cast(pa.string()),
    })  # fmt: skip
    ends = table["ts"].cast(pa.int64()).to_numpy() + 1_000_000 * table["amount"].to_numpy()
    short = np.flatnonzero(table["amount"].to_numpy() < 3_600)
    return numbered(table.take(short[np.argsort(ends[short], kind="stable")][:N]))


@lru_cache
def departures():
    """Flights from New York by their schedule, for airports and airlines, in the order in which they left."""
    flights = pytest.importorskip("sash.cli.flights", reason="the flights of the demo need sash[cli]")
    try:
        read = flights.load(1).rows.slice(0, N)
    except ModuleNotFoundError as error:
        pytest.skip(f"no flights: {error} is not installed")
    times = read["scheduled"].cast(pa.timestamp("us"))
    return numbered(pa.table({"who": read["who"], "ts": times, "amount": read["delay"], "what": read["flight"]}))


def numbered(table):
    """Rows with the numbers in which they come."""
    return table.combine_chunks().add_column(0, "id", pa.array(np.arange(table.num_rows)))


W = sash.window(by="who", order_by=["ts", "id"])
WINDOWS = {
    "6 hours": W.range("6 hours"),
    "6 hours, no more than 20": W.range("6 hours", rows=20, closed="left"),
    "3 hours, 2 hours ago": W.range("3 hours", lag="2 hours"),
    "the last 10": W.rows(10),
    "while no hour is silent": W.session("1 hour"),
}
GRIDS = {"hours": W.tumbling("1 hour"), "a day each hour": W.range("1 day").every("1 hour")}
LATENESS = {rides: "1 hour", departures: "1 day"}
AGGREGATES = {
    "n": sash.count(),
    "total": sash.sum("amount"),
    "top": sash.max("amount"),
    "worst": sash.argmax("amount", "what"),
}
IN_CHUNKS = {name: each for name, each in AGGREGATES.items() if name != "worst"} | {"at": sash.argmax("amount", "id")}


def sizes_of(seed, n):
    """A random split: some micro-batches of a few rows, some of none, some of hundreds."""
    random = np.random.default_rng(seed)
    sizes = random.choice([0, 1, 5, 40, 300, 700], 12)
    return sizes[np.cumsum(sizes) < n].tolist()


@pytest.mark.parametrize("emit", CHECKS)
@pytest.mark.parametrize("name", WINDOWS)
@pytest.mark.parametrize("load", LATENESS)
def test_a_stream_of_real_rows_says_what_batch_says(load, name, emit):
    table = load()
    spec = WINDOWS[name].agg(**AGGREGATES).stream(emit=emit, lateness=LATENESS[load])
    CHECKS[emit](spec, table, sizes_of(len(name), table.num_rows), 2)


@pytest.mark.parametrize("name", GRIDS)
@pytest.mark.parametrize("load", LATENESS)
def test_a_stream_of_real_rows_on_a_grid_says_what_batch_says(load, name):
    table = load()
    spec = GRIDS[name].agg(**AGGREGATES).stream(lateness=LATENESS[load])
    for seed in (1, 2):
        check_final(spec, table, sizes_of(seed, table.num_rows), 2)


@pytest.mark.parametrize("emit", CHECKS)
@pytest.mark.parametrize("name", ["6 hours, no more than 20", "3 hours, 2 hours ago", "the last 10"])
def test_real_keys_in_chunks_say_what_batch_says(name, emit, monkeypatch):
    monkeypatch.setattr(chunks, "ROWS", 16)
    monkeypatch.setattr(large, "LARGE", 8)
    table = departures()
    spec = WINDOWS[name].agg(**IN_CHUNKS).stream(emit=emit, lateness="1 day")
    CHECKS[emit](spec, table, sizes_of(7, table.num_rows), 2)
