"""A key split into ranges has the answers of the whole key, wherever they begin. First without Spark, then with it."""

from __future__ import annotations

import warnings
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("pyspark")

import sash
from sash.frames.answering import Columns, Reader, arrange, bound_for
from sash.frames.arrow_tables import Source
from sash.frames.measuring import measure
from sash.spark.carrying import Memory
from sash.spark.cutting import Cutting
from sash.spark.joining import Joining
from sash.spark.looking import ROUNDS, Counting, Counts, between, look, refined, slices_of
from sash.spark.pieces import PIECE_BYTES
from sash.spark.reaching import HotKey
from sash.spark.slicing import BACK, FRONT, MIDDLE, OWN, SLOT, Packing, Split, unpacked
from sash.spark.sorting import in_order
from sash.testing.monoids import Affine
from tests.frames.tables import as_table, same, tables
from tests.frames.tables import in_order as rows_in_order
from tests.spark.rides import as_spark, by_id, rides

W = sash.window(order_by="t")
WINDOWS = {
    "rows": W.rows(3),
    "many rows": W.rows(9, min_rows=4),
    "range": W.range(3),
    "long range": W.range(11),
    "range upto": W.range(4, ties="upto", closed="right"),
    "long range upto": W.range(9, ties="upto", closed="right"),
    "closed left": W.range(9, closed="left"),
    "closed none": W.range(2, closed="none"),
    "lag": W.range(4, lag=2),
    "long lag": W.range(9, lag=5, closed="left"),
    "two bounds": W.range(8, rows=3),
    "two long bounds": W.range(14, rows=7, min_rows=2),
    "two bounds and a lag": W.range(9, rows=4, lag=3),
    "everything": W.everything(),
    "everything upto": W.everything(ties="upto", min_rows=3),
}
AGGREGATES = {
    "n": sash.count(),
    "some": sash.count().where("b"),
    "total": sash.sum("i").where("b"),
    "top": sash.max("x"),
    "first": sash.first("i"),
    "path": sash.agg(Affine, "i"),
}
edges_of = st.lists(st.integers(-14, 14), max_size=5, unique=True).map(sorted)


def hot(table, edges, order="t"):
    """A hot key of all rows, with ranges that begin at some values."""
    times = table[order].combine_chunks()
    last = max(time for time in times.to_pylist() if time is not None)
    numbers = measure(order, pa.array([*edges, last], times.type))
    return HotKey("all rows", numbers, str(last), tuple(counted(table, numbers.values[:-1], order).counts.tolist()))


def counted(table, starts, order="t"):
    """The rows of a table in stretches."""
    counting = Counting(order, [starts])
    for batch in table.to_batches():
        assert list(counting.push(batch)) == []
    (found,) = counting.finish()
    counts = np.zeros(len(starts) + 1, np.int64)
    counts[found.column(0).to_numpy()] = found.column(1).to_numpy()
    return Counts(starts, counts)


def split_of(specs, table, key, order="t", *, portable=True):
    """What the look would say of a table with one hot key."""
    numbers = measure(order, table[order].combine_chunks())
    present = numbers.values if numbers.valid is None else numbers.values[numbers.valid]
    even = between(present.min(), present.max(), 16)
    bounds = [bound_of(spec, table) for spec in specs]
    fine = counted(table, np.unique(np.concatenate([even, key.edges.values[:-1]])), order)
    able = (portable,) * len(specs)
    return Split((key,), (slices_of(key, fine, bounds, able),), able)


def bound_of(spec, table):
    reader = Reader(Source(table))
    rows = arrange(spec.window, reader)
    return bound_for(spec, reader, rows, Columns(reader, rows, Memory()))


def records_of(specs, table, key, *, size=4, portable=True, order="t", known=None):
    """What a range is sent, in order: packed by two tasks, and cut if windows are longer than a range."""
    split = split_of(specs, table if known is None else known, key, order, portable=portable)
    records, half = [], table.num_rows // 2
    for task, rows in enumerate((table.slice(0, half), table.slice(half))):
        packing = Packing(specs, split, task)
        records += [each for batch in rows.to_batches(size) for each in packing.push(batch)]
        records += packing.finish()
    records = in_order_of_ranges(records)
    if split.is_cut:
        cutting = Cutting(specs, split)
        cut = [each for batch in records.to_batches(max_chunksize=3) for each in cutting.push(batch)]
        records = in_order_of_ranges([*cut, *cutting.finish()])
    return split, records


