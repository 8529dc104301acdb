"""The combination in step with a sorted list: rows late by a bound, in order of time whatever they came in."""

import datetime
import os
import random

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import sash
from sash.algebra import codec
from sash.engine import snapshot
from sash.engine.aggregator import aggregator
from sash.errors import DataError, DeclarationError, EmptyWindowError, FormatError, UnsupportedError
from sash.testing.counting import counting
from sash.testing.monoids import Affine, Concat, Sum
from tests.aggregators.trees import Oracle

LOWEST, HIGHEST = -(2**63), 2**63 - 1


def behind(aggregate=Concat, lateness=10, **options):
    return aggregator("daba_behind_fiba", aggregate, lateness=lateness, min_arity=2, **options)


class Life:
    """A window and the oracle in step."""

    def __init__(self, window, lateness):
        self.window, self.lateness, self.newest = window, lateness, None
        self.oracle = Oracle(window._bound.monoids[0])

    def horizon(self):
        return self.newest - self.lateness

    def insert(self, time, value):
        if self.newest is not None and time < self.horizon():
            with pytest.raises(DataError, match="use fiba"):
                self.window.insert(time, value)
            return
        self.window.insert(time, value)
        self.note(time, value)

    def bulk_insert(self, times, values):
        if len(times) and self.newest is not None and times[0] < self.horizon():
            with pytest.raises(DataError, match="use fiba"):
                self.window.bulk_insert(times, values)
            return
        self.window.bulk_insert(times, values)
        for time, value in zip(np.asarray(times).tolist(), values, strict=True):
            self.note(time, value)

    def note(self, time, value):
        self.newest = time if self.newest is None else max(self.newest, time)
        self.oracle.insert(time, value)

    def evict(self, time):
        held = sorted(self.oracle.rows)
        if time in held[1:] and time < self.horizon():
            with pytest.raises(UnsupportedError, match="settled"):
                self.window.evict(time)
            return
        self.window.evict(time)
        self.oracle.rows.pop(time, None)

    def bulk_evict(self, time):
        self.window.bulk_evict(time)
        self.oracle.bulk_evict(time)

    def evict_the_oldest(self):
        if self.oracle.rows:
            self.window.evict()
            self.oracle.rows.pop(min(self.oracle.rows))

    def agree(self):
        items = self.oracle.items()
        self.window.check_invariants(items)
        assert len(self.window) == len(items)
        assert self.window.query() == self.oracle.answer()
        assert self.window.oldest == (items[0][0] if items else None)
        assert self.window.youngest == (items[-1][0] if items else None)


class Behind(RuleBasedStateMachine):
    aggregate, lateness, values = Concat, 6, st.integers(0, 99)

    def __init__(self):
        super().__init__()
        self.life = Life(behind(self.aggregate, self.lateness), self.lateness)

    @rule(age=st.integers(-12, 8), value=st.integers(0, 99) | st.none())
    def insert(self, age, value):
        self.life.insert((self.life.newest or 0) - age, value)

    @rule(age=st.integers(-9, 7), gaps=st.lists(st.integers(0, 4), max_size=20))
    def bulk_insert(self, age, gaps):
        times = np.cumsum([(self.life.newest or 0) - age, *gaps]).tolist()
        self.life.bulk_insert(times, list(range(len(times))))

    @rule(data=st.data())
    def evict(self, data):
        held = sorted(self.life.oracle.rows)
        self.life.evict(data.draw(st.sampled_from([*held, (self.life.newest or 0) + 1, -5])))

    @rule()
    def evict_the_oldest(self):
        self.life.evict_the_oldest()

    @rule(data=st.data())
    def bulk_evict(self, data):
        held = sorted(self.life.oracle.rows)
        self.life.bulk_evict(data.draw(st.sampled_from([*held, 0])) + data.draw(st.sampled_from([0, -1])))

    @rule()
    def snapshot_and_restore(self):
        saved, self.life.window = self.life.window.snapshot(), behind(self.aggregate, self.lateness)
        self.life.window.restore(saved)

    @invariant()
    def agrees(self):
        self.life.agree()


TestBehindOfConcat = Behind.TestCase
TestBehindOfAffineMaps = type("BehindOfAffineMaps", (Behind,), {"aggregate": Affine}).TestCase
TestBehindInOrder = type("BehindInOrder", (Behind,), {"lateness": 0}).TestCase


