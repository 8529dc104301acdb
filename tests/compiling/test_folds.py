"""A fold gives what combining cell by cell gives, for every kind of cell, whatever it holds on the way."""

from __future__ import annotations

import numpy as np
import pytest

import sash
from sash.algebra.laws.sameness import same
from sash.compiling.compiled_cells import compiled_cells
from sash.compiling.interpreted_cells import counting_rows, interpreted_cells
from sash.compiling.jit import compiled, entry, interpreted, is_enabled
from sash.engine.aggregator import aggregator
from sash.engine.binding import bind
from sash.engine.building import nested, nullable, product
from sash.testing.monoids import Affine, Bloom, Concat, Mean

VALUES = [3.0, 1.0, 4.0, 1.5, 9.0, 2.0, 6.0]
TOTAL, BY_HAND, LED, LED_BY_HAND, SCRATCH, FIRST = range(6)


def monoid_of(aggregate, *, is_compiled=True):
    """The monoid of one column of floats."""
    (monoid,) = bind(aggregate, "f8", compiled=is_compiled).monoids
    return monoid


def both_ways(cells, columns, outer=entry):
    """The answers of folds over all rows, each beside that of as many combines.

    The first goes from the oldest on, and adds two at once; the other one goes from the youngest on.
    """
    combine, lift, lower, transfer = cells.combine, cells.lift, cells.lower, cells.transfer
    begin, add, add_both, end, hold, lead = cells.fold

    def drive(pool, columns, results, n):
        for i in range(n):
            lift(pool, FIRST + i, columns, i)
        held = begin(pool, TOTAL, FIRST)
        transfer(pool, BY_HAND, pool, FIRST)
        for i in range(1, n - 2):
            held = add(pool, TOTAL, held, FIRST + i)
            combine(pool, BY_HAND, BY_HAND, FIRST + i)
        held = add_both(pool, TOTAL, held, FIRST + n - 2, FIRST + n - 1, SCRATCH)
        end(pool, TOTAL, held)
        combine(pool, SCRATCH, FIRST + n - 2, FIRST + n - 1)
        combine(pool, BY_HAND, BY_HAND, SCRATCH)
        held = hold(pool, FIRST + n - 1)
        transfer(pool, LED_BY_HAND, pool, FIRST + n - 1)
        for k in range(2, n + 1):
            held = lead(pool, LED, FIRST + n - k, held)
            combine(pool, LED_BY_HAND, FIRST + n - k, LED_BY_HAND)
        for place in range(4):
            lower(results, place, pool, place)

    results = cells.results(4)
    outer(drive)(cells.allocate(FIRST + len(VALUES)), columns, results, len(VALUES))
    return results


def require_same(results):
    """Answers of each aggregate that stand side by side are one, and so is whether there is one."""
    answers, valid = results
    if isinstance(answers, tuple):
        for each in results:
            require_same(each)
        return
    for k in (0, 2):
        assert same(answers[k], answers[k + 1])
        assert valid is None or len(valid) == 0 or valid[k] == valid[k + 1]


@pytest.mark.parametrize("aggregate", [Mean, Affine, sash.geomean(), sash.max()], ids=str)
@pytest.mark.parametrize("valid", [[False, True] * 3 + [False], [False] * 7], ids=["some", "none"])
@pytest.mark.skipif(not is_enabled(), reason="compiled cells need the compiler")
def test_numbers_and_records_with_nulls_or_without(aggregate, valid):
    monoid, column = monoid_of(aggregate), np.array(VALUES)
    columns = (column,) * monoid.n_inputs
    require_same(both_ways(compiled_cells(monoid), columns))
    require_same(both_ways(nullable(monoid), (np.array(valid), columns)))


@pytest.mark.skipif(not is_enabled(), reason="compiled cells need the compiler")
def test_rows_and_several_aggregates_at_once():
    column = np.array(VALUES)
    rows = compiled_cells(monoid_of(Bloom))
    (answers, _) = both_ways(rows, (column,))
    assert same(answers[0], answers[1])
    assert same(answers[2], answers[3])
    monoids = [monoid_of(each) for each in (sash.sum(), sash.std(), sash.max())]
    cells = product([compiled_cells(each) for each in monoids], compiled)
    require_same(both_ways(cells, nested([(column,)] * 3)))


@pytest.mark.parametrize("aggregate", [Concat, Mean, sash.var()], ids=str)
def test_python_values(aggregate):
    monoid = monoid_of(aggregate, is_compiled=False)
    columns = ([str(value) for value in VALUES],) if aggregate is Concat else (VALUES,)
    require_same(both_ways(interpreted_cells(monoid), columns, interpreted))
    require_same(both_ways(counting_rows(interpreted_cells(monoid)), columns, interpreted))
    pair = product([interpreted_cells(monoid)] * 2, interpreted)
    require_same(both_ways(pair, nested([columns] * 2), interpreted))


@sash.aggregate(state={"n": "i4", "total": "f4"})
class OtherTypes:
    """Its combine gives a float where the state has an integer, and the other way round."""

    identity = (0, 0.0)

    def lift(x):
        return (1, x)

    def combine(older, newer):
        return (float(older[0] + newer[0]), int(older[1]) + int(newer[1]))

    def lower(s):
        return s[1] * 100 + s[0]


@pytest.mark.skipif(not is_enabled(), reason="interpreted partials have no types")
def test_a_combine_may_give_other_types_than_the_state_has():
    rows = np.random.default_rng(5).integers(0, 50, 300).astype(float)
    tree, queue = (aggregator(name, OtherTypes, dtype="f8", compiled=True) for name in ("fiba", "recalc"))
    late = range(150, 160)
    for time, value in enumerate(rows.tolist()):
        queue.insert(value)
        if time not in late:
            tree.insert(time, value)
    for time in late:
        tree.insert(time, rows[time])
    assert tree.query() == queue.query() == int(rows.sum()) * 100 + 300
    for time in range(100):
        tree.evict(time)
        queue.evict()
    assert tree.query() == queue.query() == int(rows[100:].sum()) * 100 + 200
