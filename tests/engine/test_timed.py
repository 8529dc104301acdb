import datetime
import random

import numpy as np
import pytest
import xxhash

import sash
from sash.aggregators.fiba.layout import GAP, N_FIELDS, NODES_END, PARENT, ROOT
from sash.algebra import codec
from sash.engine import snapshot
from sash.engine.timestamped import Timestamped
from sash.errors import DataError, DeclarationError, FormatError, UnsupportedError
from sash.testing.monoids import Affine, ArgMax, Concat, Max, Mean, Sum
from tests.aggregators.trees import Oracle

LOWEST, HIGHEST = -(2**63), 2**63 - 1


def filled(aggregate=Concat, times=range(0, 100, 10), **options):
    window = sash.aggregator("fiba", aggregate, min_arity=2, **options)
    window.bulk_insert(times, range(len(times)))
    return window


@pytest.mark.parametrize("algorithm", ["fiba", "btree"])
def test_the_contract_in_one_example(algorithm):
    window = sash.aggregator(algorithm, Concat)
    for time, value in [(30, "c"), (10, "a"), (20, "b"), (20, "B")]:
        window.insert(time, value)
    assert (window.query(), len(window), window.oldest, window.youngest) == ("a,b,B,c", 3, 10, 30)
    assert window.query(10, 20) == "a,b,B"
    assert list(window) == [(10, "a"), (20, "b,B"), (30, "c")]
    window.evict(20)
    window.evict(25)
    window.bulk_insert([5, 15, 35], "xyz")
    window.bulk_evict(10)
    assert list(window) == [(15, "y"), (30, "c"), (35, "z")]
    assert repr(window) == f"<{algorithm} over Concat: 3 times>"


@pytest.mark.parametrize("algorithm", ["fiba", "btree"])
def test_an_empty_window_answers_null(algorithm):
    window = sash.aggregator(algorithm, Sum)
    assert (window.query(), window.query(1, 2), len(window), list(window)) == (None, None, 0, [])
    assert (window.oldest, window.youngest) == (None, None)
    window.evict(3)
    window.bulk_evict(3)
    window.bulk_insert([], [])
    window.insert(1, 1)
    window.evict(1)
    assert (window.query(), len(window), window.oldest) == (None, 0, None)
    assert sash.aggregator(algorithm, sash.count()).query() == 0


def test_every_kind_of_bound_of_a_range():
    window = filled()
    for first, last, answer in [
        (20, 40, "2,3,4"), (21, 40, "3,4"), (20, 39, "2,3"), (21, 39, "3"), (21, 29, None), (20, 20, "2"),
        (-5, 5, "0"), (-5, -1, None), (95, 200, None), (-1, 200, "0,1,2,3,4,5,6,7,8,9"), (90, 90, "9"), (0, 0, "0"),
    ]:  # fmt: skip
        assert window.query(first, last) == answer


def test_several_aggregates_share_one_tree():
    window = sash.aggregator("fiba", {"largest": Max, "text": Concat})
    window.bulk_insert([1, 2, 3], [5, 9, 4])
    assert window.query() == {"largest": 9, "text": "5,9,4"}
    assert window.query(2, 3) == {"largest": 9, "text": "9,4"}
    assert next(iter(window)) == (1, {"largest": 5, "text": "5"})


def test_rows_of_several_values_and_nulls():
    window = sash.aggregator("fiba", ArgMax)
    window.bulk_insert([1, 2, 3], [(5, 10), (9, 20), (None, 30)])
    window.insert(4, 9, 40)
    assert (window.query(), window.query(3, 4), window.query(3, 3), len(window)) == (20, 40, None, 4)


@pytest.mark.parametrize(
    "times",
    [
        ["apple", "banana", "cherry"],
        [datetime.date(2026, 1, day) for day in (1, 2, 3)],
        [(1, 0), (1, 1), (2, 0)],
        [float("-inf"), 0.5, float("inf")],
        [np.datetime64("2026-01-01"), np.datetime64("2026-01-02"), np.datetime64("2026-01-03")],
    ],
)
def test_times_are_anything_with_an_order(times):
    window = sash.aggregator("fiba", Concat)
    for time, value in zip(reversed(times), "cba", strict=True):
        window.insert(time, value)
    assert window.query() == "a,b,c"
    assert window.query(times[1], times[2]) == "b,c"
    assert [time for time, _ in window] == times


@pytest.mark.parametrize("time", [None, float("nan"), (1, None), (float("nan"), 1), np.datetime64("NaT")])
@pytest.mark.parametrize("act", ["insert", "evict", "bulk_evict", "query", "bulk_insert"])
def test_a_row_without_a_time_is_refused(time, act):
    window = filled()
    arguments = {"insert": (time, 1), "query": (time, 9), "bulk_insert": ([time], [1])}.get(act, (time,))
    with pytest.raises(DataError, match="without a time"):
        getattr(window, act)(*arguments)
    assert len(window) == 10


