"""Real tables, compiled, against DuckDB: bicycle rides, air with holes in it, taxis on few timestamps, earthquakes."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pytest

import sash

FOLDERS = (Path("data"), Path("../shared/data"), Path("../data"))
FOLDER = next((each for each in FOLDERS if each.is_dir()), None)
pytestmark = pytest.mark.skipif(FOLDER is None, reason="no real data in data/ or ../shared/data")

AGGREGATES = {"n": sash.count(), "total": sash.sum("i"), "top": sash.max("x")}
SQL = "count(*) OVER w AS n, CAST(sum(i) OVER w AS BIGINT) AS total, max(x) OVER w AS top"


def rides():
    path = sorted((FOLDER / "citibike_jc").glob("*.zip"))[0]
    given = pd.read_csv(path, usecols=["tripduration", "starttime", "stoptime", "start station id", "birth year"])
    given.columns = ["i", "start", "t", "k", "x"]
    return given.assign(t=pd.to_datetime(given["t"]), x=given["x"].where(given["x"] > 1940))


def air():
    paths = sorted((FOLDER / "prsa").glob("*.csv.gz"))[:2]
    given = pd.concat([pd.read_csv(path, na_values="NA") for path in paths], ignore_index=True)
    times = pd.to_datetime(given[["year", "month", "day", "hour"]])
    columns = {"k": given["station"], "t": times, "i": given["PM10"].round().astype("Int64"), "x": given["TEMP"]}
    return pd.DataFrame(columns).sample(frac=0.5, random_state=1)


def taxis():
    path = FOLDER / "debs2015" / "sorted_data.csv.gz"
    given = pd.read_csv(path, header=None, usecols=[2, 4, 11, 10], names=range(17))
    columns = {"k": given[10], "t": pd.to_datetime(given[2]), "i": given[4], "x": given[11].where(given[11] < 50)}
    return pd.DataFrame(columns)


def earthquakes():
    given = pd.read_csv(FOLDER / "usgs" / "all_month_2023.csv")
    columns = {
        "k": given["net"],
        "t": pd.to_datetime(given["time"]),
        "i": given["nst"].astype("Int64"),
        "x": given["mag"],
    }
    return pd.DataFrame(columns).sort_values("k", kind="stable")


def by_duckdb(table, frame):
    with duckdb.connect(":memory:") as connection:
        connection.register("given", pl.from_pandas(table.reset_index(drop=True)).with_row_index("row").to_arrow())
        window = f"PARTITION BY k ORDER BY t, row {frame}" if "ROWS" in frame else f"PARTITION BY k ORDER BY t {frame}"
        return pl.from_arrow(
            connection.sql(f"SELECT {SQL} FROM given WINDOW w AS ({window}) ORDER BY row").to_arrow_table()
        )


@pytest.mark.parametrize("read", [rides, air, taxis, earthquakes])
def test_windows_over_real_tables_are_duckdbs(read):
    table = read()
    w = sash.window(by="k", order_by="t")
    windows = {
        "RANGE BETWEEN INTERVAL 1 HOUR PRECEDING AND CURRENT ROW": w.range("1 hour"),
        "RANGE BETWEEN INTERVAL 10 DAYS PRECEDING AND CURRENT ROW": w.range("10 days"),
        "ROWS BETWEEN 99 PRECEDING AND CURRENT ROW": w.rows(100),
    }
    for frame, window in windows.items():
        found = pl.from_pandas(window.agg(**AGGREGATES)(table)[list(AGGREGATES)].reset_index(drop=True))
        wanted = by_duckdb(table, frame)
        for name in AGGREGATES:
            assert found[name].cast(pl.Float64).equals(wanted[name].cast(pl.Float64)), (frame, name)


def test_right_closed_windows_over_rides_are_pandas():
    table = rides().sort_values(["k", "t"], kind="stable").reset_index(drop=True)
    found = sash.window(by="k", order_by="t").range("6 hours", closed="right", ties="upto").agg(**AGGREGATES)(table)
    rolling = table.groupby("k").rolling("6h", on="t", closed="right", min_periods=1)
    assert found["total"].tolist() == rolling["i"].sum().astype("int64").tolist()
    assert found["top"].equals(rolling["x"].max().reset_index(drop=True).rename("top"))


def test_hours_of_rides_are_polars_groups():
    table = pl.from_pandas(rides())
    found = sash.window(by="k", order_by="t").tumbling("1 hour").agg(**AGGREGATES)(table)
    wanted = (
        table.sort("k", "t")
        .group_by_dynamic("t", every="1h", group_by="k", label="right", closed="left")
        .agg(n=pl.len().cast(pl.Int64), total=pl.col("i").sum(), top=pl.col("x").max())
    )
    filled = found.filter(pl.col("n") > 0).drop("t_start").sort("k", "t")
    assert filled.equals(
        wanted.select(filled.columns).sort("k", "t").with_columns(pl.col("t").cast(filled.schema["t"]))
    )
