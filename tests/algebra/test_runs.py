"""The longest increasing run against a search of all runs, in every bracketing."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sash.algebra.ordering import is_below
from sash.algebra.runs import OUTPUTS, longest_increasing_run
from sash.errors import DataError
from tests.algebra.bracketing import (
    answer,
    both_forms,
    case,
    compiled_answer,
    needs_machine_code,
    require_laws,
    require_round_trip,
    same,
    seeds,
)

RUN = longest_increasing_run()

times = st.integers(0, 10**6)
few = st.integers(0, 4)
troubled = st.sampled_from([math.nan, -math.inf, -0.0, 0.0, 1.0, math.inf])

CASES = [
    case(RUN, None, times, few),
    case(RUN, "i8", times, few),
    case(RUN, "u1", st.integers(0, 255), few),
    case(RUN, "f8", times, troubled),
]


def searched(rows):
    """Try every start and end; the first of the longest wins."""
    best = None
    for start in range(len(rows)):
        end = start
        while end + 1 < len(rows) and is_below(rows[end][1], rows[end + 1][1]):
            end += 1
        if best is None or end - start > best[1] - best[0]:
            best = (start, end)
    first, last = rows[best[0]][0], rows[best[1]][0]
    return (first, last, last - first, best[1] - best[0] + 1)


@pytest.mark.parametrize("case", CASES)
@given(data=st.data(), seed=seeds)
def test_the_laws_hold(case, data, seed):
    require_laws(case.monoid, data.draw(case.rows(least=3)), seed)


@pytest.mark.parametrize("case", CASES)
@given(data=st.data(), seed=seeds)
def test_every_bracketing_finds_the_run_that_a_search_finds(case, data, seed):
    rows = sorted(data.draw(case.rows()), key=lambda row: row[0])
    assert same(answer(case.monoid, rows, seed), searched(rows))


@needs_machine_code
@pytest.mark.parametrize("case", CASES[1:])
@given(data=st.data(), seed=seeds)
def test_machine_code_finds_the_same_run(case, data, seed):
    rows = sorted(data.draw(case.rows()), key=lambda row: row[0])
    assert same(compiled_answer(case.monoid, rows, case.dtypes, seed), searched(rows))


@both_forms
def test_the_engine_finds_the_runs_of_windows(compiled):
    rows = [(10 * k, k * k % 7) for k in range(20)]
    require_round_trip(RUN, rows, dtype="i8", compiled=compiled)


def test_the_run_of_the_drawing_is_found():
    rows = list(enumerate([1, 4, 2, 5, 7, 3, 3, 8]))
    monoid = RUN.bind(np.dtype("i8"), np.dtype("i8"))
    assert monoid.outputs == OUTPUTS == ("start", "end", "span", "length")
    assert answer(monoid, rows) == (2, 4, 2, 3)


def test_the_earliest_of_equally_long_runs_wins():
    monoid = RUN.bind(np.dtype("f8"), np.dtype("i8"))
    for seed in range(20):
        assert answer(monoid, list(enumerate([1, 2, 1, 2, 1, 2])), seed) == (0, 1, 1, 2)
        assert answer(monoid, list(enumerate([5, 5, 5])), seed) == (0, 0, 0, 1)


def test_times_may_be_dates():
    noon = datetime(2026, 1, 1, 12)
    rows = [(noon + timedelta(hours=k), value) for k, value in enumerate([3, 1, 2])]
    found = answer(RUN.bind(None, None), rows)
    assert found == (rows[1][0], rows[2][0], timedelta(hours=1), 2)


def test_what_is_no_number_is_refused():
    with pytest.raises(DataError, match="longest_increasing_run got values of type datetime64"):
        RUN.bind(np.dtype("M8[us]"), np.dtype("f8"))


def test_the_same_declaration_gives_the_same_monoid():
    assert longest_increasing_run("t", "x") == longest_increasing_run("t", "x")
    assert RUN.bind(np.dtype("i4"), np.dtype("f8")) is RUN.bind(np.dtype("i8"), np.dtype("f8"))
