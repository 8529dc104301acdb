"""Ready-made policies against a plain reading of what they say, over every algorithm that can slide by them."""

from __future__ import annotations

from collections import namedtuple
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sash
from sash import policies
from sash.compiling.jit import entry, is_enabled
from sash.engine.aggregator import aggregator
from sash.errors import DeclarationError
from sash.windows.policies import Policy, as_policy

ALGORITHMS = ["amta", "log_mta", "recalc", "two_stacks_lite", "daba_lite", "flat_fit", "reactive"]
VALUES = st.none() | st.integers(-3, 9)
STEPS = st.sampled_from([1, 1, 1, 2, 3, 7])


@st.composite
def events(draw, values=VALUES, times_may_be_null=True):
    """Draw rows (t, x): times that rise, values of which some are equal, nulls among both."""
    times = list(accumulate(draw(st.lists(STEPS, max_size=40)), initial=draw(st.integers(-20, 5))))
    kept = [draw(st.booleans() | st.just(True)) if times_may_be_null else True for _ in times]
    return [(time if keep else None, draw(values)) for time, keep in zip(times, kept, strict=True)]


# --- plain readings: from the rows of a window, with the newest among them, how many must go


def carried(times):
    """The time of each row; where there is none, that of the row before."""
    return list(accumulate(times, lambda older, newer: older if newer is None else newer))


def count_while(claims):
    """How many claims hold before the first that does not."""
    return next((i for i, claim in enumerate(claims) if not claim), len(claims))


def read_at_most(n):
    return lambda rows: max(0, len(rows) - n)


def read_within(span, keeps_bound):
    def read(rows):
        times = carried([t for t, _ in rows])
        if times[-1] is None:
            return 0
        bound = times[-1] - span
        return count_while([t is None or t < bound or (t == bound and not keeps_bound) for t in times])

    return read


def read_sum_at_most(limit):
    def read(rows):
        values = [x for _, x in rows]
        gone = next(k for k in range(len(rows) + 1) if sum(x or 0 for x in values[k:]) <= limit)
        return gone and gone + count_while([x is None for x in values[gone:]])

    return read


def read_since_maximum(rows):
    values = [x for _, x in rows if x is not None]
    if not values:
        return 0
    if any(x != x for x in values):
        return next(i for i, (_, x) in enumerate(rows) if x is not None and x != x)
    return next(i for i, (_, x) in enumerate(rows) if x == max(values))


def read_since_longest_run(rows):
    valid = [(t, x) for t, x in rows if t is not None and x is not None]
    runs = []
    for i, (t, x) in enumerate(valid):
        if i and valid[i - 1][1] < x:
            runs[-1][1] += 1
        else:
            runs.append([t, 1])
    if not runs:
        return 0
    longest = max(length for _, length in runs)
    start = next(begin for begin, length in runs if length == longest)
    return count_while([t is None or t < start for t in carried([t for t, _ in rows])])


def read_since_gap(span):
    def read(rows):
        begins, before = [0], None
        for i, (t, _) in enumerate(rows):
            if t is not None:
                if before is not None and t - before > span:
                    begins.append(i)
                before = t
        return begins[-1]

    return read


NOT_NEGATIVE = st.none() | st.integers(0, 9)
CASES = {
    "at_most": (policies.at_most(4), read_at_most(4), VALUES),
    "at_most one": (policies.at_most(1), read_at_most(1), VALUES),
    "within": (policies.within(6, "t"), read_within(6, True), VALUES),
    "within, right": (policies.within(6, "t", closed="right"), read_within(6, False), VALUES),
    "within nothing": (policies.within(0, "t"), read_within(0, True), VALUES),
    "sum_at_most": (policies.sum_at_most(10, "x"), read_sum_at_most(10), NOT_NEGATIVE),
    "since_maximum": (policies.since_maximum("x"), read_since_maximum, VALUES),
    "since_maximum, NaN": (policies.since_maximum("x"), read_since_maximum, st.sampled_from([1.0, 2.0, float("nan")])),
    "since_longest_run": (policies.since_longest_run("t", "x"), read_since_longest_run, VALUES),
    "since_gap": (policies.since_gap(2, "t"), read_since_gap(2), VALUES),
    "either": (
        policies.either(policies.at_most(6), policies.within(9, "t"), policies.since_gap(5, "t")),
        lambda rows: max(read_at_most(6)(rows), read_within(9, True)(rows), read_since_gap(5)(rows)),
        VALUES,
    ),
}


def seen():
    """What a window answers: its rows in order, nulls left out, and how many there are."""
    return {"times": sash.collect("t"), "values": sash.collect("x"), "rows": sash.count()}


def shown(rows):
    """The same of plain rows."""
    times, values = [t for t, _ in rows if t is not None], [x for _, x in rows if x is not None]
    return repr((times, values, len(rows)))


@pytest.mark.parametrize("name", CASES)
@given(data=st.data())
def test_every_algorithm_keeps_what_a_plain_reading_keeps(name, data):
    policy, read, values = CASES[name]
    rows = data.draw(events(values))
    windows = [aggregator(algorithm, seen(), policy=policy) for algorithm in ALGORITHMS]
    kept = []
    for t, x in rows:
        kept = [*kept, (t, x)]
        kept = kept[read(kept) :]
        for algorithm, window in zip(ALGORITHMS, windows, strict=True):
            window.insert(t=t, x=x)
            assert len(window) == len(kept), (algorithm, kept)
            answer = window.query()
            found = ([] if answer[k] is None else list(answer[k]) for k in ("times", "values"))
            assert repr((*found, answer["rows"])) == shown(kept), algorithm


