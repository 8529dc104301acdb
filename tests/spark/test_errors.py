"""What is wrong is said before a job starts; what goes wrong in a task is said with key and row."""

from __future__ import annotations

import threading

import pyarrow as pa
import pytest
from pyspark.errors import PythonException

import sash

W = sash.window(by="k", order_by="t")


@pytest.fixture(scope="module")
def df(spark):
    return spark.createDataFrame(
        pa.table({"k": ["a", "a", "b"], "t": [1, 2, 1], "x": [4.0, 1.0, 0.0], "s": ["u", "v", "w"]})
    )


@sash.aggregate(state=object)
class Reciprocals:
    """Fails at zero."""

    def lift(x):
        return 1 / x

    def combine(older, newer):
        return older + newer


@pytest.mark.parametrize(
    ("spec", "error", "said"),
    [
        (W.rows(2).agg(n=sash.sum("xx")), sash.UnknownNameError, r"sum\('xx'\): .*Did you mean 'x'"),
        (sash.window(by="kk", order_by="t").rows(2).agg(n=sash.count()), sash.UnknownNameError, "by: .*'kk'"),
        (W.rows(2).agg(n=sash.sum("s")), sash.DataError, "Cast the column to a number"),
        (W.range("1 hour").agg(n=sash.count()), sash.DeclarationError, "whose unit only you know"),
        (W.rows(2).agg(x=sash.count()), sash.DeclarationError, "'x' would replace a column"),
        (W.tumbling(2).agg(t=sash.count()), sash.DeclarationError, "'t' would replace a column"),
        (W.since("x").agg(n=sash.count()), sash.DataError, "needs a boolean column"),
    ],
    ids=["column", "by", "type", "unit", "name", "time", "mark"],
)
def test_errors_come_before_a_job_starts(spec, error, said, df):
    with pytest.raises(error, match=said):
        spec(df)


def test_an_aggregate_that_holds_what_cannot_be_sent_is_named_before_a_job_starts(df):
    lock = threading.Lock()

    @sash.aggregate(state=object)
    class Locked:
        def lift(x):
            with lock:
                return x

        def combine(older, newer):
            return older + newer

    with pytest.raises(sash.DeclarationError, match=r"total=Locked\('x'\) cannot be sent .* locks"):
        W.rows(2).agg(total=sash.agg(Locked, "x"))(df)


def test_an_aggregate_that_fails_on_made_up_rows_is_told_so(df):
    @sash.aggregate(state=object)
    class Picky:
        def lift(s):
            return {"u": 1, "v": 2, "w": 3}[s]

        def combine(older, newer):
            return older + newer

    with pytest.raises(sash.DeclarationError, match=r"made-up rows.*KeyError"):
        W.rows(2).agg(total=sash.agg(Picky, "s"))(df)


def test_an_error_in_an_aggregate_names_it_and_the_key_and_the_row(df):
    answered = W.rows(2).agg(n=sash.count(), total=sash.agg(Reciprocals, "x"))(df)
    with pytest.raises(PythonException, match=r"total=Reciprocals\('x'\) raised ZeroDivisionError.*k='b', t=1"):
        answered.collect()


def test_a_mark_that_falls_names_the_row(df):
    answered = W.delta("x", 1).agg(n=sash.count())(df)
    with pytest.raises(PythonException, match=r"falls to 1.0 at k='a', t=2. Order by it"):
        answered.collect()


def test_explain_tells_the_steps_of_spark_and_those_of_a_pass(df):
    text = str(W.rows(5).agg(total=sash.sum("x")).explain(df))
    for said in ("by k, into 2 partitions", "by k, t", "over Arrow batches of at most", "two_stacks_lite", "x double"):
        assert said in text
    assert "one task does it all" in str(sash.window(order_by="t").rows(5).agg(n=sash.count()).explain(df))
    assert "vouches" in str(W.rows(5).agg(n=sash.count()).presorted().explain(df))
