"""Values of every type: what an aggregate takes, and the type of its answers."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import sash
from sash.errors import DataError, SumOverflowError

pytestmark = pytest.mark.usefixtures("interpreted")

W = sash.window(order_by="t").rows(2)
DAY = timedelta(days=1)

# In each column, the second value is the least, the third the greatest, and the last is null.
ORDERED = {
    "bool": pa.array([True, False, True, None]),
    "int8": pa.array([0, -128, 127, None], pa.int8()),
    "int64": pa.array([0, -(2**63), 2**63 - 1, None]),
    "uint16": pa.array([5, 0, 2**16 - 1, None], pa.uint16()),
    "uint64": pa.array([5, 0, 2**63 - 1, None], pa.uint64()),
    "float16": pa.array(np.array([0, -1.5, 2, 0], np.float16), mask=np.array([0, 0, 0, 1], bool)),
    "float32": pa.array([0, -1.5, 2, None], pa.float32()),
    "float64": pa.array([0, -np.inf, np.nan, None]),
    "date32": pa.array([date(1970, 1, 1), date(1, 1, 1), date(9999, 12, 31), None]),
    "date64": pa.array([date(1970, 1, 1), date(1960, 1, 1), date(2100, 1, 1), None], pa.date64()),
    "timestamp[s]": pa.array([0, -1, 2**35, None], pa.timestamp("s")),
    "timestamp[ns, zone]": pa.array([0, -1, 2**62, None], pa.timestamp("ns", "Asia/Tokyo")),
    "time64": pa.array([time(12), time(0), time(23, 59), None]),
    "time32": pa.array([43_200, 0, 86_399, None], pa.time32("s")),
    "duration": pa.array([timedelta(0), -DAY, DAY, None]),
    "decimal": pa.array([Decimal("0.00"), Decimal("-9.99"), Decimal("9.99"), None]),
    "wide decimal": pa.array([Decimal(0), Decimal(-(10**30)), Decimal(10**30), None], pa.decimal128(38, 2)),
    "decimal256": pa.array([Decimal(0), Decimal(-1), Decimal(1), None], pa.decimal256(40, 3)),
    "string": pa.array(["b", "", "é", None]),
    "large string": pa.array(["b", "", "é", None], pa.large_string()),
    "string view": pa.array(["b", "", "é", None], pa.string_view()),
    "binary": pa.array([b"b", b"", b"\xff", None]),
    "fixed binary": pa.array([b"bb", b"aa", b"cc", None], pa.binary(2)),
    "category": pa.array(["b", "a", "c", None]).dictionary_encode(),
}
UNORDERED = {
    "list": pa.array([[1], [], [2, 3], None]),
    "struct": pa.array([{"a": 1}, {"a": 2}, {"a": 3}, None]),
    "map": pa.array([[("a", 1)], [], [("b", 2)], None], pa.map_(pa.string(), pa.int64())),
}
EVERY = ORDERED | UNORDERED


def table_of(column):
    return pa.table({"t": range(len(column)), "v": column, "p": range(len(column))})


def plain(arrow_type):
    """Categories are answered as what they stand for where they are compared."""
    return arrow_type.value_type if pa.types.is_dictionary(arrow_type) else arrow_type


@pytest.mark.parametrize("name", ORDERED)
def test_extremes_have_the_type_of_their_column(name):
    column = ORDERED[name]
    found = W.agg(low=sash.min("v"), high=sash.max("v"), arg=sash.argmax("v", "p"))(table_of(column))
    assert found.schema.field("low").type == plain(column.type)
    assert repr(found["low"].to_pylist()) == repr([column[k].as_py() for k in (0, 1, 1, 2)])
    assert repr(found["high"].to_pylist()) == repr([column[k].as_py() for k in (0, 0, 2, 2)])
    assert found["arg"].to_pylist() == [0, 0, 2, 2]


@pytest.mark.parametrize("name", EVERY)
def test_ends_and_payloads_have_the_type_of_their_column(name):
    column = EVERY[name]
    answers = {
        "old": sash.first("v"), "young": sash.last("v"), "second": sash.nth_youngest("v", 2),
        "arg": sash.argmin("p", "v"), "all": sash.collect("v"), "n": sash.count("v"),
    }  # fmt: skip
    found = W.agg(**answers)(table_of(column))
    for answer, places in {"old": (0, 0, 1, 2), "young": (0, 1, 2, 2), "arg": (0, 0, 1, 2)}.items():
        assert found.schema.field(answer).type == column.type
        assert repr(found[answer].to_pylist()) == repr([column[k].as_py() for k in places])
    assert repr(found["second"].to_pylist()) == repr([None, column[0].as_py(), column[1].as_py(), None])
    assert found.schema.field("all").type.value_type == column.type
    assert repr(found["all"].to_pylist()[2]) == repr([column[1].as_py(), column[2].as_py()])
    assert found["n"].to_pylist() == [1, 2, 2, 1]


@pytest.mark.parametrize("name", EVERY)
def test_different_values_are_counted(name):
    found = (
        sash.window(order_by="t")
        .everything()
        .agg(n=sash.distinct("v"))(table_of(pa.concat_arrays([EVERY[name], EVERY[name]])))
    )
    assert found["n"].to_pylist()[-1] == (2 if name == "bool" else 3)


def test_a_count_is_never_null_unless_short_windows_are():
    table = table_of(pa.array([1, None]))
    answers = {"n": sash.count(), "d": sash.distinct("v"), "top": sash.max("v")}
    assert [W.agg(**answers)(table).schema.field(name).nullable for name in answers] == [False, False, True]
    short = sash.window(order_by="t").rows(2, min_rows=2).agg(**answers)(table)
    assert short.select(list(answers)).to_pylist() == [{"n": None, "d": None, "top": None}, {"n": 2, "d": 1, "top": 1}]
    assert short.schema.field("n").nullable


def test_the_mode_of_texts_is_a_text():
    texts = pa.array(["b", "a", "b", None, "a", "a"])
    found = sash.window(order_by="t").everything().agg(mode=sash.mode("v"))(table_of(texts))
    assert found["mode"].to_pylist() == ["b", "a", "b", "b", "a", "a"]


@pytest.mark.parametrize(
    ("values", "totals", "arrow_type"),
    [
        (pa.array([True, True, None]), [1, 2, 1], pa.int64()),
        (pa.array([100, 100, None], pa.int8()), [100, 200, 100], pa.int64()),
        (pa.array([2**32, 1, None], pa.uint64()), [2**32, 2**32 + 1, 1], pa.int64()),
        (pa.array([0.5, 0.25, None], pa.float32()), [0.5, 0.75, 0.25], pa.float64()),
        (pa.array([Decimal("9.99"), Decimal("0.02"), None]), [Decimal("9.99"), Decimal("10.01"), Decimal("0.02")],
         pa.decimal128(13, 2)),
        (pa.array([Decimal(10**30), Decimal(1), None], pa.decimal128(38, 0)),
         [Decimal(10**30), Decimal(10**30 + 1), Decimal(1)], pa.decimal128(38, 0)),
        (pa.array([DAY, DAY, None]), [DAY, 2 * DAY, DAY], pa.duration("us")),
    ],
)  # fmt: skip
def test_sums_widen_and_keep_what_they_are_sums_of(values, totals, arrow_type):
    found = W.agg(total=sash.sum("v"))(table_of(values))["total"]
    assert found.type == arrow_type
    assert found.to_pylist() == totals


def test_an_integer_sum_beyond_64_bits_raises():
    with pytest.raises(SumOverflowError, match="does not fit into the 64 bits"):
        W.agg(total=sash.sum("v"))(table_of(pa.array([2**63 - 1, 1])))


@pytest.mark.parametrize(
    ("values", "wanted"),
    [
        (pa.array([date(2024, 1, 1), date(2024, 1, 3)]), 2 * DAY),
        (pa.array([datetime(2024, 1, 1), datetime(2024, 1, 3)]), 2 * DAY),
        (pa.array([DAY, 3 * DAY]), 2 * DAY),
        (pa.array([Decimal("1.5"), Decimal("4.0")]), Decimal("2.5")),
        (pa.array([3, 10], pa.int8()), 7),
        (pa.array([0.5, 2.0]), 1.5),
    ],
)
def test_a_range_of_times_is_a_duration(values, wanted):
    assert W.agg(range=sash.range("v"))(table_of(values))["range"].to_pylist()[1] == wanted


def test_means_of_decimals_are_floats_and_means_of_durations_are_durations():
    decimals, durations = pa.array([Decimal("1.5"), Decimal("2.5")]), pa.array([DAY, 2 * DAY])
    for name in ("mean", "median"):
        answers = W.agg(m=getattr(sash, name)("v"))
        assert answers(table_of(decimals))["m"].to_pylist() == [1.5, 2.0]
        assert answers(table_of(durations))["m"].to_pylist() == [DAY, 1.5 * DAY]


def test_answers_of_several_fields_are_structs():
    found = W.agg(line=sash.trend("t", "v"), m4=sash.m4("v"))(table_of(pa.array([1.0, 3.0, None])))
    assert found["line"].to_pylist() == [None, {"slope": 2.0, "intercept": 1.0}, None]
    assert found["m4"].to_pylist()[1] == {"first": 1.0, "min": 1.0, "max": 3.0, "last": 3.0}
    times = pa.array([date(2024, 1, 2), date(2024, 1, 1)])
    assert W.agg(m4=sash.m4("v"))(table_of(times))["m4"].to_pylist()[1] == {
        "first": date(2024, 1, 2), "min": date(2024, 1, 1), "max": date(2024, 1, 2), "last": date(2024, 1, 1),
    }  # fmt: skip


def test_records_of_no_rows_and_of_nulls_are_structs_all_the_same():
    answers = W.agg(line=sash.trend("t", "v"), m4=sash.m4("v"), total=sash.sum("v"))
    for column in (pa.array([], pa.int64()), pa.array([None, None], pa.int64())):
        found = answers(table_of(column))
        assert [str(found.schema.field(name).type).split("<")[0] for name in ("line", "m4", "total")] == [
            "struct", "struct", "int64",
        ]  # fmt: skip
        assert found["m4"].to_pylist() == found["line"].to_pylist() == [None] * len(column)


def test_the_longest_run_is_told_in_the_type_of_its_time():
    given = pa.table({"t": pa.array([0, 60, 120], pa.timestamp("s")), "v": ["a", "b", "a"]})
    found = sash.window(order_by="t").everything().agg(run=sash.longest_increasing_run("t", "v"))(given)
    assert found["run"].to_pylist()[-1] == {
        "start": datetime(1970, 1, 1), "end": datetime(1970, 1, 1, 0, 1), "span": timedelta(minutes=1), "length": 2,
    }  # fmt: skip


def test_the_greatest_few_of_times_are_a_list_of_times():
    days = [date(2024, 1, day) for day in (2, 1, 3)]
    found = sash.window(order_by="t").everything().agg(top=sash.top_k("v", 2))(table_of(pa.array(days)))
    assert found["top"].to_pylist() == [days[:1], [days[0], days[1]], [days[2], days[0]]]


def test_rows_of_numbers_are_lists():
    found = W.agg(h=sash.histogram("v", 0, 2, 2))(table_of(pa.array([0.5, 1.5, None])))
    assert found["h"].to_pylist() == [[0, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 0]]


def test_texts_and_lists_are_joined():
    assert W.agg(s=sash.concat("v"))(table_of(pa.array(["a", "b", None])))["s"].to_pylist() == ["a", "ab", "b"]
    lists = pa.array([[1], [2, 3], None])
    assert W.agg(s=sash.concat("v"))(table_of(lists))["s"].to_pylist() == [[1], [1, 2, 3], [2, 3]]


def test_sketches_take_texts():
    texts = pa.array(["a", "b", "a", None])
    found = sash.window(order_by="t").everything().agg(n=sash.hyperloglog("v"))(table_of(texts))["n"].to_pylist()
    assert [round(each) for each in found] == [1, 2, 2, 2]


@sash.aggregate(state=object)
class Longest:
    """The longest text."""

    def lift(x):
        return x

    def combine(older, newer):
        return newer if len(newer) > len(older) else older


def test_an_aggregate_of_ones_own_gets_python_values_and_answers_as_it_likes():
    found = W.agg(s=sash.agg(Longest, "v"))(table_of(pa.array(["aa", "b", "ccc", None])))
    assert found["s"].to_pylist() == ["aa", "aa", "ccc", "ccc"]
    assert W.agg(d=sash.agg(Longest, "v"))(table_of(pa.array([[1, 2], [3]])))["d"].to_pylist() == [[1, 2], [1, 2]]


def test_a_column_of_nothing_but_nulls_answers_null():
    found = W.agg(n=sash.count("v"), s=sash.sum("v"), m=sash.max("v"), f=sash.first("v"))(table_of(pa.nulls(2)))
    assert found.select(["n", "s", "m", "f"]).to_pylist() == [{"n": 0, "s": None, "m": None, "f": None}] * 2


@pytest.mark.parametrize(
    ("aggregate", "values", "told"),
    [
        (sash.sum("v"), ["a"], "sum('v'): the column 'v' has the type string, but sum takes numbers, decimals or dur"),
        (sash.sum("v"), ["a"], "to count its values use count('v'), to join texts concat"),
        (sash.mean("v"), [datetime(2024, 1, 1)], "Subtract a fixed time from it first"),
        (sash.var("v"), [DAY], "Turn it into a number first"),
        (sash.max("v"), [[1]], "takes values with an order"),
        (sash.range("v"), ["a"], "takes values that can be subtracted"),
        (sash.any("v"), [1], "takes booleans. Compare the column"),
        (sash.bit_or("v"), [1.0], "takes integers. Cast the column"),
        (sash.concat("v"), [1], "takes texts, bytes or lists"),
        (sash.count().where("v"), [1], "needs a boolean column, but it is int64"),
    ],
)  # fmt: skip
def test_an_aggregate_on_a_wrong_type_says_what_it_takes(aggregate, values, told):
    with pytest.raises(DataError) as caught:
        W.agg(answer=aggregate)(table_of(pa.array(values)))
    assert told in str(caught.value)
