"""Runs over sorted rows: brute force, the same bytes under any cut, snapshots in between, memory of the window."""

from __future__ import annotations

import functools
import itertools
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sash
from sash.aggregators import ALGORITHMS
from sash.engine import running
from sash.engine.columns import Column
from sash.engine.running import Batch, Run, answer_whole
from sash.testing.counting import counting
from sash.testing.monoids import Affine, Concat, Sum
from sash.windows.bounds import Bounds, Every, EveryRows
from sash.windows.framing import Rows

IN_ORDER = [name for name, each in ALGORITHMS.items() if each.card.order == "in order" and not each.card.fixed]


class Table(NamedTuple):
    """Sorted rows as plain lists: the key, the order value, the value (None: null) and the mark of each."""

    keys: list
    order: list
    values: list
    marks: list

    @property
    def n(self):
        return len(self.keys)

    def batch(self, begin=0, end=None, *, mark=None):
        part = slice(begin, end)
        keys, n = self.keys, len(self.keys[part])
        begins = [i == 0 or keys[i] != keys[i - 1] for i in range(self.n)][part]
        values = np.array([0 if value is None else value for value in self.values[part]], np.int64)
        valid = np.array([value is not None for value in self.values[part]], np.bool_)
        marks = {"since": np.array(self.marks, np.bool_), "delta": np.array(self.order, np.int64)}.get(mark)
        return Batch(
            np.array(begins, np.bool_),
            np.array(self.order[part], np.float64 if any(isinstance(t, float) for t in self.order) else np.int64),
            {"x": Column(values, None if valid.all() else valid), "i": Column(np.arange(begin, begin + n), None)},
            None if marks is None else Column(marks[part], None),
        )


@st.composite
def tables(draw, steps=(0, 0, 1, 2, 3, 10)):
    keys, order = [], []
    for key in range(draw(st.integers(0, 4))):
        gaps = draw(st.lists(st.sampled_from(steps), max_size=9))
        first = draw(st.sampled_from((-7, 0, 4)))
        order += [first + total for total in np.cumsum(gaps).tolist()]
        keys += [key] * len(gaps)
    n = len(keys)
    values = draw(st.lists(st.one_of(st.none(), st.integers(0, 99)), min_size=n, max_size=n))
    return Table(keys, order, values, draw(st.lists(st.booleans(), min_size=n, max_size=n)))


WINDOWS = st.one_of(
    st.builds(Bounds, rows=st.integers(1, 5), min_rows=st.integers(0, 3)),
    st.builds(
        Bounds,
        span=st.integers(0, 6),
        closed=st.sampled_from(("both", "right", "left", "none")),
        ties=st.sampled_from(("peers", "upto")),
        lag=st.sampled_from((0, 0, 0, 1, 4)),
        rows=st.one_of(st.none(), st.none(), st.integers(1, 4)),
    ),
    st.builds(Bounds, ties=st.sampled_from(("peers", "upto")), min_rows=st.integers(0, 2)),
    st.builds(Bounds, gap=st.integers(0, 4), ties=st.sampled_from(("peers", "upto"))),
    st.builds(Bounds, gap=st.integers(0, 4), rows=st.integers(1, 4)),
    st.builds(Bounds, delta=st.integers(0, 6), closed=st.sampled_from(("both", "right", "left", "none"))),
    st.builds(Bounds, since=st.just(True), rows=st.one_of(st.none(), st.integers(1, 4))),
)


