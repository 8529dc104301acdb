"""Against those who define the semantics: DuckDB for RANGE and ROWS, pandas for ties and ends, Polars for rolling."""

from __future__ import annotations

import math

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sash
from tests.frames.tables import AGGREGATES, answers_in, as_table, same, tables, with_timestamps

pytestmark = pytest.mark.usefixtures("interpreted")

W = sash.window(by="k", order_by="t")
SECONDS = st.integers(1, 9)


@pytest.fixture(scope="module")
def database():
    with duckdb.connect(":memory:") as connection:
        connection.execute("SET threads = 1")
        yield connection


def by_sql(database, table, frame):
    numbered = table.append_column("row", pa.array(range(len(table))))
    database.register("given", numbered)
    return database.sql(
        f"""
        SELECT count(*) OVER w AS n, sum(i) OVER w AS total, max(x) OVER w AS top
        FROM given WINDOW w AS (PARTITION BY k ORDER BY {frame}) ORDER BY row
        """
    ).to_arrow_table()


def as_python(table):
    rows = answers_in(table)
    return [{**row, "total": None if row["total"] is None else int(row["total"])} for row in rows]


@given(rows=tables(null_times=True), span=SECONDS)
def test_range_is_duckdbs(database, rows, span):
    table = with_timestamps(as_table(rows))
    frame = f"t ASC NULLS FIRST RANGE BETWEEN INTERVAL {span} SECONDS PRECEDING AND CURRENT ROW"
    assert same(
        answers_in(W.range(f"{span} seconds").agg(**AGGREGATES)(table)), as_python(by_sql(database, table, frame))
    )


@given(rows=tables(), span=SECONDS, lag=st.integers(0, 5))
def test_a_lagging_range_is_duckdbs(database, rows, span, lag):
    table = as_table(rows)
    frame = f"t ASC RANGE BETWEEN {span + lag} PRECEDING AND {lag} PRECEDING"
    assert same(answers_in(W.range(span, lag=lag).agg(**AGGREGATES)(table)), as_python(by_sql(database, table, frame)))


@given(rows=tables(null_times=True), n=st.integers(1, 6))
def test_rows_are_duckdbs(database, rows, n):
    table = as_table(rows).append_column("row_in", pa.array(range(len(rows))))
    spec = sash.window(by="k", order_by=["t", "row_in"]).rows(n).agg(**AGGREGATES)
    frame = f"t ASC NULLS FIRST, row_in ROWS BETWEEN {n - 1} PRECEDING AND CURRENT ROW"
    assert same(answers_in(spec(table)), as_python(by_sql(database, table, frame)))


@given(rows=tables(null_times=True))
def test_everything_is_duckdbs_default_frame(database, rows):
    table = as_table(rows)
    frame = "t ASC NULLS FIRST RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    assert same(answers_in(W.everything().agg(**AGGREGATES)(table)), as_python(by_sql(database, table, frame)))


@pytest.mark.parametrize("closed", ["both", "right", "left", "neither"])
@given(rows=tables(), span=SECONDS)
def test_upto_is_pandas_in_all_four_forms_of_closed(closed, rows, span):
    known = [row for row in rows if row["k"] is not None]  # groupby in pandas drops null keys
    ordered = sorted(known, key=lambda row: row["t"])
    frame = with_timestamps(as_table(ordered)).to_pandas()
    finite = frame["x"].where(frame["x"].abs() < 10).astype("float64")  # rolling sums in pandas spread inf and 1e300
    frame = frame.assign(x=finite, i=frame["i"].astype("float64"), row=range(len(frame)))
    rolling = frame.groupby("k").rolling(f"{span}s", on="t", closed=closed, min_periods=1)
    wanted = pd.DataFrame(
        {"n": rolling["row"].count().fillna(0), "total": rolling["i"].sum(), "top": rolling["x"].max()}
    ).reset_index(drop=True)
    # pandas answers group by group, in the order of the keys.
    places = frame.sort_values("k", kind="stable").index
    spec = W.range(f"{span} seconds", closed="none" if closed == "neither" else closed, ties="upto").agg(**AGGREGATES)
    found = spec(frame)[list(AGGREGATES)].iloc[places].reset_index(drop=True)
    pd.testing.assert_frame_equal(found.astype("float64"), wanted.astype("float64"))


@given(rows=tables(), span=SECONDS)
def test_right_closed_with_peers_is_polars(rows, span):
    table = pl.from_arrow(with_timestamps(as_table(rows)))
    ordered = table.sort("k", "t", maintain_order=True)
    rolled = ordered.rolling("t", period=f"{span}s", closed="right", group_by="k").agg(
        n=pl.len(), total=pl.col("i").sum(), present=pl.col("i").count(), least=pl.col("i").min()
    )
    spec = W.range(f"{span} seconds", closed="right").agg(n=sash.count(), total=sash.sum("i"), least=sash.min("i"))
    found = spec(ordered)
    wanted = rolled.sort("k", "t", maintain_order=True)
    sums = [total if present else None for total, present in wanted.select("total", "present").iter_rows()]
    assert found["total"].to_list() == sums
    for name in ("n", "least"):
        assert found[name].to_list() == wanted[name].to_list()


def test_nan_and_infinities_are_ordered_as_in_duckdb(database):
    values = [1.0, math.nan, math.inf, -math.inf, None, -0.0]
    table = pa.table({"k": ["a"] * 6, "t": range(6), "i": range(6), "x": values})
    frame = "t ASC ROWS BETWEEN 1 PRECEDING AND CURRENT ROW"
    assert same(answers_in(W.rows(2).agg(**AGGREGATES)(table)), as_python(by_sql(database, table, frame)))
