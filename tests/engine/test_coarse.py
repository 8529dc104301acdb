"""Windows that slide by more than a row, against the definition: any range, any slide, rows or times."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sash
from sash.aggregators import ALGORITHMS
from sash.engine.aggregator import aggregator
from sash.engine.coarse import rows_grid
from sash.testing.counting import counting
from sash.testing.monoids import Affine, Concat, Sum
from sash.windows.frames import CLOSED

ANY = [
    name for name, a in ALGORITHMS.items()
    if a.card.needs == "associative" and a.card.order == "in order" and not a.card.fixed
]  # fmt: skip


def concatenated(values):
    return ",".join(map(str, values))


def composed(values):
    return Affine.lower(functools.reduce(Affine.combine, map(Affine.lift, values)))


def ended_rows(n, rows, every):
    """The numbers, from 1, of the rows that are answered."""
    return [e for e in range(1, n + 1) if e % every == rows % every]


def ended_windows(times, span, every, closed):
    """The definition by time: (end, members) of every window that holds a row."""
    found = []
    for k in range((min(times) - span) // every - 2, max(times) // every + 3):
        start, end = k * every, k * every + span
        inside = [
            j for j, time in enumerate(times)
            if (time >= start if closed in ("both", "left") else time > start)
            and (time <= end if closed in ("both", "right") else time < end)
        ]  # fmt: skip
        if inside:
            found.append((end, inside))
    return found


@given(n=st.integers(0, 60), rows=st.integers(1, 40), every=st.integers(1, 25))
def test_windows_by_rows_hold_the_last_rows(n, rows, every):
    found = sash.slide(list(range(n)), Concat, rows=rows, every=every)
    assert found.tolist() == [concatenated(range(max(0, e - rows), e)) for e in ended_rows(n, rows, every)]


@given(n=st.integers(1, 60), rows=st.integers(1, 40), every=st.integers(1, 25))
def test_machine_code_composes_slices_in_order(n, rows, every):
    values = np.random.default_rng(n).integers(0, 1000, n)
    found = sash.slide(values, Affine, rows=rows, every=every)
    wanted = [composed(values[max(0, e - rows) : e].tolist()) for e in ended_rows(n, rows, every)]
    assert found.tolist() == wanted


@pytest.mark.parametrize("algorithm", ANY)
def test_every_algorithm_takes_slices_for_rows(algorithm):
    values = np.random.default_rng(2).integers(0, 1000, 500)
    for rows, every in ((100, 7), (64, 8), (5, 9), (499, 2)):
        found = sash.slide(values, Affine, rows=rows, every=every, algorithm=algorithm)
        wanted = [composed(values[max(0, e - rows) : e].tolist()) for e in ended_rows(500, rows, every)]
        assert found.tolist() == wanted


@pytest.mark.parametrize("closed", CLOSED)
@given(
    first=st.integers(-30, 5),
    gaps=st.lists(st.sampled_from([0, 0, 1, 2, 3, 10, 40]), max_size=20),
    span=st.integers(0, 15),
    every=st.integers(1, 12),
)
def test_windows_by_time_stand_on_the_grid(closed, first, gaps, span, every):
    times = np.cumsum([first, *gaps])
    ends, answers = sash.slide(list(range(len(times))), Concat, times=times, span=span, every=every, closed=closed)
    wanted = ended_windows(times.tolist(), span, every, closed)
    assert ends.tolist() == [end for end, _ in wanted]
    assert answers.tolist() == [concatenated(inside) for _, inside in wanted]


@given(times=st.lists(st.integers(-20, 40), min_size=1, max_size=25), span=st.integers(1, 15), every=st.integers(1, 9))
@settings(max_examples=15)
def test_rows_in_any_order_are_combined_in_order_of_time(times, span, every):
    values = np.arange(len(times))
    ends, answers = sash.slide(values, Affine, times=times, span=span, every=every, ordered=False)
    order = sorted(range(len(times)), key=lambda j: times[j])
    wanted = ended_windows([times[j] for j in order], span, every, "left")
    assert ends.tolist() == [end for end, _ in wanted]
    assert answers.tolist() == [composed([order[j] for j in inside]) for _, inside in wanted]


@pytest.mark.parametrize(("span", "every"), [(12, 4), (13, 4), (5, 5), (30, 7)])
def test_the_boundary_aggregator_gives_the_same_windows(span, every):
    generator = np.random.default_rng(span)
    times = np.cumsum(generator.choice([0, 1, 2, 3, 60], 200, p=[0.2, 0.3, 0.3, 0.15, 0.05]))
    values = generator.integers(0, 1000, 200)
    window = aggregator("sba", Affine, range=span, slide=every, by="time")
    wanted = [
        due for time, value in zip(times.tolist(), values.tolist(), strict=True) for due in window.insert(time, value)
    ]
    ends, answers = sash.slide(values, Affine, times=times, span=span, every=every)
    complete = ends <= times[-1]
    assert list(zip(ends[complete].tolist(), answers[complete].tolist(), strict=True)) == wanted
    counted = aggregator("sba", Affine, range=span, slide=every)
    due = [answer for value in values.tolist() for _, answer in counted.insert(value)]
    assert sash.slide(values, Affine, rows=span, every=every).tolist() == due


def test_floats_and_datetimes_stand_on_their_grids():
    ends, totals = sash.slide([1, 2, 4], sash.sum(), times=[0.25, 0.5, 2.0], span=1.0, every=0.5)
    assert ends.tolist() == [0.5, 1.0, 1.5, 2.5, 3.0]
    assert totals.tolist() == [1, 3, 2, 4, 4]
    times = np.array(["2018-06-01T10:05", "2018-06-01T10:50"], "M8[m]")
    ends, totals = sash.slide(
        [1, 2], sash.sum(), times=times, span=np.timedelta64(1, "h"), every=np.timedelta64(1800, "s")
    )
    assert ends.astype(str).tolist() == [f"2018-06-01T{hour}:00" for hour in ("10:30", "11:00", "11:30")]
    assert totals.tolist() == [1, 3, 2]


def test_a_silence_costs_nothing():
    ends, totals = sash.slide([1, 2], sash.sum(), times=[0, 10**15], span=2, every=1)
    assert ends.tolist() == [1, 2, 10**15 + 1, 10**15 + 2]
    assert totals.tolist() == [1, 1, 2, 2]


def test_nulls_lists_dicts_and_several_spans():
    values = np.ma.MaskedArray([1, 2, 4, 8], [True, True, False, False])
    found = sash.slide(values, {"sum": sash.sum(), "n": sash.count()}, rows=2, every=2)
    assert found["sum"].tolist() == [None, 12]
    assert found["n"].tolist() == [2, 2]
    (ends, totals), (later, more) = sash.slide([1, 2, 4], sash.sum(), times=[0, 1, 5], span=[2, 4], every=2)
    assert (ends.tolist(), totals.tolist()) == ([2, 6], [3, 4])
    assert (later.tolist(), more.tolist()) == ([2, 4, 6, 8], [3, 3, 4, 4])


def test_rows_that_leave_together_are_combined_once(monkeypatch):
    monkeypatch.setenv("SASH_JIT", "0")  # machine code cannot be counted
    n, rows, every = 10_000, 1000, 50
    counted, calls = counting(Sum)
    answers = sash.slide(range(n), counted, rows=rows, every=every, algorithm="two_stacks_lite")
    assert len(answers) == len(rows_grid(n, rows, every).stops) == n // every
    assert calls.combine <= n + 4 * n // every


def test_no_rows_give_no_windows():
    assert sash.slide(np.empty(0), sash.max(), rows=3, every=2).tolist() == []
    ends, answers = sash.slide(np.empty(0), sash.max(), times=np.empty(0, "i8"), span=3, every=2)
    assert ends.tolist() == answers.tolist() == []


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"rows": 3, "every": 0}, sash.DeclarationError, "every must be a positive number of rows, got 0"),
        ({"rows": 3, "every": 1.5}, sash.DeclarationError, "got 1.5"),
        ({"rows": 3, "every": True}, sash.DeclarationError, "got True"),
        ({"rows": 3, "every": 2, "algorithm": "sba"}, sash.UnsupportedError, "two_stacks_lite"),
        ({"times": [1, 2], "span": 3, "every": 0}, sash.DeclarationError, "every must be positive, got 0"),
        ({"times": [1, 2], "span": 3, "every": -2}, sash.DeclarationError, "got -2"),
        ({"times": [2, 1], "span": 3, "every": 2}, sash.DataError, "row 1 has 1 after 2"),
        ({"times": [1.0, np.nan], "span": 3, "every": 2}, sash.DataError, "row 1 has no time"),
        ({"times": [0, 2**63 - 1], "span": 3, "every": 2}, sash.DataError, "too far from zero"),
        ({"times": [0.0, 1e300], "span": 3.0, "every": 2.0}, sash.DataError, "too far from zero"),
        ({"times": [1, 2], "span": 3, "every": 2, "closed": "inner"}, sash.DeclarationError, "closed must be one of"),
        ({"rows": 3, "every": 2, "ordered": False}, sash.DeclarationError, "ordered=False needs times"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        sash.slide(np.array([1.0, 2.0]), sash.max(), **arguments)
