"""Tables in and out: their kind, rows, index, other columns and types stay; keys of every type."""

from __future__ import annotations

import math
import runpy
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given

import sash
from tests.frames.tables import AGGREGATES, answers_in, as_table, same, tables, with_timestamps

W = sash.window(by="k", order_by="t")
HOUR = W.range("1 hour").agg(n=sash.count(), total=sash.sum("x"), who=sash.argmax("x", "name"))


@pytest.fixture
def rides(interpreted):
    return {
        "k": ["a", "b", "a", None, "a", None],
        "t": [
            datetime(2024, 1, 1, hour, minute) for hour, minute in [(2, 0), (0, 10), (0, 0), (0, 0), (0, 30), (0, 5)]
        ],
        "x": [1.0, 2.0, 3.0, 4.0, None, 6.0],
        "name": ["p", "q", "r", "s", "t", "u"],
    }


WANTED = {"n": [1, 1, 1, 1, 2, 2], "total": [1.0, 2.0, 3.0, 4.0, 3.0, 10.0], "who": ["p", "q", "r", "s", "r", "u"]}


def test_a_pandas_table_stays_one_with_its_index_order_and_columns(rides):
    frame = pd.DataFrame(rides, index=pd.Index([9, 3, 3, 7, 1, 0], name="id"))
    before = frame.copy()
    found = HOUR(frame)
    pd.testing.assert_frame_equal(frame, before)
    pd.testing.assert_frame_equal(found[list(frame)], frame)
    assert found.index.equals(frame.index)
    assert {name: found[name].tolist() for name in WANTED} == WANTED
    assert found.dtypes[list(WANTED)].astype(str).tolist() == ["int64", "float64", "str"]


def test_a_polars_table_stays_one(rides):
    frame = pl.DataFrame(rides)
    found = HOUR(frame)
    assert isinstance(found, pl.DataFrame)
    assert found.select(frame.columns).equals(frame)
    assert found.select(list(WANTED)).to_dict(as_series=False) == WANTED
    assert found.schema["n"] == pl.Int64


@pytest.mark.parametrize("make", [pa.table, pa.record_batch, lambda columns: pa.concat_tables([pa.table(columns)] * 1)])
def test_an_arrow_table_stays_one(rides, make):
    given = make(rides)
    found = HOUR(given)
    assert type(found) is type(given)
    assert found.select(given.schema.names).equals(given)
    assert found.select(list(WANTED)).to_pydict() == WANTED


def test_a_table_in_many_chunks_is_read_as_one(rides):
    whole = pa.table(rides)
    chunked = pa.concat_tables([whole.slice(0, 1), whole.slice(1, 0), whole.slice(1, 3), whole.slice(4)])
    assert HOUR(chunked).select(list(WANTED)).to_pydict() == WANTED


def test_whatever_exports_arrow_is_read(rides):
    class Exporting:
        def __arrow_c_stream__(self, requested_schema=None):
            return pa.table(rides).__arrow_c_stream__(requested_schema)

    assert HOUR(Exporting()).select(list(WANTED)).to_pydict() == WANTED


def test_a_spec_can_be_piped(rides):
    assert pd.DataFrame(rides).pipe(HOUR)["n"].tolist() == WANTED["n"]
    assert pl.DataFrame(rides).pipe(HOUR)["n"].to_list() == WANTED["n"]


def test_levels_of_a_pandas_index_can_be_named(rides):
    frame = pd.DataFrame(rides)
    found = HOUR(frame.set_index(["t", "k"]))
    assert found["n"].tolist() == WANTED["n"]
    assert found.index.names == ["t", "k"]
    on_grid = W.tumbling("1 hour").agg(n=sash.count())(frame.set_index("t"))
    assert list(on_grid) == ["k", "t_start", "t", "n"]


