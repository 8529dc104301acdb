"""Bars of DESIGN.md as claims: each suite that measures one claims it, and a row beyond the bar breaks it."""

import sys

import pytest

pytest.importorskip("pyarrow")

from bench import running
from bench.registry import EXPERIMENTS, ON_SPARK, SUITES

WITHIN = {  # suite: what it claims of, and rows within its bars
    "slide": [
        *({"what": name, "rows": 2**17, "to a copy": 3.9, "to a new copy": 2.9} for name in ("max", "sum", "geomean")),
        {"what": "a user's max", "rows": 16, "to built-in": 1.4, "noise": 0.1},
    ],
    "products": [{"what": "2 together", "together/apart": 0.9}],
    "disorder": [
        *({"what": "in order, min_arity 8", "rows": n, "fiba ns": ns} for n, ns in ((2**10, 20.0), (2**22, 29.0))),
        {"what": "bulk, combines", "rows": 2**15, "m": 256, "evict at once": 82, "evict singly": 945},
    ],
    "combination": [{"what": "sum", "d": 16, "combined/alone": 0.85}],
    "citibike": [
        *({"what": "sum, stop-time order", "span": span, "ns": ns} for span, ns in (("1 day", 60.0), ("4 days", 80.0))),
    ],
    "mta": [{"what": "constant size", "n": "2^10", "amta to two_stacks_lite": 1.2}],
    "tables": [{"what": "sum", "keys": 1, "window": "1 hour", "pandas": 3.6, "polars": 1.6, "duckdb": 75.0}],
    "rounds": [
        {"what": "daba_lite, most combines", "rows": 1024, "rounds": 10, "insert": 3, "evict": 2, "query": 1},
        {"what": "daba_lite, single rounds", "rows": 1024, "median ns": 5.0, "worst ns": 45.0, "worst/median": 9.0},
    ],
    "stores": [
        {"what": "bulk eviction, lmdb", "n": "2^23", "evicted": 2**22, "ms": 9.0},
        {"what": "2^25 of 16 bytes", "in": "lmdb", "peak_mb": 300},
    ],
    "spark": [
        {"what": "1 keys, 100 rows", "x identity": 1.4, "tree / ours": 3.0},
        {"what": "1 keys, all lengths", "the same of ratios": 1.3},
        {"what": "1 key, 1000 of 300000 rows", "default / ours": 11.0},
        {"what": "1 key, 10000 of 150000 rows", "default / ours": 110.0},
        {"what": "in Python: Mean, 1,000 rows", "x identity": 1.1, "pandas_udf / ours": 31.0, "arrow_udf / ours": 31.0},
        {
            "what": "in Python: LargestFall, 10 rows",
            "x identity": 1.1,
            "pandas_udf / ours": 31.0,
            "arrow_udf / ours": 31.0,
        },
        {"what": "1 key in 8 ranges, 1,000 rows", "cpu": 1.4, "clock": 0.9},
        {"what": "tasks of 8 ranges, 1,000 rows", "tasks": 0.2},
    ],
    "stream": [
        {"what": "per event, final, 1e+06 rows", "x stateless": 1.9, "noise": 0.1},
        {"what": "10,000 keys x 1 row, final", "us a key": 50.0},
        {"what": "1,000 rows, state of 1e+07, 10 keys", "x small state": 1.2},
        {"what": "range/slide 1", "x theirs": 1.5},
        {"what": "range/slide 3600", "x theirs": 2_000.0},
    ],
}
BEYOND = [
    ("slide", "to a copy", 4.1), ("slide", "to a new copy", 4.1), ("slide", "to built-in", 1.6),
    ("products", "together/apart", 1.1),
    ("disorder", "evict singly", 80), ("combination", "combined/alone", 1.1),
    ("mta", "amta to two_stacks_lite", 2.1), ("tables", "pandas", 0.9), ("tables", "duckdb", "differs"),
    ("rounds", "insert", 4), ("rounds", "worst/median", 11.0), ("stores", "ms", 11.0),
    ("stores", "peak_mb", 600), ("spark", "x identity", 1.6), ("spark", "tree / ours", 0.9),
    ("spark", "default / ours", 9.0), ("spark", "arrow_udf / ours", 13.5), ("spark", "tasks", 0.4),
    ("spark", "cpu", 1.6), ("spark", "clock", 1.1), ("stream", "x stateless", 2.1), ("stream", "us a key", 61.0),
    ("stream", "x small state", 1.6), ("stream", "x theirs", 0.9),
]  # fmt: skip


@pytest.mark.parametrize("suite", WITHIN)
def test_rows_within_every_bar_hold(suite):
    claims = EXPERIMENTS[suite].claims(WITHIN[suite])
    assert claims
    assert [claim.said for claim in claims if not claim.holds] == []


@pytest.mark.parametrize(("suite", "column", "value"), BEYOND)
def test_a_row_beyond_a_bar_breaks_it(suite, column, value):
    rows = [{**row, column: value} if column in row else row for row in WITHIN[suite]]
    assert not all(claim.holds for claim in EXPERIMENTS[suite].claims(rows))


@pytest.mark.parametrize("suite", WITHIN)
def test_a_bar_without_rows_does_not_hold(suite):
    assert not any(claim.holds for claim in EXPERIMENTS[suite].claims([]))


def test_finger_trees_that_grow_slower_with_the_window_break_their_bar():
    rows = [{**row, "fiba ns": 31.0} if row.get("rows") == 2**22 else row for row in WITHIN["disorder"]]
    assert not all(claim.holds for claim in EXPERIMENTS["disorder"].claims(rows))


def test_rides_that_take_longer_in_longer_windows_break_their_bar():
    rows = [{**row, "ns": 91.0} if row["span"] == "4 days" else row for row in WITHIN["citibike"]]
    assert not EXPERIMENTS["citibike"].claims(rows)[0].holds


def test_without_rides_nothing_is_claimed_of_them():
    assert EXPERIMENTS["citibike"].claims([{"what": "no data"}]) == []


def test_every_suite_says_whether_its_bars_hold():
    assert set(SUITES) | set(ON_SPARK) == set(WITHIN)


@pytest.mark.parametrize("name", ["spark", "stream"])
def test_a_module_on_spark_runs_as_its_name_does(name, monkeypatch):
    asked = []
    monkeypatch.setattr(running, "main", lambda names, **how: asked.append((names, how)) or 0)
    monkeypatch.setattr(sys, "argv", ["bench", "--quick"])
    module = pytest.importorskip(f"bench.{name}")
    assert module.main() == 0
    assert asked == [([name], {"everything": False, "quick": True})]