def members(table, i, bounds):
    """The definition: the rows in the window of row i, by looking at every row of its key."""
    own = [j for j in range(table.n) if table.keys[j] == table.keys[i]]
    now, before = table.order[i], [j for j in own if j <= i]
    if bounds.ends_with_row and not bounds.lag:
        inside = before if bounds.closed in ("both", "right") else [j for j in own if table.order[j] < now]
    else:
        ages = {j: now - bounds.lag - table.order[j] for j in own}
        inside = [j for j in own if ages[j] > 0 or (ages[j] == 0 and bounds.closed in ("both", "right"))]
    reach = bounds.span if bounds.span is not None else bounds.delta
    if reach is not None:
        ages = {j: now - bounds.lag - table.order[j] for j in own}
        keeps_first = bounds.closed in ("both", "left")
        inside = [j for j in inside if ages[j] < reach or (ages[j] == reach and keeps_first)]
    if bounds.gap is not None:
        silent = [j for j in before[1:] if table.order[j] - table.order[j - 1] > bounds.gap]
        inside = [j for j in inside if j >= max(silent, default=0)]
    if bounds.since:
        marked = [j for j in before if table.marks[j]]
        inside = [j for j in inside if j >= max(marked, default=0)]
    return inside if bounds.rows is None else inside[-bounds.rows :]


def grid_windows(table, bounds):
    """The definition on a grid: (key, instant, rows) of every instant of every key."""
    found, every = [], bounds.every
    keeps_last, keeps_first = bounds.closed in ("both", "right"), bounds.closed in ("both", "left")
    for key in sorted(set(table.keys)):
        own = [j for j in range(table.n) if table.keys[j] == key]
        k = (table.order[own[0]] - every.origin) // every.step - 2
        while True:
            instant, k = every.origin + k * every.step, k + 1
            reached = [j for j in own if table.order[j] < instant or (keeps_last and table.order[j] == instant)]
            if not reached:
                continue
            ages = {j: instant - bounds.lag - table.order[j] for j in own}
            inside = [j for j in own if ages[j] > 0 or (ages[j] == 0 and keeps_last)]
            if bounds.span is not None:
                inside = [j for j in inside if ages[j] < bounds.span or (ages[j] == bounds.span and keeps_first)]
            found.append((key, instant, inside if bounds.rows is None else inside[-bounds.rows :]))
            if reached == own:
                break
    return found


def text(rows, table, *, column="i"):
    """What Concat answers over some rows."""
    shown = [j if column == "i" else table.values[j] for j in rows]
    shown = [value for value in shown if value is not None]
    return ",".join(map(str, shown)) if shown else None


def listed(column):
    return [
        value if present else None
        for value, present in zip(
            column.values.tolist(), [True] * len(column.values) if column.valid is None else column.valid.tolist(),
            strict=True,
        )
    ]  # fmt: skip


def marked(bounds):
    return bounds.kind if bounds.needs_mark else None


def pieces(run, table, cuts, *, mark=None, restarts=None):
    """Push a table in pieces; `restarts` makes a new run after each, from a snapshot."""
    edges = [0, *sorted(min(cut, table.n) for cut in cuts), table.n]
    for begin, end in itertools.pairwise(edges):
        yield run.push(table.batch(begin, end, mark=mark))
        if restarts is not None:
            data, run = run.snapshot(), restarts()
            run.restore(data)
    yield run.finish()


def joined(answered, place):
    return [value for each in answered for value in listed(each.answers[place])]


NAMES = {"rows": sash.agg(Concat, "i"), "values": sash.agg(Concat, "x"), "n": sash.count(), "n_x": sash.count("x")}


@given(table=tables(), bounds=WINDOWS, cuts=st.lists(st.integers(0, 30), max_size=4))
@settings(max_examples=150)
def test_every_window_holds_the_rows_of_the_definition_however_rows_are_cut(table, bounds, cuts):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SASH_JIT", "0")
        whole = answer_whole(bounds, NAMES, table.batch(mark=marked(bounds)))
        answered = list(pieces(Run(bounds, NAMES), table, cuts, mark=marked(bounds)))
    windows = [members(table, i, bounds) for i in range(table.n)]
    is_null = [len(rows) < bounds.min_rows for rows in windows]
    wanted = [
        [None if null else text(rows, table) for rows, null in zip(windows, is_null, strict=True)],
        [None if null else text(rows, table, column="x") for rows, null in zip(windows, is_null, strict=True)],
        [None if null else len(rows) for rows, null in zip(windows, is_null, strict=True)],
    ]
    assert [listed(column) for column in whole.answers[:3]] == wanted
    assert [joined(answered, place) for place in range(3)] == wanted
    assert joined(answered, 3) == listed(whole.answers[3])
    assert [row for each in answered for row in each.rows.tolist()] == list(range(table.n)) == whole.rows.tolist()