@pytest.fixture(scope="module")
def machine_code():
    if "NUMBA_BOUNDSCHECK" in os.environ:
        pytest.skip("LLVM takes half an hour; tree and queue are checked by themselves")
    return {lateness: behind(Affine, lateness, compiled=True, dtype="i8") for lateness in (0, 25)}


@pytest.mark.parametrize("lateness", [0, 25])
def test_machine_code_agrees_with_the_oracle(machine_code, lateness):
    life, chosen = Life(machine_code[lateness], lateness), random.Random(lateness)
    for step in range(500):
        now, kind, value = life.newest or 0, chosen.random(), chosen.randrange(10**6)
        if kind < (0.75 if step // 100 % 2 == 0 else 0.5):
            life.insert(now + chosen.randrange(-lateness - 1, 8), value)
        elif kind < 0.8:
            times = sorted(now + chosen.randrange(-lateness, 60) for _ in range(chosen.randrange(60)))
            life.bulk_insert(np.array(times, np.int64), list(range(len(times))))
        elif kind < 0.9:
            life.evict(chosen.choice([*life.oracle.rows, now]))
        elif kind < 0.96:
            life.bulk_evict(now - chosen.randrange(200))
        else:
            life.window.restore(life.window.snapshot())
        life.agree()
    assert life.window._n_queued > 0


def test_times_at_both_ends_of_int64(machine_code):
    window = behind(Affine, 25, compiled=True, dtype="i8")
    window.bulk_insert([LOWEST, LOWEST + 3], [1, 2])
    assert (len(window), window._n_queued) == (2, 0)
    window.bulk_insert([LOWEST + 1, LOWEST + 28, HIGHEST - 25, HIGHEST], [3, 4, 5, 6])
    assert (len(window), window._n_queued, window.oldest, window.youngest) == (6, 4, LOWEST, HIGHEST)
    window.insert(HIGHEST - 25, 7)
    window.bulk_evict(HIGHEST)
    assert (len(window), window.query()) == (0, None)


def test_the_widest_lateness_of_int64_settles_nothing_too_early():
    window = behind(Concat, HIGHEST, times="i8")
    for value, time in enumerate((0, LOWEST + 1, -5, HIGHEST, -3)):
        if time == -3:
            with pytest.raises(DataError, match="time -3 is older than 0"):
                window.insert(time, value)
        else:
            window.insert(time, value)
    assert (window.query(), window._n_queued) == ("1,2,0,3", 2)


def test_rows_strictly_older_than_the_bound_settle_and_equal_times_still_combine():
    window = behind(Concat, 10)
    for time, value in [(100, "a"), (90, "b"), (90, "B"), (110, "c"), (100, "A")]:
        window.insert(time, value)
    assert (window.query(), len(window)) == ("b,B,a,A,c", 3)
    assert repr(window) == "<daba_behind_fiba over Concat: 3 times, 1 of them settled>"


def test_the_bound_never_goes_back_when_the_newest_row_is_evicted():
    window = behind(Concat, 10)
    window.bulk_insert([80, 85, 100], "abc")
    window.evict(100)
    assert (window.youngest, window.query()) == (85, "a,b")
    with pytest.raises(DataError, match="time 86 is older than 90"):
        window.insert(86, "x")
    window.insert(90, "d")
    window.bulk_evict(1000)
    assert (window.query(), window.oldest, window.youngest, len(window)) == (None, None, None, 0)
    with pytest.raises(DataError, match="time 89 is older than 90"):
        window.insert(89, "x")


@pytest.mark.parametrize(
    ("times", "lateness"),
    [
        ([datetime.date(2026, 1, day) for day in (1, 5, 9)], datetime.timedelta(days=3)),
        (list(np.array(["2026-01-01", "2026-01-05", "2026-01-09"], "M8[D]")), np.timedelta64(3, "D")),
        ([0.5, 2.5, float("inf")], 1.0),
    ],
    ids=["dates", "datetime64", "floats"],
)  # fmt: skip
def test_times_are_anything_that_a_lateness_can_be_taken_away_from(times, lateness):
    window = behind(Concat, lateness)
    window.bulk_insert(times, "abc")
    assert (window.query(), window.oldest, window.youngest, window._n_queued) == ("a,b,c", times[0], times[2], 2)


def test_an_infinite_lateness_keeps_everything_in_the_tree():
    window = behind(Concat, float("inf"), times="f8")
    for time in (3.0, float("inf"), -1.0, float("-inf")):
        window.insert(time, time)
    assert (window.query(), window._n_queued) == ("-inf,-1.0,3.0,inf", 0)


def test_refusals_name_fiba():
    window = behind(Concat, 10)
    window.bulk_insert([1, 2, 30], "abc")
    for act, words in [
        (lambda: window.query(1, 30), r"part of its window, \(1, 30\)"),
        (lambda: window.evict(2), "evict time 2 alone"),
        (lambda: list(window), "list its rows"),
    ]:
        with pytest.raises(UnsupportedError, match=words + r".*Use fiba, which can"):
            act()
    with pytest.raises(DataError, match=r"time 19 is older than 20, the newest time less lateness=10.*use fiba"):
        window.insert(19, "x")
    with pytest.raises(DataError, match="time 3 is older than 20"):
        window.bulk_insert([3, 40], "xy")
    window.evict(7)
    assert (window.query(), len(window)) == ("a,b,c", 3)
    with pytest.raises(UnsupportedError, match="it is no queue"):
        sash.slide(np.arange(3.0), sash.max(), rows=2, algorithm="daba_behind_fiba")


def test_mistakes_say_what_was_wanted():
    with pytest.raises(DeclarationError, match=r"needs lateness=.*Use fiba"):
        aggregator("daba_behind_fiba", Sum)
    for lateness, options in [(-1, {}), (float("nan"), {}), ("x", {"times": "i8"}), (1.5, {"times": "i8"})]:
        with pytest.raises(DeclarationError, match="lateness must be a difference of times"):
            behind(Sum, lateness, **options)
    with pytest.raises(UnsupportedError, match="fiba takes them"):
        behind(Sum, 1, times="pair")
    with pytest.raises(DataError, match="lateness=5 cannot be taken away from a time such as"):
        behind(Sum, 5).insert(datetime.date(2026, 1, 1), 1)
    with pytest.raises(EmptyWindowError, match="on an empty window"):
        behind(Sum, 5).evict()
    with pytest.raises(DataError, match="without a time"):
        behind(Sum, 5).insert(None, 1)


def test_a_snapshot_of_another_window_is_refused():
    window = behind(Concat, 10)
    window.bulk_insert([1, 2, 30], "abc")
    saved = window.snapshot()
    for other in (behind(Sum, 10), behind(Concat, 11), aggregator("fiba", Concat, min_arity=2)):
        with pytest.raises(FormatError):
            other.restore(saved)
    signature, newest, times, queue, tree = codec.decode(saved[snapshot.HEADER.size :])
    for parts in ([signature, newest, times[1:], queue, tree], [signature, [], times, queue, tree]):
        with pytest.raises(FormatError, match="do not fit together"):
            window.restore(snapshot.seal(parts))
    assert window.query() == "a,b,c"


def test_rings_give_room_back_when_rows_leave():
    window = behind(Sum, 0)
    window.bulk_insert(range(1000), [1] * 1000)
    large = window.n_bytes
    window.bulk_evict(990)
    assert (window.query(), len(window)) == (9, 9)
    assert window.n_bytes < large / 5


def combines_a_round(algorithm, n, **options):
    counted, calls = counting(Sum)
    window = aggregator(algorithm, counted, **options)
    window.bulk_insert(range(n), [1] * n)
    calls.take()
    for time in range(n, 2 * n):  # a whole cycle of the queue
        window.evict(time - n)
        window.insert(time, 1)
        window.query()
    return calls.take() / n


@pytest.mark.parametrize(("lateness", "most"), [(0, 8), (16, 16)])
def test_rounds_in_order_take_a_constant_number_of_combines(lateness, most):
    means = [combines_a_round("daba_behind_fiba", n, lateness=lateness) for n in (64, 512, 4096)]
    assert max(means) - min(means) < 1
    assert max(means) < most


def test_rounds_in_order_take_fewer_combines_than_those_of_fiba():
    assert combines_a_round("daba_behind_fiba", 4096, lateness=0) < combines_a_round("fiba", 4096)