@pytest.mark.parametrize(
    ("dtype", "found"),
    [
        ("int64", "int64"), ("int8", "int8"), ("Int64", "Int64"), ("int64[pyarrow]", "int64[pyarrow]"),
        ("float32", "float32"), ("Float64", "Float64"), ("bool", "bool"), ("boolean", "boolean"),
        ("datetime64[ns]", "datetime64[ns]"), ("datetime64[s, Europe/Paris]", "datetime64[s, Europe/Paris]"),
        ("timedelta64[ms]", "timedelta64[ms]"), ("str", "str"), ("string[pyarrow]", "string"), ("category", "category"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("interpreted")
def test_answers_have_the_pandas_type_of_the_column_they_come_from(dtype, found):
    values = pd.Series([0, 1, 1]).astype("Int64").astype("int64")
    column = values.astype(bool).astype(dtype) if dtype.startswith("bool") else values.astype(dtype)
    frame = pd.DataFrame({"t": [1, 2, 3], "v": column})
    answers = sash.window(order_by="t").rows(2).agg(high=sash.max("v"), old=sash.first("v"))(frame)
    assert [str(answers[name].dtype) for name in ("high", "old")] == [found, found]
    assert answers["old"].tolist() == [frame["v"][0], frame["v"][0], frame["v"][1]]


@pytest.mark.usefixtures("interpreted")
def test_null_integers_in_pandas_lose_nothing():
    frame = pd.DataFrame({"t": [1, 2], "v": [2**60 + 1, 5]})
    found = sash.window(order_by="t").range(1, closed="left").agg(v_max=sash.max("v"), n=sash.count())(frame)
    assert found["v_max"].tolist() == [pd.NA, 2**60 + 1]
    assert [str(found[name].dtype) for name in ("v_max", "n")] == ["Int64", "int64"]


@pytest.mark.usefixtures("interpreted")
def test_nan_is_null_in_numpys_floats_and_a_value_where_there_is_a_null_beside_it():
    total = sash.window(order_by="t").rows(2).agg(total=sash.sum("x"), n=sash.count("x"))
    frame = pd.DataFrame({"t": [1, 2, 3], "x": [1.0, math.nan, 2.0]})
    assert total(frame)[["total", "n"]].to_dict("list") == {"total": [1.0, 1.0, 2.0], "n": [1, 1, 1]}
    found = total(pl.DataFrame({"t": [1, 2, 3], "x": [1.0, math.nan, 2.0]}))
    assert found["n"].to_list() == [1, 2, 2]
    assert np.isnan(found["total"].to_list()[1:]).all()


@pytest.mark.usefixtures("interpreted")
def test_polars_keeps_types_that_arrow_does_not_have():
    kinds = pl.Series(["x", "y", "x"], dtype=pl.Enum(["y", "x"]))
    found = (
        sash.window(order_by="t")
        .rows(2)
        .agg(old=sash.first("v"), low=sash.min("v"))(pl.DataFrame({"t": [1, 2, 3], "v": kinds}))
    )
    assert found.schema["old"] == kinds.dtype
    assert found["old"].to_list() == ["x", "x", "y"]


KEYS = {
    "integers": [1, 2, 1, None, None, 2],
    "far apart": [0, 2**62, 0, None, None, 2**62],
    "negative": [-(2**63), 2**63 - 1, -(2**63), None, None, 2**63 - 1],
    "booleans": [True, False, True, None, None, False],
    "floats": [0.0, math.nan, -0.0, None, None, -math.nan],
    "texts": ["a", "b", "a", None, None, "b"],
    "dates": [date(1, 1, 1), date(9999, 1, 1), date(1, 1, 1), None, None, date(9999, 1, 1)],
    "decimals": [Decimal("1.5"), Decimal(2), Decimal("1.50"), None, None, Decimal(2)],
    "bytes": [b"", b"\x00", b"", None, None, b"\x00"],
    "lists": [[1], [1, 2], [1], None, None, [1, 2]],
    "structs": [{"a": 1, "b": math.nan}, {"a": 2, "b": 0.0}, {"a": 1, "b": math.nan}, None, None, {"a": 2, "b": 0.0}],
}


@pytest.mark.parametrize("name", KEYS)
@pytest.mark.usefixtures("interpreted")
def test_keys_of_any_type_tell_rows_apart_and_null_is_a_key(name):
    count = sash.window(by="k", order_by="t").everything().agg(n=sash.count())
    given = pa.table({"k": KEYS[name], "t": range(6)})
    assert count(given)["n"].to_pylist() == [1, 1, 2, 1, 2, 2]
    assert count(given)["k"].equals(given["k"]) or name in ("floats", "structs")


@pytest.mark.usefixtures("interpreted")
def test_categories_that_stand_for_the_same_are_one_key():
    twice = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, None, 3]), pa.array(["a", "b", "a", None]))
    found = sash.window(by="k", order_by="t").everything().agg(n=sash.count())(pa.table({"k": twice, "t": range(5)}))
    assert found["n"].to_pylist() == [1, 1, 2, 1, 2]


@pytest.mark.usefixtures("interpreted")
def test_several_columns_are_one_key_even_with_many_values_each():
    wide = [0, 2**40, 2**50, 2**40, 0, 2**50]
    given = pa.table({"a": wide, "b": wide[::-1], "c": [str(each) for each in wide], "d": wide, "t": range(6)})
    count = sash.window(by=["a", "b", "c", "d"], order_by="t").everything(ties="upto").agg(n=sash.count())
    assert count(given)["n"].to_pylist() == [1, 1, 1, 1, 1, 1]
    assert count(pa.concat_tables([given, given]))["n"].to_pylist() == [1] * 6 + [2] * 6


@given(rows=tables(null_times=True))
@pytest.mark.usefixtures("interpreted")
def test_all_kinds_of_tables_give_the_same_answers(rows):
    spec = W.range("3 seconds").agg(**AGGREGATES)
    table = with_timestamps(as_table(rows))
    wanted = answers_in(spec(table))
    assert same(spec(pl.from_arrow(table)).select(list(AGGREGATES)).to_dicts(), wanted)
    arrow_backed = table.to_pandas(types_mapper=pd.ArrowDtype)
    assert same(answers_in(pa.Table.from_pandas(spec(arrow_backed))), wanted)