def test_unsorted_rows_given_as_sorted_are_refused_and_nothing_is_inserted():
    window = filled()
    with pytest.raises(DataError, match=r"row 2 has 4 after 7\. Sort them"):
        window.bulk_insert([1, 7, 4], "abc")
    assert len(window) == 10


def test_other_mistakes_say_what_was_wanted():
    window = filled()
    with pytest.raises(DataError, match="from 9 to 3 is reversed"):
        window.query(9, 3)
    with pytest.raises(DataError, match="a first and a last time"):
        window.query(9)
    with pytest.raises(DataError, match="2 times but 1 values"):
        window.bulk_insert([1, 2], ["a"])
    with pytest.raises(DataError, match="a time and 1 value"):
        window.insert(3)
    for min_arity in (1, True, 2.5):
        with pytest.raises(DeclarationError, match="min_arity must be an integer of at least 2"):
            sash.aggregator("fiba", Sum, min_arity=min_arity)
    with pytest.raises(DeclarationError, match="times must be one of"):
        sash.aggregator("fiba", Sum, times="f4")


def test_a_snapshot_of_another_window_is_refused():
    window = filled()
    for other in (
        filled(Sum),
        sash.aggregator("btree", Concat, min_arity=2),
        sash.aggregator("fiba", Concat, min_arity=3),
    ):
        with pytest.raises(FormatError, match="this snapshot is of"):
            other.restore(window.snapshot())
    damaged = bytearray(window.snapshot())
    damaged[-1] ^= 1
    with pytest.raises(FormatError, match="damaged"):
        window.restore(bytes(damaged))


def test_a_snapshot_whose_numbers_lead_nowhere_is_refused():
    window = filled()
    signature, *parts = codec.decode(window.snapshot()[snapshot.HEADER.size :])
    for part, place in ((0, ROOT), (1, N_FIELDS + PARENT), (2, -1), (0, NODES_END), (0, GAP)):
        changed = [list(each) for each in parts]
        changed[part][place] = 10**6
        body = codec.encode([signature, *changed])
        header = snapshot.HEADER.pack(snapshot.MAGIC, snapshot.VERSION, xxhash.xxh3_64_intdigest(body))
        with pytest.raises(FormatError, match="do not fit together"):
            window.restore(header + body)
    assert window.query() == "0,1,2,3,4,5,6,7,8,9"


# --- machine code


@pytest.fixture(scope="module")
def compiled():
    return sash.aggregator("fiba", Affine, compiled=True, dtype="i8", times="i8", min_arity=2)


