"""Real tables on Spark, against its own OVER: bicycle rides, taxis on few timestamps, earthquakes."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql.functions import expr

import sash

FOLDERS = (Path("data"), Path("../shared/data"), Path("../data"))
FOLDER = next((each for each in FOLDERS if each.is_dir()), None)
pytestmark = pytest.mark.skipif(FOLDER is None, reason="no real data in data/ or ../shared/data")

N_ROWS = 3_000  # of each table: interpreted here, and Spark's own recalculates every frame
OURS = {"n": sash.count(), "total": sash.sum("i"), "top": sash.max("x"), "who": sash.argmax("x", "id")}
THEIRS = {"n": "count(*)", "total": "sum(i)", "top": "max(x)", "who": "max_by(id, x)"}


def rides():
    path = sorted((FOLDER / "citibike_jc").glob("*.zip"))[0]
    names = ["tripduration", "stoptime", "start station id", "birth year"]
    given = pd.read_csv(path, usecols=names, nrows=N_ROWS)[names]
    given.columns = ["i", "t", "k", "x"]
    return given.assign(t=pd.to_datetime(given["t"]), x=given["x"].astype("Float64"))


def taxis():
    path = FOLDER / "debs2015" / "sorted_data.csv.gz"
    given = pd.read_csv(path, header=None, usecols=[2, 4, 11, 10], names=range(17), nrows=N_ROWS)
    return pd.DataFrame({"k": given[10], "t": pd.to_datetime(given[2]), "i": given[4], "x": given[11]})


def earthquakes():
    given = pd.read_csv(FOLDER / "usgs" / "all_month_2023.csv", nrows=N_ROWS)
    columns = {"k": given["net"], "t": pd.to_datetime(given["time"]), "i": given["nst"], "x": given["mag"]}
    table = pd.DataFrame(columns)
    return table.assign(i=table["i"].astype("Int64"), x=table["x"].astype("Float64"))


WINDOWS = {
    "ORDER BY t RANGE BETWEEN INTERVAL 1 HOUR PRECEDING AND CURRENT ROW": lambda w: w.range("1 hour"),
    "ORDER BY t, id ROWS BETWEEN 99 PRECEDING AND CURRENT ROW": lambda w: w.rows(100),
}


@pytest.mark.parametrize("read", [rides, taxis, earthquakes])
def test_windows_over_real_tables_are_those_of_over(read, spark):
    table = pa.Table.from_pandas(read().reset_index(names="id"), preserve_index=False)
    place = table.schema.get_field_index("t")
    table = table.set_column(place, "t", table["t"].cast(pa.timestamp("us", "UTC")))
    df = spark.createDataFrame(table).cache()
    for frame, window in WINDOWS.items():
        theirs = [expr(f"{each} OVER (PARTITION BY k {frame})").alias(name) for name, each in THEIRS.items()]
        wanted = {row["id"]: tuple(row) for row in df.select("id", *theirs).collect()}
        for split in (False, 3):
            order = ["t", "id"] if "ROWS" in frame else "t"
            spec = window(sash.window(by="k", order_by=order)).agg(**OURS).split_hot_keys(split)
            found = {row["id"]: tuple(row) for row in spec(df).select("id", *OURS).collect()}
            assert without_ties(found) == without_ties(wanted)


def without_ties(rows):
    """Which of several largest rows is named is anybody's guess, in Spark's own too: leave names out."""
    return {number: row[:-1] for number, row in rows.items()}