@pytest.mark.parametrize("make", [pa.table, pd.DataFrame, pl.DataFrame])
def test_a_table_without_rows_gets_its_columns_all_the_same(make):
    empty = {"k": pa.array([], pa.string()), "t": pa.array([], pa.int64()), "x": pa.array([], pa.float64())}
    table = make({name: column if make is pa.table else column.to_pandas() for name, column in empty.items()})
    found = W.rows(3).agg(n=sash.count(), mean=sash.mean("x"), high=sash.max("x"))(table)
    names = found.column_names if make is pa.table else list(found.columns)
    assert names == ["k", "t", "x", "n", "mean", "high"]
    on_grid = W.tumbling(5).agg(n=sash.count())(table)
    assert len(on_grid) == 0


@pytest.mark.usefixtures("interpreted")
def test_rows_that_order_by_cannot_tell_apart_keep_the_order_of_the_input():
    given = pa.table({"t": [1, 1, 1], "v": ["c", "a", "b"], "tie": [3, 1, 2]})
    last = {"all": sash.concat("v")}
    assert sash.window(order_by="t").rows(3).agg(**last)(given)["all"].to_pylist() == ["c", "ca", "cab"]
    broken = sash.window(order_by=["t", "tie"]).rows(3).agg(**last)
    assert broken(given)["all"].to_pylist() == ["abc", "a", "ab"]
    by_text = sash.window(order_by=["t", "v"]).rows(3).agg(**last)
    assert by_text(given)["all"].to_pylist() == ["abc", "a", "ab"]


@pytest.mark.usefixtures("interpreted")
def test_types_that_need_a_detour_come_back_as_they_went():
    ends = sash.window(order_by="t").rows(2).agg(old=sash.first("v"), n=sash.count("v"))
    identities = pa.array([bytes(16), bytes(range(16))], pa.uuid())
    assert ends(pa.table({"t": [1, 2], "v": identities}))["old"].type == pa.uuid()
    wide = ends(pl.DataFrame({"t": [1, 2], "v": pl.Series([2**100, 1], dtype=pl.Int128)}))["old"]
    assert (wide.dtype, wide.to_list()) == (pl.Int128, [2**100, 2**100])
    sparse = pd.DataFrame({"t": [1, 2], "v": pd.array([0, 7], "Sparse[int64]")})
    assert ends(sparse)["old"].tolist() == [0, 0]


@pytest.mark.usefixtures("interpreted")
def test_a_pandas_table_keeps_its_class_and_attributes():
    class Rides(pd.DataFrame):
        @property
        def _constructor(self):
            return Rides

    given = Rides({"t": [1, 2]})
    given.attrs["source"] = "a test"
    found = sash.window(order_by="t").rows(2).agg(n=sash.count())(given)
    assert type(found) is Rides
    assert found.attrs == {"source": "a test"}


@pytest.mark.usefixtures("interpreted")
def test_columns_that_cannot_be_told_apart_are_refused():
    count = sash.window(order_by="t").rows(2).agg(n=sash.count("v"))
    with pytest.raises(sash.DataError, match="2 columns of the name 'v'"):
        count(pa.table([[1], [2], [3]], names=["t", "v", "v"]))
    with pytest.raises(sash.DataError, match="no columns whose names are texts"):
        count(pd.DataFrame([[1, 2]]))
    with pytest.raises(sash.DeclarationError, match="by has one of that name too"):
        sash.window(by="t", order_by="t").tumbling(2).agg(n=sash.count())(pa.table({"t": [1]}))


@pytest.mark.usefixtures("interpreted")
def test_an_hour_is_an_hour_when_clocks_are_changed():
    """In Paris, 03:15 came 45 minutes after 01:30 on the last Sunday of March 2024."""
    walls = [datetime(2024, 3, 31, 1, 30), datetime(2024, 3, 31, 3, 15)]
    frame = pd.DataFrame({"wall": walls, "t": pd.DatetimeIndex(walls).tz_localize("Europe/Paris")})
    count = {"n": sash.count()}
    assert sash.window(order_by="t").range("1 hour").agg(**count)(frame)["n"].tolist() == [1, 2]
    assert sash.window(order_by="wall").range("1 hour").agg(**count)(frame)["n"].tolist() == [1, 1]
    hours = sash.window(order_by="t").tumbling("1 hour").agg(**count)(frame)
    assert hours["t"].dtype == frame["t"].dtype
    assert [str(each) for each in hours["t_start"]] == ["2024-03-31 01:00:00+01:00", "2024-03-31 03:00:00+02:00"]


@pytest.mark.usefixtures("interpreted")
def test_the_example_runs(capsys):
    runpy.run_path(str(Path(__file__).parents[2] / "examples" / "tables.py"))
    said = capsys.readouterr().out
    assert "Grove St 2018-06-01 09:30:00      8.0  B17      2  19.5     B29" in said
    assert "algorithm   two_stacks_lite" in said