@given(table=tables(), bounds=WINDOWS, n=st.integers(1, 4), cuts=st.lists(st.integers(0, 30), max_size=4))
@settings(max_examples=60)
def test_every_nth_row_of_a_key_is_answered(table, bounds, n, cuts):
    bounds = replace(bounds, every=EveryRows(n), min_rows=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SASH_JIT", "0")
        answered = list(pieces(Run(bounds, NAMES), table, cuts, mark=marked(bounds)))
    wanted = [i for i in range(table.n) if sum(key == table.keys[i] for key in table.keys[: i + 1]) % n == 0]
    assert [row for each in answered for row in each.rows.tolist()] == wanted
    assert joined(answered, 0) == [text(members(table, i, bounds), table) for i in wanted]


GRIDS = st.builds(
    Bounds,
    span=st.one_of(st.none(), st.integers(0, 9)),
    rows=st.one_of(st.none(), st.none(), st.integers(1, 4)),
    every=st.builds(Every, st.integers(1, 6), st.integers(-3, 8)),
)


@given(
    table=tables(),
    bounds=GRIDS,
    closed=st.sampled_from(("both", "right", "left", "none")),
    lag=st.sampled_from((0, 0, 3)),
    unit=st.sampled_from((1, 0.25)),
    cuts=st.lists(st.integers(0, 30), max_size=4),
)
@settings(max_examples=150)
def test_every_instant_of_a_grid_is_answered_over_the_rows_of_the_definition(table, bounds, closed, lag, unit, cuts):
    if bounds.span is not None:
        bounds = replace(bounds, closed=closed, lag=lag * unit, span=bounds.span * unit)
    bounds = replace(bounds, every=Every(bounds.every.step * unit, bounds.every.origin * unit))
    table = table._replace(order=[time * unit for time in table.order])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SASH_JIT", "0")
        whole = answer_whole(bounds, NAMES, table.batch())
        answered = list(pieces(Run(bounds, NAMES), table, cuts))
    wanted = grid_windows(table, bounds)
    for found in ([whole], answered):
        assert [table.keys[row] for each in found for row in each.rows.tolist()] == [key for key, _, _ in wanted]
        assert [time for each in found for time in each.instants.tolist()] == [instant for _, instant, _ in wanted]
        assert joined(found, 0) == [text(rows, table) for _, _, rows in wanted]
        assert joined(found, 2) == [len(rows) for _, _, rows in wanted]


COMPILED = [
    Bounds(rows=7),
    Bounds(span=20),
    Bounds(span=20, closed="left", ties="upto", min_rows=2),
    Bounds(span=15, lag=5),
    Bounds(),
    Bounds(gap=6),
    Bounds(delta=20),
    Bounds(since=True),
    Bounds(span=30, every=Every(7, 3)),
    Bounds(span=10, closed="left", every=Every(10)),
    Bounds(span=20, every=EveryRows(3)),
]
EXACT = {"affine": sash.agg(Affine, "x"), "n": sash.count("x"), "max": sash.max("x")}
FLOATS = {"sum": sash.sum("y"), "mean": sash.mean("y"), "max": sash.max("y"), "n": sash.count()}


def random_table(n=400, n_keys=6, seed=11):
    generator = np.random.default_rng(seed)
    keys = np.sort(generator.integers(0, n_keys, n))
    order = generator.integers(-100, 400, n)[np.argsort(keys, kind="stable")]
    order = order[np.lexsort((order, keys))]
    values = [None if generator.random() < 0.1 else int(x) for x in generator.integers(0, 1000, n)]
    return Table(keys.tolist(), order.tolist(), values, (generator.random(n) < 0.1).tolist())


@pytest.mark.parametrize("bounds", COMPILED, ids=str)
def test_machine_code_answers_as_the_definition_says(bounds):
    table = random_table()
    whole = answer_whole(bounds, EXACT, table.batch(mark=marked(bounds)))
    windows = [rows for _, _, rows in grid_windows(table, bounds)] if bounds.is_grid else [
        members(table, i, bounds) for i in whole.rows.tolist()
    ]  # fmt: skip
    values = [[table.values[j] for j in rows if table.values[j] is not None] for rows in windows]
    is_null = [len(rows) < bounds.min_rows for rows in windows]
    folded = [functools.reduce(Affine.combine, map(Affine.lift, each)) if each else None for each in values]
    pairs = list(zip(values, folded, is_null, strict=True))
    assert listed(whole.answers[0]) == [
        None if total is None or null else Affine.lower(total) for _, total, null in pairs
    ]
    assert listed(whole.answers[1]) == [None if null else len(each) for each, _, null in pairs]
    assert listed(whole.answers[2]) == [max(each) if each and not null else None for each, _, null in pairs]


def float_batches(table, edges, mark):
    """Batches whose floats do not depend on where the rows are cut."""
    n = table.n
    numbers = np.arange(n)
    y = 10.0 ** (numbers % 33 - 16) / 3
    valid = numbers % 11 != 0
    for begin, end in itertools.pairwise(edges):
        batch = table.batch(begin, end, mark=mark)
        yield batch._replace(columns={"y": Column(y[begin:end], valid[begin:end])})


def bits(answers):
    """Floats written so that two are equal only if all their bits are."""
    return [x.hex() if isinstance(x, float) else x for x in answers]


@pytest.mark.parametrize("bounds", COMPILED, ids=str)
def test_any_cut_gives_the_same_bytes_through_snapshots_too(bounds):
    table, generator = random_table(), np.random.default_rng(5)
    mark = marked(bounds)
    whole = answer_whole(bounds, FLOATS, next(float_batches(table, [0, table.n], mark)))
    for n_cuts in (0, 1, 5, 60):
        edges = [0, *np.sort(generator.integers(0, table.n + 1, n_cuts)).tolist(), table.n]
        run, answered = Run(bounds, FLOATS), []
        for batch in float_batches(table, edges, mark):
            answered.append(run.push(batch))
            data, run = run.snapshot(), Run(bounds, FLOATS)
            run.restore(data)
        answered.append(run.finish())
        assert np.concatenate([each.rows for each in answered]).tolist() == whole.rows.tolist()
        for place, column in enumerate(whole.answers):
            assert bits(joined(answered, place)) == bits(listed(column))


@pytest.mark.parametrize("bounds", COMPILED, ids=str)
def test_room_for_rows_that_are_expected_does_not_change_a_bit(bounds, monkeypatch):
    monkeypatch.setattr(running, "LARGE", 2)
    test_any_cut_gives_the_same_bytes_through_snapshots_too(bounds)


def test_a_window_that_grows_is_given_room_for_what_it_will_hold():
    rows = Rows(100, np.arange(0, 40_000, 2), np.zeros(20_000, np.bool_), None)
    for bounds, size, room in (
        (Bounds(span=60_000), 20_000, 30_001),
        (Bounds(span=10**9), 20_000, 8 * 20_000),
        (Bounds(rows=50_000), 20_000, 50_000),
        (Bounds(rows=25_000, span=60_000), 20_000, 25_000),
        (Bounds(), 20_000, 1),
        (Bounds(span=60_000), 10, 1),
    ):
        assert running.expected(bounds, rows, 100, 100 + size) == room


@pytest.mark.parametrize("min_rows", [0, 4, 9])
def test_windows_of_rows_need_no_order_if_rows_are_known_to_be_in_it(min_rows):
    table, bounds = random_table(), Bounds(rows=7, min_rows=min_rows)
    batch = next(float_batches(table, [0, table.n], None))
    aggregates = {**FLOATS, "middle": sash.median("y")}
    wanted = answer_whole(bounds, aggregates, batch)
    found = answer_whole(bounds, aggregates, batch._replace(order=batch.order[::-1]), is_sorted=True)
    assert found.rows.tolist() == wanted.rows.tolist()
    for one, other in zip(found.answers, wanted.answers, strict=True):
        assert bits(listed(one)) == bits(listed(other))
    with pytest.raises(sash.DataError, match="order"):
        answer_whole(bounds, aggregates, batch._replace(order=batch.order[::-1]))


def test_threads_share_out_keys_without_changing_a_bit(monkeypatch):
    table = random_table(n=3000, n_keys=40)
    batch = next(float_batches(table, [0, table.n], None))
    alone = answer_whole(Bounds(span=20), FLOATS, batch)
    monkeypatch.setenv("SASH_THREADS", "3")
    monkeypatch.setattr("sash.engine.whole.WORTHWHILE", 100)
    shared = answer_whole(Bounds(span=20), FLOATS, batch)
    for one, other in zip(alone.answers, shared.answers, strict=True):
        assert bits(listed(one)) == bits(listed(other))


@pytest.mark.parametrize("algorithm", IN_ORDER)
def test_any_algorithm_in_order_can_be_forced(algorithm, monkeypatch):
    monkeypatch.setenv("SASH_JIT", "0")  # the kernels are compiled in other tests; here the point is all algorithms
    table, edges = random_table(150, n_keys=3), [0, 40, 90, 150]
    for bounds in (Bounds(span=20), Bounds(rows=5), Bounds(span=30, every=Every(7))):
        wanted = answer_whole(bounds, {"total": sash.sum("x")}, table.batch())
        run = Run(bounds, {"total": sash.sum("x")}, algorithm)
        answered = list(pieces(run, table, edges[1:-1]))
        assert joined(answered, 0) == listed(wanted.answers[0])
        assert [choice.algorithm for choice in run.choices] == [algorithm]


def test_algorithms_that_are_not_for_rows_in_order_are_refused():
    batch = random_table(20).batch()
    with pytest.raises(sash.UnsupportedError, match="use two_stacks_lite"):
        answer_whole(Bounds(rows=3), {"n": sash.count()}, batch, "sba")
    with pytest.raises(sash.UnsupportedError, match="fiba is for rows in any order"):
        answer_whole(Bounds(rows=3), {"n": sash.count()}, batch, "fiba")
    with pytest.raises(sash.UnknownNameError, match="two_stacks_lite"):
        answer_whole(Bounds(rows=3), {"n": sash.count()}, batch, "two_stack_lite")


def test_what_is_carried_is_bounded_by_the_window_and_not_by_the_key(monkeypatch):
    monkeypatch.setenv("SASH_JIT", "0")
    for bounds, most in ((Bounds(), 2), (Bounds(rows=10), 2), (Bounds(span=10), 12), (Bounds(gap=5), 2)):
        run = Run(bounds, {"n": sash.sum("x")})
        for begin in range(0, 2000, 100):
            order = np.arange(begin, begin + 100)
            run.push(Batch(order == 0, order, {"x": Column(order, None)}))
        inputs = run._inputs
        assert len(inputs.rows.order) <= most
        assert len(inputs.columns["x"].values) == 0
        assert len(run.snapshot()) < 2000


HOUR_BY_MINUTES = Bounds(span=3600, every=Every(60))


def test_an_hour_every_minute_keeps_a_partial_a_minute_and_not_a_row(monkeypatch):
    monkeypatch.setenv("SASH_JIT", "0")
    run = Run(HOUR_BY_MINUTES, {"affine": sash.agg(Affine, "x")})
    for begin in range(0, 9000, 500):
        order = np.arange(begin, begin + 500)
        run.push(Batch(order == 0, order, {"x": Column(order, None)}))
    ((_, structure),) = run._groups
    assert structure.n_slices <= 61
    assert len(run._inputs.rows.order) <= 2
    assert len(run._inputs.columns["x"].values) == 0
    assert len(run.snapshot()) < 8000


def test_rows_of_a_slice_are_combined_once_each(monkeypatch):
    monkeypatch.setenv("SASH_JIT", "0")  # machine code cannot be counted
    counted, calls = counting(Affine)
    order = np.arange(7200)
    batch = Batch(order == 0, order, {"x": Column(order, None)})
    n_answers = len(answer_whole(HOUR_BY_MINUTES, {"a": replace(counted, columns=("x",))}, batch).rows)
    assert n_answers == 121
    assert calls.combine <= len(order) + 4 * n_answers


@pytest.mark.parametrize("unit", [1, 0.1], ids=["integers", "floats"])
@pytest.mark.parametrize(
    "bounds", [Bounds(span=30, every=Every(7, 3)), Bounds(span=20, lag=9, every=Every(20))], ids=str
)
def test_slices_hold_the_same_rows_where_instants_and_ages_are_rounded(bounds, unit):
    table = random_table(300, n_keys=3)
    table = table._replace(order=[time * unit for time in table.order])
    bounds = replace(bounds, span=bounds.span * unit, lag=bounds.lag * unit)
    bounds = replace(bounds, every=Every(bounds.every.step * unit, bounds.every.origin * unit))
    whole = answer_whole(bounds, EXACT, table.batch())
    counted = answer_whole(replace(bounds, rows=10**6), EXACT, table.batch())  # by rows too: not sliced
    for one, other in zip(whole.answers, counted.answers, strict=True):
        assert listed(one) == listed(other)
    answered = list(pieces(Run(bounds, EXACT), table, [17, 90, 91, 250]))
    assert joined(answered, 0) == listed(whole.answers[0])


def test_a_window_that_only_grows_combines_once_a_row(monkeypatch):
    monkeypatch.setenv("SASH_JIT", "0")  # machine code cannot be counted
    counted, calls = counting(Sum)
    order = np.arange(500)
    answer_whole(
        Bounds(), {"s": replace(counted, columns=("x",))}, Batch(order == 0, order, {"x": Column(order, None)})
    )
    assert calls.combine == 499


def test_objects_and_numbers_stand_side_by_side():
    names = np.array(["a", None, "c", "d"], object)
    batch = Batch(
        np.array([1, 0, 0, 1], np.bool_), np.arange(4),
        {"name": Column(names, np.array([1, 0, 1, 1], np.bool_)), "x": Column(np.arange(4.0), None)},
    )  # fmt: skip
    answered = answer_whole(Bounds(rows=2), {"names": sash.concat("name"), "sum": sash.sum("x")}, batch)
    assert listed(answered.answers[0]) == ["a", "a", "c", "d"]
    assert listed(answered.answers[1]) == [0.0, 1.0, 3.0, 3.0]


def test_columns_that_must_not_be_written_need_no_other_kernel():
    batch = random_table(30).batch()
    for array in (batch.begins, batch.order, batch.columns["x"].values):
        array.flags.writeable = False
    answered = answer_whole(Bounds(rows=7), EXACT, batch)
    assert len(answered.rows) == 30
    assert not batch.order.flags.writeable


def test_no_rows_give_no_answers(monkeypatch):
    monkeypatch.setenv("SASH_JIT", "0")
    empty = random_table(0).batch()
    for bounds in (Bounds(rows=3), Bounds(span=3, every=Every(2))):
        run = Run(bounds, {"n": sash.count(), "m": sash.max("x")})
        for answered in (answer_whole(bounds, {"n": sash.count()}, empty), run.push(empty), run.finish()):
            assert answered.rows.tolist() == listed(answered.answers[0]) == []
    assert Run(Bounds(), {"n": sash.count()}).finish().rows.tolist() == []


@pytest.mark.parametrize("jit", ["0", "1"])
def test_integer_sums_never_wrap_around(jit, monkeypatch):
    monkeypatch.setenv("SASH_JIT", jit)
    big = Column(np.full(3, 2**62), None)  # two fit into no answer, one needs no more than 64 bits
    batch = Batch(np.array([True, False, False]), np.arange(3), {"x": big})
    with pytest.raises(sash.SumOverflowError):
        answer_whole(Bounds(rows=2), {"s": sash.sum("x")}, batch)
    assert listed(answer_whole(Bounds(rows=1), {"s": sash.sum("x")}, batch).answers[0]) == [2**62] * 3


def test_a_snapshot_of_another_window_is_refused():
    run = Run(Bounds(rows=3), {"n": sash.count()})
    data = run.snapshot()
    Run(Bounds(rows=3), {"n": sash.count()}).restore(data)
    with pytest.raises(sash.FormatError, match="this snapshot is of"):
        Run(Bounds(rows=4), {"n": sash.count()}).restore(data)
    with pytest.raises(sash.FormatError, match="not a snapshot"):
        run.restore(b"nothing")


def batch_of(order, **columns):
    begins = np.zeros(len(order), np.bool_)
    begins[:1] = True
    return Batch(begins, np.array(order), {name: Column(np.array(each), None) for name, each in columns.items()})


@pytest.mark.parametrize(
    ("bounds", "batch", "message"),
    [
        (Bounds(span=3), batch_of([1, 5, 4], x=[1, 2, 3]), "row 2 has 4 after 5"),
        (Bounds(span=3, every=Every(2)), batch_of([1, 5, 4], x=[1, 2, 3]), "row 2 has 4 after 5"),
        (Bounds(rows=3), batch_of([1, 2], x=[1]), "there are 2 rows but 1 values of 'x'"),
        (Bounds(rows=3), batch_of([1, 2], xs=[1, 2]), "unknown column 'x'. Did you mean 'xs'?"),
        (Bounds(rows=3), batch_of([1.0, np.nan], x=[1, 2]), "row 1 of a batch has no place in the order"),
        (Bounds(rows=3), batch_of(["a", "b"], x=[1, 2]), "order must be integers or floats"),
        (Bounds(delta=3), batch_of([1, 2], x=[1, 2]), "a window by delta needs the column of its marks"),
        (Bounds(span=3, every=Every(1)), batch_of([0, 2**62], x=[1, 2]), "use a coarser grid"),
        (Bounds(span=3, every=Every(1)), batch_of([0, 2**63 - 1], x=[1, 2]), "too far from zero"),
        (Bounds(span=3.0, every=Every(1.0)), batch_of([0.0, 1e300], x=[1, 2]), "too far from zero"),
    ],
)
def test_rows_that_make_no_sense_are_refused(bounds, batch, message):
    with pytest.raises(sash.SashError) as error:
        answer_whole(bounds, {"m": sash.max("x")}, batch)
    assert message in str(error.value)


def test_a_mark_that_falls_is_refused_with_a_remedy():
    batch = batch_of([1, 2, 3], x=[1, 2, 3])._replace(mark=Column(np.array([5, 9, 7]), None))
    with pytest.raises(sash.DataError, match="row 2 of the sorted rows has 7 after 9; order_by that column"):
        answer_whole(Bounds(delta=3), {"m": sash.max("x")}, batch)


def test_a_column_that_changes_its_type_between_batches_is_refused():
    run = Run(Bounds(rows=2), {"m": sash.max("x")})
    run.push(batch_of([1, 2], x=[1, 2]))
    with pytest.raises(sash.DataError, match="x was int64 in the batches before, and is float64"):
        run.push(batch_of([3, 4], x=[1.0, 2.0]))