def in_order_of_ranges(records):
    order = [(name, "ascending") for name in (SLOT, "stage", "lane", "source", "number")]
    return pa.Table.from_batches(records).sort_by(order)


def joined(specs, split, records):
    joining = Joining(specs, split, {"path": pa.int64()})
    out = [each for batch in records.to_batches(max_chunksize=3) for each in joining.push(batch)]
    out += joining.finish()
    return [row for batch in out for row in batch.to_pylist()]


@pytest.mark.parametrize("name", WINDOWS)
@given(rows=tables(null_times=True), edges=edges_of, portable=st.booleans())
def test_ranges_have_the_answers_of_the_whole_key(name, rows, edges, portable):
    table = as_table(rows_in_order(rows))
    if table["t"].null_count == table.num_rows:
        return
    spec = WINDOWS[name].agg(**AGGREGATES)
    split, records = records_of([spec], table, hot(table, edges), portable=portable)
    assert same(joined([spec], split, records), spec(table).to_pylist())


@given(rows=tables(), edges=edges_of)
def test_specs_together_are_split_side_by_side(rows, edges):
    table = as_table(rows_in_order(rows))
    if table.num_rows == 0:
        return
    specs = [W.rows(2).agg(n=sash.count(), last=sash.last("k")), W.range(20).agg(total=sash.sum("i"))]
    split, records = records_of(specs, table, hot(table, edges))
    assert same(joined(specs, split, records), sash.together(*specs)(table).to_pylist())


