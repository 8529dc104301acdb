"""The code of a user's functions is part of the signature: other code is refused, the same is known anywhere."""

from __future__ import annotations

import os
import subprocess
import sys

import pyarrow as pa
import pytest

import sash
from sash.streams import chunks, large, signing
from sash.streams.plans import Plan
from sash.streams.shard import HEAD, Head, take
from tests.streams.simulating import Memory, with_hash

pytestmark = pytest.mark.usefixtures("interpreted")

ROWS = pa.schema([("id", pa.int64()), ("k", pa.int64()), ("ts", pa.timestamp("us"))])
W = sash.window(by="k", order_by="ts")


def rows(*ids):
    return with_hash(pa.Table.from_pylist([{"id": n, "k": 1, "ts": 1_000 * n} for n in ids], ROWS), ["k"])


def twice(x):
    return 2 * x


def thrice(x):
    return 3 * x


def summing(*, factor=1, change=twice, shown=1, state="i8"):
    """A sum of one's own; `shown` is seen in answers, and all others are in what is kept."""

    @sash.aggregate(state={"a": state})
    class Total:
        identity = (0,)

        def lift(x):
            return (factor * change(x) if x not in {"a", "b", 7} else 0,)

        def combine(older, newer):
            return (older[0] + newer[0],)

        def lower(partial):
            return partial[0] * shown

    return plan_of(W.range("1 hour").agg(n=sash.agg(Total, "id")))


def keeping(n):
    def at_most(total, old):
        return total.n - old.n >= n

    return plan_of(W.evict_while(at_most, n=sash.count()).agg(n=sash.count()), emit="final")


def plan_of(spec, emit="eager"):
    return Plan((spec.stream(emit=emit),), ROWS, {"n": pa.int64()})


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (summing(), summing(factor=5), r"n=Total\('id'\)"),
        (summing(), summing(change=thrice), r"n=Total\('id'\)"),
        (summing(), summing(state="f8"), r"n=Total\('id'\)"),
        (keeping(3), keeping(5), "the policy at_most"),
    ],
    ids=["constant", "function", "state", "policy"],
)
def test_state_is_not_gone_on_with_by_other_functions_of_the_same_name(before, after, said, monkeypatch):
    monkeypatch.setattr(chunks, "ROWS", 3)
    monkeypatch.setattr(large, "LARGE", 5)
    blocks = Memory()
    take(before, blocks, rows(*range(30)), None)
    with pytest.raises(sash.FormatError, match=rf"the code of {said}, by \w+-\d+ was \w+, now it is"):
        take(after, blocks.copy(), rows(30), None)
    take(before, blocks, rows(30), None)


def test_what_is_made_of_partials_when_they_are_answered_may_change():
    blocks = Memory()
    take(summing(), blocks, rows(1, 2), None)
    (table,) = take(summing(shown=100), blocks, rows(3), None).tables
    assert table.column("n").to_pylist() == [2 * (1 + 2 + 3) * 100]


def test_code_is_compared_only_with_code_of_the_same_python(monkeypatch):
    blocks = Memory()
    take(summing(), blocks, rows(1, 2), None)
    monkeypatch.setattr(signing, "VERSION", "cpython-999")
    take(summing(factor=5), blocks, rows(3), None)
    assert [name for name in Head.load(blocks[HEAD, 0]).signature if "code" in name] == [
        "the code of n=Total('id'), by cpython-999"
    ]
    with pytest.raises(sash.FormatError, match="the code of"):
        take(summing(), blocks, rows(4), None)


def test_aggregates_and_policies_of_sash_have_names_enough():
    specs = [W.rows(3).agg(n=sash.max("id")), W.evict_while(sash.policies.at_most(3)).agg(n=sash.count())]
    assert [signing.codes_of((spec,)) for spec in specs] == [{}, {}]


def test_the_same_code_has_the_same_digest_in_another_process():
    said = "from tests.streams import test_signing as t; print(t.summing().signature, t.keeping(3).signature)"
    found = {
        subprocess.run(
            [sys.executable, "-c", said], env={**os.environ, "PYTHONHASHSEED": seed}, text=True, check=True,
            capture_output=True,
        ).stdout
        for seed in ("1", "2")
    }  # fmt: skip
    assert found == {f"{summing().signature} {keeping(3).signature}\n"}


def test_functions_sent_to_a_worker_have_the_digest_they_had():
    cloudpickle = pytest.importorskip("pyspark.cloudpickle")
    plan = summing()
    assert signing.codes_of(cloudpickle.loads(cloudpickle.dumps(plan.specs))) == signing.codes_of(plan.specs)
