"""Every window of the contract against its definition, recalculated in plain Python, over Arrow tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sash
from tests.frames.tables import (
    AGGREGATES,
    aggregated,
    answers_in,
    as_table,
    in_order,
    range_frame,
    recalculated,
    same,
    tables,
    with_timestamps,
)

pytestmark = pytest.mark.usefixtures("interpreted")

W = sash.window(by="k", order_by="t")


SPANS = st.integers(1, 9)


def check(window, rows, frame):
    found = answers_in(window.agg(**AGGREGATES)(as_table(rows)))
    assert same(found, recalculated(rows, frame)), (window, rows)


@given(tables(null_times=True), st.integers(1, 5), st.integers(0, 4))
def test_rows_are_this_row_and_those_before_it(rows, n, least):
    def frame(before, row, after):
        window = [*before, row][-n:]
        return window if len(window) >= least else None

    check(W.rows(n, min_rows=least), rows, frame)


@given(
    tables(null_times=True),
    SPANS,
    st.sampled_from(["both", "right", "left", "none"]),
    st.sampled_from(["peers", "upto"]),
)
def test_a_range_is_what_its_bounds_say(rows, span, closed, ties):
    check(W.range(span, closed=closed, ties=ties), rows, range_frame(span, closed=closed, ties=ties))


@given(tables(), SPANS, st.integers(1, 4))
def test_of_two_bounds_the_tighter_one_holds(rows, span, n):
    check(W.range(span, rows=n), rows, range_frame(span, rows=n))


@given(tables(), SPANS, st.integers(0, 6), st.sampled_from(["both", "right", "left", "none"]))
def test_a_lagging_window_ended_before_this_row(rows, span, lag, closed):
    check(W.range(span, lag=lag, closed=closed), rows, range_frame(span, lag=lag, closed=closed))


@given(tables(null_times=True), st.sampled_from(["peers", "upto"]))
def test_everything_is_all_rows_so_far(rows, ties):
    def frame(before, row, after):
        peers = [each for each in after if each["t"] == row["t"]] if ties == "peers" else []
        return [*before, row, *peers]

    check(W.everything(ties=ties), rows, frame)


@given(tables(), st.integers(1, 5))
def test_a_session_begins_after_a_silence(rows, gap):
    def frame(before, row, after):
        window = [row]
        for each in reversed(before):
            if window[0]["t"] - each["t"] > gap:
                break
            window.insert(0, each)
        return window + [each for each in after if each["t"] == row["t"]]

    check(W.session(gap), rows, frame)


@given(tables(), st.integers(1, 9), st.sampled_from(["peers", "upto"]))
def test_a_delta_is_a_distance_in_another_column(rows, distance, ties):
    def frame(before, row, after):
        peers = [each for each in after if each["m"] == row["m"]] if ties == "peers" else []
        return [each for each in [*before, row] if row["m"] - each["m"] <= distance] + peers

    check(W.delta("m", distance, ties=ties), rows, frame)


@given(tables(null_times=True))
def test_since_begins_anew_with_each_marked_row(rows):
    def frame(before, row, after):
        window = [*before, row]
        marked = [place for place, each in enumerate(window) if each["b"]]
        return window[marked[-1] if marked else 0 :]

    check(W.since("b"), rows, frame)


@given(tables(), st.integers(1, 4))
def test_every_so_many_rows_of_a_key_are_answered(rows, n):
    found = W.range(4).every(rows=n).agg(**AGGREGATES)(as_table(rows))
    places = {id(row): place for key in {row["k"] for row in rows} for place, row in enumerate(own(rows, key), 1)}
    wanted = [place for place, row in enumerate(rows) if places[id(row)] % n == 0]
    answers = recalculated(rows, range_frame(4))
    assert same(found.to_pylist(), [{**rows[place], **answers[place]} for place in wanted])


@given(
    tables(null_times=True),
    st.integers(1, 6),
    st.integers(1, 5),
    st.sampled_from(["both", "right", "left", "none"]),
    st.integers(0, 4),
)
def test_a_grid_answers_at_its_instants(rows, span, step, closed, origin):
    found = W.range(span, closed=closed).every(step, origin=origin).agg(**AGGREGATES)(as_table(rows))
    assert same(found.to_pylist(), on_grid(rows, span, step, closed, origin))


@given(tables(), st.integers(1, 6))
def test_tumbling_windows_lie_side_by_side(rows, step):
    found = W.tumbling(step).agg(**AGGREGATES)(as_table(rows)).to_pylist()
    wanted = on_grid(rows, step, step, "left", 0)
    assert same(found, [{"k": row["k"], "t_start": row["t"] - step, **without_key(row)} for row in wanted])
    assert sum(row["n"] for row in found) == len(rows)


def own(rows, key):
    return [row for row in in_order(rows) if row["k"] == key]


def without_key(row):
    return {name: value for name, value in row.items() if name != "k"}


def on_grid(rows, span, step, closed, origin):
    """Keys as they first appear; from the first instant its first row is not after to that of its last row."""
    answers = []
    timed = [row for row in rows if row["t"] is not None]
    for key in dict.fromkeys(row["k"] for row in timed):
        mine = own(timed, key)
        instant = first_instant(mine[0]["t"], step, closed, origin)
        while instant <= first_instant(mine[-1]["t"], step, closed, origin):
            window = range_frame(span, closed=closed)(mine, {"t": instant, "i": None, "x": None}, [])[:]
            inside = [row for row in window if "k" in row]
            answers.append({"k": key, "t": instant, **aggregated(inside)})
            instant += step
    return answers


def first_instant(time, step, closed, origin):
    """The first instant whose window a row at this time is inside or before."""
    instant = time - (time - origin) % step
    while instant < time or (instant == time and closed in ("left", "none")):
        instant += step
    return instant


@pytest.mark.parametrize(("unit", "tz"), [("s", None), ("ms", "UTC"), ("us", "Europe/Paris"), ("ns", None)])
@given(rows=tables(null_times=True), span=SPANS)
def test_a_duration_means_the_same_in_every_unit_and_zone(unit, tz, rows, span):
    spec = W.range(f"{span} seconds").agg(**AGGREGATES)
    found = answers_in(spec(with_timestamps(as_table(rows), unit, tz)))
    assert same(found, answers_in(W.range(span).agg(**AGGREGATES)(as_table(rows))))


@given(tables())
def test_a_length_finer_than_the_column_is_not_rounded(rows):
    table = with_timestamps(as_table(rows), "s")
    assert same(
        answers_in(W.range("2500 ms", closed="right").agg(**AGGREGATES)(table)),
        recalculated(rows, range_frame(2.5, closed="right")),
    )
    assert same(
        answers_in(W.range(2.5, closed="left").agg(**AGGREGATES)(as_table(rows))),
        recalculated(rows, range_frame(2.5, closed="left")),
    )


@given(tables(), st.randoms(use_true_random=False))
def test_any_order_of_the_input_gives_the_same_rows(rows, random):
    unique = [{**row, "m": place} for place, row in enumerate(rows)]  # the mark breaks ties
    spec = sash.window(by="k", order_by=["t", "m"]).rows(3).agg(**AGGREGATES)
    shuffled = random.sample(unique, len(unique))
    found = {row["m"]: row for row in spec(as_table(shuffled)).to_pylist()}
    wanted = spec(as_table(unique)).to_pylist()
    assert same([found[row["m"]] for row in wanted], wanted)


@given(tables(), SPANS)
def test_specs_together_answer_as_each_alone(rows, span):
    short = W.range(span).agg(**AGGREGATES)
    long = W.rows(4).agg(**{f"{name}_4": each for name, each in AGGREGATES.items()})
    both = sash.together(short, long)(as_table(rows))
    assert same(both.to_pylist(), long(short(as_table(rows))).to_pylist())


@given(tables())
def test_without_by_all_rows_are_one_key(rows):
    found = sash.window(order_by="t").range(3).agg(**AGGREGATES)(as_table(rows))
    assert same(answers_in(found), recalculated([{**row, "k": "a"} for row in rows], range_frame(3)))


@given(tables())
def test_where_counts_only_marked_rows(rows):
    spec = W.rows(3).agg(n=sash.count().where("b"), total=sash.sum("i").where("b"), top=sash.max("x").where("b"))

    def frame(before, row, after):
        return [each for each in [*before, row][-3:] if each["b"]]

    assert same(answers_in(spec(as_table(rows))), recalculated(rows, frame))


@pytest.mark.parametrize("name", ["daba_lite", "recalc", "two_stacks"])
@given(rows=tables())
def test_an_algorithm_asked_for_gives_the_same(name, rows):
    spec = W.range(4).agg(n=sash.count())
    assert spec.algorithm(name)(as_table(rows))["n"].equals(spec(as_table(rows))["n"])
