"""Plain arrays in and out."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import sash
from sash.errors import DataError, UnknownNameError
from tests.test_imports import BLOCKING

pytestmark = pytest.mark.usefixtures("interpreted")

SPEC = sash.window(by="k", order_by="t").range(10).agg(n=sash.count(), total=sash.sum("x"), top=sash.max("x"))
COLUMNS = {"k": np.array(["a", "b", "a"]), "t": np.array([20, 1, 5]), "x": np.array([4, 2, 1])}
WANTED = {"n": [1, 1, 1], "total": [4, 2, 1], "top": [4, 2, 1]}


@pytest.mark.parametrize(
    "convert",
    [
        lambda column: column,
        lambda column: column.tolist(),
        lambda column: column[::-1][::-1],
        lambda column: pa.array(column.tolist()),
        lambda column: pa.chunked_array([column.tolist()[:1], column.tolist()[1:]]),
        lambda column: pl.Series(column.tolist()),
    ],
)
def test_arrays_of_any_kind_give_numpy_arrays(convert):
    found = SPEC.columns({name: convert(column) for name, column in COLUMNS.items()})
    assert {name: column.tolist() for name, column in found.items()} == WANTED
    assert all(type(column) is np.ndarray for column in found.values())


def test_arrays_can_be_named_or_handed_over_together():
    assert (
        SPEC.columns(**COLUMNS)["n"].tolist()
        == SPEC.columns({"k": COLUMNS["k"]}, t=[20, 1, 5], x=[4, 2, 1])["n"].tolist()
    )


def test_nulls_are_shown_as_slide_shows_them():
    lagging = sash.window(order_by="t").range(1, lag=5)
    t, high = np.array([1, 6]), sash.max("x")
    whole = lagging.agg(high=high).columns(t=t, x=np.array([3, 4]))["high"]
    assert whole.tolist() == [None, 3]
    assert isinstance(whole, np.ma.MaskedArray)
    floats = lagging.agg(high=high).columns(t=t, x=np.array([3.0, 4.0]))["high"]
    assert type(floats) is np.ndarray
    assert np.isnan(floats[0])
    masked = lagging.agg(high=high).columns(t=t, x=np.ma.MaskedArray([3.0, 4.0], [True, False]))["high"]
    assert masked.tolist() == [None, None]
    texts = lagging.agg(high=high).columns(t=t, x=["p", "q"])["high"]
    assert texts.tolist() == [None, "p"]
    times = lagging.agg(high=high).columns(t=t, x=np.array(["2024-01-01T10", "2024-01-02T10"], "M8[h]"))["high"]
    assert times.astype(str).tolist() == ["NaT", "2024-01-01T10:00:00"]


@pytest.mark.parametrize("unit", ["h", "m", "s", "ms", "us", "ns"])
def test_numpy_times_of_any_unit_are_an_order(unit):
    times = np.array(["2024-01-01T00", "2024-01-01T01", "2024-01-01T03"], f"M8[{unit}]")
    count = sash.window(order_by="t").range("90 minutes").agg(n=sash.count())
    assert count.columns(t=times)["n"].tolist() == [1, 2, 1]


def test_a_record_comes_as_a_structured_array():
    found = sash.window(order_by="t").rows(2).agg(line=sash.trend("t", "x")).columns(t=[0, 1, 2], x=[1.0, 3.0, 7.0])
    assert found["line"].dtype.names == ("slope", "intercept")
    assert found["line"].tolist() == [(None, None), (2.0, 1.0), (4.0, -1.0)]


def test_a_grid_brings_its_keys_and_instants():
    spec = sash.window(by="k", order_by="t").range(10).every(5).agg(n=sash.count())
    found = spec.columns(COLUMNS)
    assert {name: column.tolist() for name, column in found.items()} == {
        "k": ["a", "a", "a", "a", "b"], "t": [5, 10, 15, 20, 5], "n": [1, 1, 1, 1, 1],
    }  # fmt: skip
    some = sash.window(by="k", order_by="t").rows(2).every(rows=2).agg(n=sash.count()).columns(COLUMNS)
    assert {name: column.tolist() for name, column in some.items()} == {"k": ["a"], "t": [20], "x": [4], "n": [2]}


def test_mistakes_are_told():
    with pytest.raises(DataError, match="columns differ in length: k 3, t 3, x 2"):
        SPEC.columns({**COLUMNS, "x": [1, 2]})
    with pytest.raises(DataError, match="must have one dimension, got 2"):
        SPEC.columns({**COLUMNS, "x": np.ones((3, 2))})
    with pytest.raises(DataError, match="cannot be read as one type"):
        SPEC.columns({**COLUMNS, "x": [1, "a", 2]})
    with pytest.raises(DataError, match="got no columns"):
        SPEC.columns()
    with pytest.raises(DataError, match="takes arrays by name"):
        SPEC.columns([1, 2])
    with pytest.raises(UnknownNameError, match="order_by: unknown column 't'"):
        SPEC.columns(k=["a"], x=[1])


def test_without_pyarrow_a_window_can_be_declared_and_the_way_to_get_it_is_told():
    code = """
import sash
spec = sash.window(by="k", order_by="t").range("1 hour").agg(n=sash.count())
print(spec)
try:
    spec.columns(k=["a"], t=[1])
except sash.UnsupportedError as error:
    print(error)
"""
    blocked = BLOCKING.format(blocked=["pyarrow", "pandas", "polars"])
    done = subprocess.run(
        [sys.executable, "-c", blocked + code], capture_output=True, text=True, check=True, timeout=120
    )
    assert "range('1 hour').agg(n=count())" in done.stdout
    assert "pip install 'sash[arrow]'" in done.stdout