@given(values=st.lists(st.integers(0, 9), max_size=40))
def test_subtraction_slides_by_a_policy_over_aggregates_that_have_an_inverse(values):
    window = aggregator("subtract_on_evict", {"sum": sash.sum(), "n": sash.count()}, policy=policies.at_most(3))
    for i, value in enumerate(values):
        window.insert(value)
        kept = values[max(0, i - 2) : i + 1]
        assert window.query() == {"sum": sum(kept), "n": len(kept)}


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_running_example_of_section_3_2(algorithm):
    """The maximum of the newest values that add up to at most 10: after 2, 2, 3, 3 comes 4."""
    window = aggregator(
        algorithm, {"max": sash.max("x"), "all": sash.collect("x")}, policy=policies.sum_at_most(10, "x")
    )
    window.bulk_insert([2, 2, 3, 3])
    assert window.query() == {"max": 3, "all": [2, 2, 3, 3]}
    window.insert(4)
    assert window.query() == {"max": 4, "all": [3, 3, 4]}


def test_a_single_value_above_the_limit_leaves_as_well():
    window = aggregator("amta", {"all": sash.collect("x")}, policy=policies.sum_at_most(10, "x"))
    window.bulk_insert([4, 11])
    assert len(window) == 0
    window.insert(10)
    assert window.query() == {"all": [10]}


# --- the rules themselves, as machine code

RECORDS = {
    "at_most": ("n", {}),
    "within": ("time n_times", {}),
    "sum_at_most": ("sum last", {}),
    "since_maximum": ("max n_values", {}),
    "since_longest_run": ("run time n_times", {"run": "start end span length"}),
    "since_gap": ("session n_times", {"session": "begin end is_cut"}),
}


@pytest.mark.skipif(not is_enabled(), reason="machine code is switched off")
@pytest.mark.parametrize("name", RECORDS)
def test_a_rule_says_the_same_compiled(name):
    fields, inner = RECORDS[name]
    rule, record = CASES[name][0].rule, namedtuple("Record", fields)
    inner_records = {field: namedtuple("Inner", names) for field, names in inner.items()}
    machine_code = entry(rule)
    rng = np.random.default_rng(7)

    def drawn():
        numbers = {field: int(rng.integers(-2, 12)) for field in fields.split()}
        for field, made in inner_records.items():
            numbers[field] = made(*rng.integers(0, 3, len(made._fields)).tolist())
        return record(**numbers)

    pairs = [(drawn(), drawn()) for _ in range(200)]
    found = [machine_code(*pair) for pair in pairs]
    assert found == [rule(*pair) for pair in pairs]
    assert len(set(found)) == 2


# --- declarations


def test_a_policy_shows_what_it_is():
    assert repr(policies.within(5, "t")) == "<policy within(5, 't')>"
    both = policies.either(policies.at_most(3), policies.sum_at_most(1.5, "x"))
    assert repr(both) == "<policy either(at_most(3), sum_at_most(1.5, 'x'))>"


def test_the_same_policy_twice_is_the_same_so_that_it_is_compiled_once():
    for make in (
        lambda: policies.at_most(3),
        lambda: policies.within(5, "t", closed="right"),
        lambda: policies.sum_at_most(2.5, "x"),
        lambda: policies.since_maximum("x"),
        lambda: policies.since_longest_run("t", "x"),
        lambda: policies.since_gap(2, "t"),
        lambda: policies.either(policies.at_most(3), policies.since_gap(2, "t")),
    ):
        assert make() == make()
        assert hash(make()) == hash(make())
    assert policies.within(5, "t") != policies.within(5, "t", closed="right")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: policies.at_most(0), "positive number of values, got 0"),
        (lambda: policies.at_most(2.5), "positive number of values, got 2.5"),
        (lambda: policies.at_most(True), "positive number of values, got True"),
        (lambda: policies.within(-1, "t"), "within needs a span .* not negative, got -1"),
        (lambda: policies.within("1 hour", "t"), "within needs a span in the numbers of its column"),
        (lambda: policies.within(float("nan"), "t"), "got nan"),
        (lambda: policies.within(1, "t", closed="left"), 'closed="both" or "right", got \'left\''),
        (lambda: policies.since_gap(-0.5, "t"), "since_gap needs a span"),
        (lambda: policies.sum_at_most("10", "x"), "sum_at_most needs a number for its limit, got '10'"),
        (lambda: policies.either(policies.at_most(3)), "either takes two policies"),
        (lambda: policies.either(policies.at_most(3), lambda total, old: True), "joined by `or`"),
        (lambda: as_policy(5), r"a function of \(total, old\), got 5"),
        (
            lambda: policies.either(policies.sum_at_most(1, "x"), policies.sum_at_most(1, "y")),
            "both call an aggregate 'sum', and mean different ones",
        ),
    ],
)
def test_bad_arguments_are_refused_with_what_was_found(make, message):
    with pytest.raises(DeclarationError, match=message):
        make()


def test_whole_numbers_of_numpy_are_numbers():
    assert policies.at_most(np.int64(3)) == policies.at_most(3)


def test_a_function_becomes_a_policy_under_its_own_name():
    def mine(total, old):
        return total.n > old.n

    made = as_policy(mine, {"n": sash.count()})
    assert made == Policy("mine", mine, (("n", sash.count()),))
    assert as_policy(made) is made
