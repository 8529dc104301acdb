"""Explanations say what will run, and what runs is what they say."""

from __future__ import annotations

import numpy as np
import pytest

import sash
from sash.engine.columns import Column
from sash.engine.explaining import explain_run
from sash.engine.running import Batch, Run
from sash.testing.monoids import Concat
from sash.windows.bounds import Bounds, Every

INTEGERS = {"x": Column(np.arange(5), None)}


@pytest.mark.parametrize(
    ("bounds", "aggregates", "algorithm", "why"),
    [
        (Bounds(span=3), {"s": sash.sum("x"), "m": sash.max("x")}, "two_stacks_lite", "any associative aggregate"),
        (Bounds(span=3), {"m": sash.max("x")}, "slick_deque", "max selects one of its arguments"),
        (Bounds(rows=3), {"s": sash.sum("x"), "n": sash.count()}, "subtract_on_evict", "every aggregate has an exact"),
        (Bounds(), {"s": sash.sum("x")}, "running_total", "windows only grow until they begin anew"),
        (Bounds(gap=3), {"s": sash.sum("x")}, "running_total", "windows only grow"),
        (Bounds(span=3, closed="left", every=Every(3)), {"m": sash.max("x")}, "running_total", "windows only grow"),
        (Bounds(span=3, every=Every(3)), {"m": sash.max("x")}, "slick_deque", "max selects"),
        (Bounds(gap=3, rows=2), {"m": sash.max("x")}, "slick_deque", "max selects"),
    ],
)
def test_the_algorithm_is_chosen_for_a_reason_and_runs(bounds, aggregates, algorithm, why, monkeypatch):
    monkeypatch.setenv("SASH_JIT", "0")  # the choice is the same, and nothing is compiled
    (explained,) = explain_run(bounds, aggregates, INTEGERS)
    assert explained.algorithm.startswith(f"{algorithm} (")
    assert why in explained.why
    run = Run(bounds, aggregates)
    run.push(Batch(np.arange(5) == 0, np.arange(5), INTEGERS))
    assert [choice.algorithm for choice in run.choices] == [algorithm]


def test_floats_may_round_into_two_windows_of_a_grid_so_no_total_is_enough():
    tumbling = Bounds(span=3, closed="left", every=Every(3))
    (explained,) = explain_run(tumbling, {"s": sash.sum("x")}, is_exact=False)
    assert explained.algorithm == "two_stacks_lite (Two-Stacks Lite)"


def test_the_text_names_window_cost_state_and_what_would_change_the_choice(monkeypatch):
    monkeypatch.setattr("sash.engine.groups.is_enabled", lambda: True)
    (explained,) = explain_run(Bounds(span=60, rows=100), {"n": sash.count(), "s": sash.sum("x").where("ok")})
    lines = dict(line.split(maxsplit=1) for line in str(explained).splitlines())
    assert lines["aggregates"] == "n, s"
    assert lines["window"].startswith("rows within 60 of this one")
    assert lines["form"] == "machine code"
    assert lines["cost"].startswith("3 calls of combine a row on average, n + 1 at worst")
    assert lines["state"] == "n + 2 partials of 32 bytes, and 8 bytes of order a row in the window; n is at most 100"
    assert "without sum, which cannot be subtracted exactly: subtract_on_evict" in lines["otherwise"]


def test_quantiles_are_told_apart_and_slices_counted(monkeypatch):
    monkeypatch.setenv("SASH_JIT", "0")
    grid = Bounds(span=60, every=Every(7))
    numbers, quantiles = explain_run(grid, {"s": sash.sum("x"), "q": sash.quantile("x", 0.9), "c": sash.max("x")})
    assert (numbers.aggregates, quantiles.aggregates) == (("s", "c"), ("q",))
    assert "n slices of rows that leave together, not rows; n is at most 10" in numbers.state
    assert quantiles.algorithm == "ranks (a finger on ranks)"
    assert "rows in batches go through two_stacks_lite" in quantiles.why
    (forced,) = explain_run(Bounds(rows=3), {"q": sash.median("x")}, algorithm="daba_lite")
    assert forced.algorithm.startswith("daba_lite (")


def test_max_as_machine_code_combines_because_that_takes_less_time(monkeypatch):
    monkeypatch.setattr("sash.engine.groups.is_enabled", lambda: True)
    (explained,) = explain_run(Bounds(span=3), {"m": sash.max("x")}, INTEGERS)
    assert explained.algorithm.startswith("two_stacks_lite (")
    assert explained.why.startswith("max could forget dominated rows")


def test_python_objects_are_a_group_of_their_own(monkeypatch):
    monkeypatch.setattr("sash.engine.groups.is_enabled", lambda: True)
    first, second = explain_run(Bounds(rows=3), {"s": sash.sum("x"), "text": sash.agg(Concat, "x")})
    assert (first.aggregates, first.form) == (("s",), "machine code")
    assert (second.aggregates, second.form) == (("text",), "interpreted Python")
    assert "Python objects" in second.state


def test_a_forced_algorithm_is_said_to_be_forced():
    (explained,) = explain_run(Bounds(), {"s": sash.sum("x")}, algorithm="daba_lite")
    assert (explained.algorithm, explained.why) == ("daba_lite (DABA Lite)", "asked for by name")