@pytest.mark.parametrize("kind", ["float", "timestamp", "date", "decimal"])
def test_any_order_that_has_distances_can_be_split(kind):
    values = {
        "float": (pa.float64(), [i / 7 for i in range(40)], 2.5),
        "timestamp": (pa.timestamp("us"), [datetime(2024, 1, 1, 0, i) for i in range(40)], "20 minutes"),
        "date": (pa.date32(), [date(2024, 1 + i // 28, 1 + i % 28) for i in range(40)], "20 days"),
        "decimal": (pa.decimal128(12, 2), [Decimal(i) / 4 for i in range(40)], 5),
    }
    arrow_type, times, span = values[kind]
    table = pa.table({"t": pa.array(times, arrow_type), "i": pa.array(range(40)), "s": [f"{i}" for i in range(40)]})
    spec = W.range(span).agg(total=sash.sum("i"), path=sash.agg(Affine, "i"))
    split, records = records_of([spec], table, hot(table, [times[10], times[13], times[30]]))
    assert joined([spec], split, records) == spec(table).to_pylist()


@pytest.mark.parametrize("window", [W.rows(5), W.rows(100), W.rows(400), W.range(100), W.range(400), W.everything()])
def test_a_row_is_shipped_at_most_twice_more_than_without_ranges_whatever_the_window(window):
    table = pa.table({"t": pa.array(range(800)), "i": pa.array(range(800)), "text": ["not needed"] * 800})
    spec = window.agg(total=sash.sum("i"))
    _, records = records_of([spec], table, hot(table, list(range(100, 800, 100))), size=50)
    shipped = dict.fromkeys((FRONT, BACK, OWN), 0)
    for stage, data in zip(records["stage"].to_pylist(), records["data"], strict=True):
        if stage != MIDDLE:
            rows = unpacked(data.as_buffer())
            shipped[stage] += rows.num_rows
            assert stage == OWN or rows.schema.names == ["t", "i"]
    assert shipped[OWN] == 800
    assert shipped[FRONT] + shipped[BACK] <= 800 + 100
    assert (records["stage"].to_pylist().count(MIDDLE) > 0) == (window not in (W.rows(5), W.rows(100), W.range(100)))


def shuffled(table, seed=1):
    return table.take(pa.array(np.random.default_rng(seed).permutation(table.num_rows)))


TIES = {
    "text": pa.array(["b", "a", None, "é", "Z", ""] * 10),
    "float": pa.array([2.5, float("nan"), None, -0.0, 1e300, -7.0] * 10),
    "decimal": pa.array(
        [Decimal("1e20"), Decimal(-3), None, Decimal(5), Decimal(7), Decimal(0)] * 10, pa.decimal128(38)
    ),
    "boolean": pa.array([True, None, False] * 20),
    "date": pa.array([date(2024, 1, 2), date(1960, 1, 1), None] * 20),
}


@pytest.mark.parametrize("kind", TIES)
def test_rows_are_sorted_outside_of_spark_as_it_sorts_them(kind, spark):
    numbers = pa.array(range(60))
    table = shuffled(pa.table({"t": pa.array([i // 12 for i in range(60)]), "tie": TIES[kind], "i": numbers}))
    sorted_rows = in_order(table.combine_chunks().to_batches()[0], ["t", "tie", "i"])
    df = spark.createDataFrame(table).coalesce(1).sortWithinPartitions("t", "tie", "i")
    assert sorted_rows.column("i").to_pylist() == [row["i"] for row in df.collect()]


@pytest.mark.parametrize("window", [W.rows(5), W.rows(300), W.range(4), W.range(100)], ids=repr)
def test_rows_may_be_read_in_any_order(window):
    table = pa.table({"t": pa.array([i // 3 for i in range(600)]), "i": pa.array(range(600))})
    spec = replace(window, order_by=("t", "i")).agg(path=sash.agg(Affine, "i"))
    split, records = records_of([spec], shuffled(table), hot(table, [20, 21, 90]), size=50)
    assert joined([spec], split, records) == spec(table).to_pylist()


@pytest.mark.parametrize("is_shuffled", [False, True])
def test_records_are_small_however_large_slices_are(is_shuffled):
    n = 30_000
    table = pa.table({"t": pa.array(range(n)), "i": pa.array(range(n)), "x": [f"{i:0100}" for i in range(n)]})
    spec = W.rows(1_000).agg(path=sash.agg(Affine, "i"))
    split, records = records_of([spec], shuffled(table) if is_shuffled else table, hot(table, [n // 2]), size=n)
    sizes = [len(each.as_buffer()) for each in records["data"]]
    assert PIECE_BYTES / 2 < max(sizes) < PIECE_BYTES * 1.1
    assert joined([spec], split, records) == spec(table).to_pylist()


@pytest.mark.parametrize(
    "numbers",
    [
        np.arange(10_000),
        np.concatenate([np.arange(10_000), [2**62], [-(2**62)]]),
        np.concatenate([np.full(5_000, 7), np.arange(5_000)]),
        np.linspace(0, 1, 10_000) ** 9,
        np.array([-1e308, 1e308, *np.linspace(0, 1, 9_998)]),
    ],
    ids=["even", "far off", "one value", "dense at 0", "far off floats"],
)
def test_ranges_are_even_wherever_rows_are(numbers):
    table = pa.table({"t": numbers})
    first, last, most = numbers.min(), numbers.max(), len(numbers) // 64
    fine = counted(table, between(first, last, 4_096))
    n_rounds = 1
    while len(finer := refined(fine, first, last, most)) > len(fine.starts) and n_rounds < ROUNDS:
        fine, n_rounds = counted(table, finer), n_rounds + 1
    ranges = fine.ranges(8)
    assert ranges.counts.sum() == len(numbers)
    assert ranges.counts.tolist() == counted(table, ranges.starts).counts.tolist()
    largest_of_one_value = np.unique(numbers, return_counts=True)[1].max()
    if numbers.max() < 1e300:  # between floats that far apart no few rounds find the others
        assert ranges.counts.max() <= max(largest_of_one_value, len(numbers) // 8) * 1.26


def test_a_table_that_has_changed_since_the_look_is_an_error():
    table = pa.table({"t": list(range(20)), "i": list(range(20))})
    key = hot(table, [5, 10])
    more = pa.concat_tables([table, pa.table({"t": [20], "i": [20]})])
    uncounted = replace(key, counts=None)
    for window, known, said in (
        (W.rows(4), key, "it had 10 rows and has 11"),
        (W.range(3), uncounted, "later than 19"),
    ):
        spec = window.agg(total=sash.sum("i"))
        split, records = records_of([spec], more, known, known=table)
        with pytest.raises(sash.DataError, match=f"changed between the look .* in range 2 .*{said}"):
            joined([spec], split, records)


def test_an_error_in_an_aggregate_names_it_and_the_key():
    @sash.aggregate(state=object)
    class Reciprocals:
        def lift(i):
            return 1 / i

        def combine(older, newer):
            return older + newer

    table = pa.table({"t": list(range(20)), "i": [*range(1, 20), 0]})
    spec = W.rows(3).agg(n=sash.count(), total=sash.agg(Reciprocals, "i"))
    split, records = records_of([spec], table, hot(table, [5, 10]))
    with pytest.raises(sash.DataError, match=r"total=Reciprocals\('i'\) raised ZeroDivisionError.*all rows, t from"):
        joined([spec], split, records)


# --- with Spark ------------------------------------------------------------------------------------

K = sash.window(by="k", order_by=["ts", "id"])
ALL = sash.window(order_by=["local", "id"])
RIDES = {
    "n": sash.count(),
    "total": sash.sum("i"),
    "top": sash.max("x"),
    "path": sash.agg(Affine, "i"),
    "who": sash.argmax("x", "id"),
}
ON_SPARK = {
    "rows, some keys": (K.rows(30), 3, 20),
    "range, some keys": (K.range("20 minutes"), 2, 20),
    "long range, all rows": (ALL.range("2 hours"), 8, None),
    "two bounds, all rows": (ALL.range("2 hours", rows=70, min_rows=3), 3, None),
    "everything, dates": (sash.window(order_by=["day", "id"]).everything(), 3, None),
    "one range": (ALL.rows(5), 1, None),
}


@pytest.fixture(scope="module")
def table():
    return rides()


@pytest.fixture(scope="module")
def df(spark, table):
    return as_spark(spark, table).repartition(3).cache()


@pytest.mark.parametrize("name", ON_SPARK)
def test_spark_answers_split_keys_as_whole_ones(name, table, df):
    window, ranges, hotter_than = ON_SPARK[name]
    spec = window.agg(**RIDES)
    split = spec.split_hot_keys(ranges, hotter_than=hotter_than)
    answered = split(df)
    assert answered.columns == [*df.columns, *RIDES]
    assert by_id(answered.toArrow()) == by_id(spec(table))


def test_only_keys_that_are_hot_are_split_and_only_if_it_pays(df, capsys):
    short, long = K.range("1 minute").agg(mid=sash.median("x")), K.range("3 hours").agg(mid=sash.median("x"))
    plans = {
        "hot": short.split_hot_keys(hotter_than=60),
        "cold": short.split_hot_keys(),
        "too wide": long.split_hot_keys(hotter_than=60),
        "not split": short.split_hot_keys().split_hot_keys(False),
    }
    n_passes = {}
    for name, spec in plans.items():
        spec(df).explain()
        n_passes[name] = capsys.readouterr().out.count("MapInArrow")
    assert n_passes == {"hot": 3, "cold": 1, "too wide": 1, "not split": 1}


KEYS = {
    "number": pa.array([7, -3, 7, 7] * 75, pa.int32()),
    "text": pa.array(["a", "é", "a", "a"] * 75),
    "null": pa.array([None, "b", None, None] * 75),
    "zeros": pa.array([0.0, 2.5, -0.0, 0.0] * 75),
    "bytes": pa.array([b"x", b"", b"x", b"x"] * 75),
}


@pytest.mark.parametrize("kind", KEYS)
def test_rows_of_a_hot_key_come_back_as_they_were_whatever_the_key_is(kind, spark):
    keys = KEYS[kind]
    table = pa.table(
        {"i": pa.array(range(300)), "k": keys, "t": pa.array([i * 37 % 300 for i in range(300)]), "j": keys}
    )
    spec = sash.window(by="k", order_by="t").rows(40).agg(total=sash.sum("i"), path=sash.agg(Affine, "i"))
    answered = spec.split_hot_keys(3)(spark.createDataFrame(table).repartition(2))
    assert answered.columns == [*table.column_names, "total", "path"]
    rows = sorted(answered.toArrow().to_pylist(), key=lambda row: row["i"])
    assert [repr(row) for row in rows] == [repr(row) for row in spec(table).to_pylist()]


def test_rows_are_counted_alike_by_spark_and_by_python(spark):
    moments = np.concatenate([np.arange(-500, 500) * 999_983, [2**40, -(2**41)]])
    columns = {
        "int": pa.array(moments),
        "ts": pa.array(moments, pa.timestamp("us", "UTC")),
        "local": pa.array(moments, pa.timestamp("us")),
        "day": pa.array((moments // 10**6).astype(np.int32)).cast(pa.date32()),
        "x": pa.array(moments / 7),
    }
    nothing = pa.table({name: pa.nulls(9, column.type) for name, column in columns.items()})
    df = spark.createDataFrame(pa.concat_tables([pa.table(columns), nothing]).append_column("i", pa.array(range(1011))))
    counts = {}
    for name in columns:
        found = look([sash.window(order_by=[name, "i"]).rows(3).agg(n=sash.count()).split_hot_keys(4)], df, "UTC")
        (key,) = found.split.keys
        assert key.counts == tuple(counted(df.toArrow(), key.edges.values[:-1], name).counts.tolist())
        counts[name] = key.counts
    assert max(max(each) for each in counts.values()) < 300, counts


def test_a_tie_breaker_that_only_spark_can_sort_is_refused(spark):
    df = spark.range(10).selectExpr("id", "CAST(id AS string) COLLATE UTF8_LCASE AS name", "struct(id) AS nested")
    for tie, said in (("name", "collation UTF8_LCASE"), ("nested", "sorted by Spark alone")):
        spec = sash.window(order_by=["id", tie]).rows(3).agg(n=sash.count())
        with pytest.raises(sash.UnsupportedError, match=f"cannot be split: .*{said}"):
            spec.split_hot_keys(2)(df)


def test_wide_rows_are_put_in_order_by_spark_and_narrow_ones_by_the_worker(df, capsys):
    spec = K.rows(30).agg(total=sash.sum("i")).split_hot_keys(3, hotter_than=60)
    n_sorts = []
    for columns in (["k", "ts", "id", "i", "s"], ["k", "ts", "id", "i"]):
        spec(df.select(*columns)).explain()
        n_sorts.append(capsys.readouterr().out.count("Sort ["))
    assert n_sorts[0] == n_sorts[1] + 1


def test_times_at_the_change_of_clocks_are_in_their_ranges(spark, configured):
    configured(zone="America/New_York")
    spark_rows = spark.range(300).selectExpr(
        "id",
        "timestamp_seconds(1730600000 + 60 * id) AS ts",
        "CAST(timestamp_seconds(60 * id) AS timestamp_ntz) AS local",
    )
    for order in ("ts", "local"):
        spec = sash.window(order_by=order).range("90 minutes").agg(n=sash.count())
        found = {row["id"]: row["n"] for row in spec.split_hot_keys(4)(spark_rows).collect()}
        assert found == {i: min(i, 90) + 1 for i in range(300)}


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        (K.session("5 minutes").agg(n=sash.count()), "session"),
        (K.tumbling("1 hour").agg(n=sash.count()), "elsewhere than at rows"),
        (K.rows(3).agg(n=sash.count()).presorted(), "presorted"),
        (sash.window(order_by="s").rows(3).agg(n=sash.count()), "no number and no time"),
        (K.everything().agg(mid=sash.median("x")), "has no fixed width"),
        (K.everything().agg(latest=sash.last("s")), "no numbers"),
    ],
    ids=["session", "grid", "presorted", "text", "median", "payload"],
)
def test_what_cannot_be_split_is_refused_or_left_whole(spec, said, df):
    with pytest.raises(sash.UnsupportedError, match=f"cannot be split: .*{said}"):
        spec.split_hot_keys(4)(df)
    assert said in str(spec.split_hot_keys().explain(df))
    assert spec.split_hot_keys()(df).columns == spec.split_hot_keys(False)(df).columns


def test_a_number_of_ranges_is_checked_and_shown():
    spec = W.rows(3).agg(n=sash.count())
    for ranges in (0, 65, True, "many", 2.5):
        with pytest.raises(sash.DeclarationError, match="split_hot_keys takes 'auto', False or a number"):
            spec.split_hot_keys(ranges)
    assert repr(spec.split_hot_keys(8, hotter_than=10)).endswith(".split_hot_keys(8, hotter_than=10)")
    assert spec.split_hot_keys(8, hotter_than=3).split_hot_keys(False) == spec.split_hot_keys(False)
    assert sash.together(spec).split_hot_keys().specs[0] == spec.split_hot_keys()


def test_explain_tells_how_hot_keys_are_found_and_split(df):
    text = str(K.rows(3).agg(n=sash.count()).split_hot_keys().explain(df))
    for said in ("hot keys", "more than 1,000,000 rows", "a task for each range"):
        assert said in text
    assert "8 ranges" in str(K.rows(3).agg(n=sash.count()).split_hot_keys(8).explain(df))


def test_all_rows_in_one_task_is_said_once_to_whoever_did_not_ask_for_it(df):
    with pytest.warns(UserWarning, match=r"one task.*split_hot_keys"):
        ALL.rows(3).agg(n=sash.count())(df)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        ALL.rows(3).agg(n=sash.count()).split_hot_keys()(df)
        ALL.rows(3).agg(n=sash.count()).split_hot_keys(False)(df)
        K.rows(3).agg(n=sash.count())(df)