def test_machine_code_agrees_with_the_oracle(compiled):
    window, oracle, chosen = compiled, Oracle(compiled._bound.monoids[0]), random.Random(4)
    for step in range(600):
        time, value, kind = chosen.randrange(-150, 150), chosen.randrange(10**6), chosen.random()
        if kind < (0.6 if step // 100 % 2 == 0 else 0.3):
            window.insert(time, value)
            oracle.insert(time, value)
        elif kind < 0.85:
            time = chosen.choice([*oracle.rows, time])
            window.evict(time)
            oracle.rows.pop(time, None)
        elif kind < 0.9:
            window.bulk_evict(time - 100)
            oracle.bulk_evict(time - 100)
        elif kind < 0.95:
            times = sorted(chosen.randrange(-150, 150) for _ in range(20))
            window.bulk_insert(np.array(times), np.arange(20))
            for i, each in enumerate(times):
                oracle.insert(each, i)
        else:
            window.restore(window.snapshot())
            assert window.query(min(time, 0), 50) == oracle.answer(lambda each: min(time, 0) <= each <= 50)  # noqa: B023
        window.check_invariants(oracle.items())
        assert window.query() == oracle.answer()
        assert len(window) == len(oracle.rows)
    window.bulk_evict(1000)
    assert len(window) == 0


@pytest.mark.parametrize("n", [3, 4, 5, 30, 100])
def test_machine_code_takes_rows_in_order_over_a_root_that_comes_and_goes(compiled, n):
    window, oracle = compiled, Oracle(compiled._bound.monoids[0])
    for time in range(3 * n):
        if time >= n:
            window.evict(time - n)
            oracle.rows.pop(time - n)
        window.insert(time, time)
        oracle.insert(time, time)
        assert window.query() == oracle.answer()
    window.check_invariants(oracle.items())
    window.bulk_evict(3 * n)


def test_times_at_both_ends_of_int64(compiled):
    compiled.bulk_evict(HIGHEST)
    for time in (0, HIGHEST, LOWEST, HIGHEST - 1, LOWEST + 1):
        compiled.insert(time, 1)
    assert (compiled.oldest, compiled.youngest, len(compiled)) == (LOWEST, HIGHEST, 5)
    assert compiled.query(LOWEST, HIGHEST) == compiled.query()
    compiled.evict(HIGHEST)
    compiled.bulk_evict(LOWEST)
    assert [time for time, _ in compiled] == [LOWEST + 1, 0, HIGHEST - 1]
    compiled.bulk_evict(HIGHEST)
    for time in (HIGHEST + 1, LOWEST - 1):
        with pytest.raises(DataError, match="does not fit into 64 bits"):
            compiled.insert(time, 1)
    for time in (None, 1.5, float("nan"), "x"):
        with pytest.raises(DataError, match="times are int64 here"):
            compiled.insert(time, 1)
    assert len(compiled) == 0


def test_unsorted_arrays_are_refused(compiled):
    with pytest.raises(DataError, match="row 1 has 2 after 3"):
        compiled.bulk_insert(np.array([3, 2]), np.array([1, 1]))
    with pytest.raises(DataError, match="must be a column of i8"):
        compiled.bulk_insert(np.array([3.5]), np.array([1]))
    with pytest.raises(DataError, match="does not fit"):
        compiled.bulk_insert(np.array([2**63], "u8"), np.array([1]))
    assert len(compiled) == 0


def test_pairs_keep_rows_of_equal_times_apart():
    window = sash.aggregator("fiba", Sum, compiled=True, dtype="i8", times="pair", min_arity=2)
    rows = [(time, breaker) for time in range(6) for breaker in (LOWEST, 0, HIGHEST)]
    for row in random.Random(8).sample(rows, len(rows)):
        window.insert(row, 1)
    assert (len(window), window.query(), window.oldest, window.youngest) == (18, 18, rows[0], rows[-1])
    assert window.query((2, LOWEST), (3, 0)) == 5
    assert [row for row, _ in window] == rows
    for wrong in (3, (1, 2, 3), (1, 2.5), (None, 1)):
        with pytest.raises(DataError, match=r"pairs|int64"):
            window.insert(wrong, 1)


def test_float_times_refuse_nan():
    window = sash.aggregator("fiba", Sum, compiled=True, dtype="i8", times="f8", min_arity=2)
    for bad in (np.array([1.0, np.nan]), [1.0, None]):
        with pytest.raises(DataError, match="without a time"):
            window.bulk_insert(bad, [1, 1])
    assert window.oldest is None


# --- in-order algorithms with times


@pytest.mark.parametrize(
    "algorithm", ["recalc", "two_stacks", "two_stacks_lite", "daba", "daba_lite", "reactive", "flat_fit"]
)
def test_any_queue_becomes_a_time_window(algorithm):
    window, oracle = Timestamped(algorithm, Mean), []
    chosen = random.Random(6)
    now = 0
    for _ in range(300):
        now += chosen.randrange(3)
        window.insert(now, chosen.randrange(9))
        oracle.append((now, window._window))
        window.evict(now - 7)
        oracle = [row for row in oracle if row[0] > now - 7]
        assert (len(window), window.oldest, window.youngest) == (len(oracle), oracle[0][0], now)
    saved = window.snapshot()
    other = Timestamped(algorithm, Mean)
    other.restore(saved)
    assert (other.query(), len(other), other.youngest) == (window.query(), len(window), now)
    other.bulk_evict(now)
    assert (other.query(), other.oldest) == (None, None)


def test_a_time_window_in_order_answers_as_fiba_does():
    chosen, now = random.Random(9), 0
    windows = (Timestamped("two_stacks_lite", Concat), sash.aggregator("fiba", Concat))
    for value in range(200):
        now += chosen.randrange(1, 4)
        for window in windows:
            window.insert(now, value)
            window.bulk_evict(now - 20)
        assert windows[0].query() == windows[1].query()


def test_a_time_window_refuses_rows_out_of_order_and_names_fiba():
    window = Timestamped("daba_lite", Sum)
    window.bulk_insert([3, 3, 5], [1, 2, 3])
    with pytest.raises(DataError, match="time 4 after 5: this takes rows in order of time, fiba in any"):
        window.insert(4, 1)
    with pytest.raises(DataError, match="without a time"):
        window.insert(float("nan"), 1)
    assert (len(window), window.query()) == (3, 6)
    for algorithm in ("sba", "flat_fat"):
        with pytest.raises(UnsupportedError, match="is no queue"):
            Timestamped(algorithm, Sum)
    with pytest.raises(FormatError):
        window.restore(sash.aggregator("fiba", Sum).snapshot())
