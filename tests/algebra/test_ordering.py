"""Extremes, ends and the largest few: laws, Spark's order, ties, places, overflow."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sash.algebra import ordering
from sash.engine.aggregator import aggregator
from sash.errors import DataError, DeclarationError, SumOverflowError
from tests.algebra.bracketing import (
    answer,
    both_forms,
    case,
    compiled_answer,
    dyadic,
    needs_machine_code,
    require_laws,
    require_round_trip,
    same,
    seeds,
    slid,
    troubled,
)

NAN, INF = math.nan, math.inf

few = st.integers(0, 4)
int64s = st.sampled_from([-(2**63), -1, 0, 7, 2**63 - 1])
uint64s = st.sampled_from([0, 1, 2**63 - 1, 2**63, 2**64 - 1])
truths = st.booleans()
words = st.text("abc", max_size=2)
places = st.integers(-(2**63), 2**63 - 1)

ONES = [
    ordering.min(),
    ordering.max(),
    ordering.range(),
    ordering.min_count(),
    ordering.max_count(),
    ordering.first(),
    ordering.last(),
    ordering.m4(),
    ordering.nth_youngest(n=3),
    ordering.top_k(k=3),
]
TWOS = [ordering.argmin(), ordering.argmax()]
FLOATS = [case(each, "f8", troubled) for each in ONES] + [case(each, "f8", troubled, troubled) for each in TWOS]
CASES = [
    *FLOATS,
    *(case(each, None, st.fractions(max_denominator=5)) for each in ONES),
    *(case(each, None, few, words) for each in TWOS),
    *(case(each, None, troubled) for each in ONES),
    *(case(each, "i8", int64s) for each in ONES),
    *(case(each, "i8", int64s, places) for each in TWOS),
    *(case(each, "u8", uint64s) for each in ONES),
    *(case(each, "u8", uint64s, uint64s) for each in TWOS),
    *(case(each, "?", truths) for each in ONES),
    *(case(each, "?", truths, truths) for each in TWOS),
]
COMPILED = [
    *FLOATS,
    *(case(each, "i8", few) for each in ONES),
    *(case(each, "i8", int64s, places) for each in TWOS),
    *(case(each, "u8", uint64s, uint64s) for each in TWOS),
    *(case(each, "i2", few, few) for each in TWOS),
    *(case(each, "?", truths) for each in ONES),
    *(case(each, "?", truths, truths) for each in TWOS),
    case(ordering.min(), "u8", uint64s),
    case(ordering.max(), "i8", int64s),
    case(ordering.max(), "f4", troubled),
]


def key(x):
    """Spark's order: NaN after every number, and equal to NaN."""
    return (x != x, 0 if x != x else x)


def least(values):
    return min(values, key=key)


def greatest(values):
    return max(values, key=key)


def number_of(value, values):
    return sum(key(each) == key(value) for each in values)


def descending(values):
    return sorted(values, key=key, reverse=True)


MEANINGS = {  # of the values, the first input
    "min": least,
    "max": greatest,
    "range": lambda values: greatest(values) - least(values),
    "min_count": lambda values: number_of(least(values), values),
    "max_count": lambda values: number_of(greatest(values), values),
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
    "m4": lambda values: (values[0], least(values), greatest(values), values[-1]),
    "nth_youngest": lambda values: values[-3] if len(values) >= 3 else None,
    "top_k": lambda values: (descending(values) + [NAN] * 3)[:3],
    "argmin": lambda values: values.index(least(values)),
    "argmax": lambda values: values.index(greatest(values)),
}


def meant(case, rows):
    """What the aggregate means, said with lists; a payload is found by the place of its value."""
    name, values = case.aggregate.name, [row[0] for row in rows]
    if name == "top_k" and case.dtypes[0] is None:
        return descending(values)[:3]
    found = MEANINGS[name](values)
    return rows[found][1] if name in ("argmin", "argmax") else found


def fits(case, wanted):
    return case.aggregate.name != "range" or case.dtypes[0] in (None, "f8") or wanted < 2**63


@pytest.mark.parametrize("case", CASES)
@given(data=st.data(), seed=seeds)
def test_the_laws_hold(case, data, seed):
    require_laws(case.monoid, data.draw(case.rows(least=3)), seed)


@pytest.mark.parametrize("case", CASES)
@given(data=st.data(), seed=seeds)
def test_every_bracketing_gives_the_answer_that_is_meant(case, data, seed):
    rows = data.draw(case.rows())
    wanted = meant(case, rows)
    if fits(case, wanted):
        assert same(answer(case.monoid, rows, seed), wanted)
    else:
        with pytest.raises(SumOverflowError, match=f"range at row 0 is {wanted},"):
            answer(case.monoid, rows, seed)


@needs_machine_code
@pytest.mark.parametrize("case", COMPILED)
@given(data=st.data(), seed=seeds)
def test_machine_code_gives_the_answer_that_is_meant(case, data, seed):
    rows = data.draw(case.rows())
    assert same(compiled_answer(case.monoid, rows, case.dtypes, seed), meant(case, rows))


@both_forms
@pytest.mark.parametrize("aggregate", [*ONES[:3], *ONES[7:], ordering.argmax()], ids=lambda a: a.name)
def test_the_engine_answers_as_a_fold_does(aggregate, compiled):
    rows = [(float(k * k % 11 - 4), float(k))[: aggregate.n_inputs] for k in range(20)]
    require_round_trip(aggregate, rows, dtype="f8", compiled=compiled)


@both_forms
def test_nulls_are_neither_first_nor_last_nor_counted_from_the_end(compiled):
    rows = [(None,), (1.0,), (None,), (2.0,), (None,)]
    assert slid(ordering.first(), rows, 3, compiled=compiled) == [None, 1.0, 1.0, 1.0, 2.0]
    assert slid(ordering.last(), rows, 3, compiled=compiled) == [None, 1.0, 1.0, 2.0, 2.0]
    assert slid(ordering.nth_youngest(n=2), rows, 3, compiled=compiled) == [None, None, None, 1.0, None]


@both_forms
def test_a_window_of_nulls_and_an_empty_window_answer_null(compiled):
    for aggregate in ONES:
        assert slid(aggregate, [(None,), (None,)], 2, compiled=compiled) == [None, None]
        assert aggregator("two_stacks_lite", aggregate, compiled=compiled).query() is None


@given(st.lists(st.sampled_from([0.0, -0.0]), min_size=1, max_size=6), seeds)
def test_of_the_two_zeros_the_first_wins(values, seed):
    rows = [(value,) for value in values]
    for aggregate in (ordering.min(), ordering.max()):
        for dtype in (None, np.dtype("f8")):
            assert math.copysign(1, answer(aggregate.bind(dtype), rows, seed)) == math.copysign(1, values[0])


@needs_machine_code
@pytest.mark.parametrize("dtype", ["f4", "i1", "u2", "i8", "u8", "?"])
def test_extremes_and_ends_keep_the_type_of_their_values(dtype):
    for aggregate in (ordering.min(), ordering.max(), ordering.first(), ordering.last()):
        found = compiled_answer(aggregate.bind(np.dtype(dtype)), [(1,), (0,)], [dtype], seed=0)
        assert found.dtype == dtype


def test_half_floats_are_kept_in_the_narrowest_floats_that_can_be_compiled():
    assert ordering.max().bind(np.dtype("f2")).state.dtype == np.dtype("f4")


@pytest.mark.parametrize("dtype", [None, "f8", "i8", "u8", "i4"])
def test_the_first_of_equal_extremes_gives_the_payload(dtype):
    rows = [(2, 10), (1, 11), (2, 12), (1, 13)]
    bound = (dtype and np.dtype(dtype),) * 2
    for seed in range(10):
        assert answer(ordering.argmin().bind(*bound), rows, seed) == 11
        assert answer(ordering.argmax().bind(*bound), rows, seed) == 10


@needs_machine_code
@pytest.mark.parametrize(
    ("dtype", "lowest", "highest"), [("f8", -INF, NAN), ("i8", -(2**63), 2**63 - 1), ("u8", 0, 2**64 - 1)]
)
def test_an_extreme_value_is_no_tie_with_the_partial_of_no_rows(dtype, lowest, highest):
    for aggregate, value in ((ordering.argmax(), lowest), (ordering.argmin(), highest)):
        monoid = aggregate.bind(np.dtype(dtype), np.dtype("i8"))
        for seed in range(10):
            assert compiled_answer(monoid, [(value, 5), (value, 6)], [dtype, "i8"], seed) == 5


@given(st.lists(st.floats(), min_size=2, max_size=2))
def test_ranks_are_in_the_order_of_floats(values):
    x, y = values
    lift = ordering.argmax().bind(np.dtype("f8"), np.dtype("i8")).lift
    low = ordering.argmin().bind(np.dtype("f8"), np.dtype("i8")).lift
    assert (lift(x, 0)[0] < lift(y, 0)[0]) == (key(x) < key(y))
    assert (low(x, 0)[0] > low(y, 0)[0]) == (key(x) < key(y))
    assert -(2**63) < lift(x, 0)[0] < 2**63 - 1


def test_a_position_stands_in_for_a_payload_that_is_not_named():
    for aggregate in (ordering.argmin, ordering.argmax):
        assert aggregate().columns == ()
        assert aggregate("x").columns == ("x",)
        assert aggregate("x", "id").columns == ("x", "id")
        assert all(each.position_last and each.n_inputs == 2 for each in (aggregate(), aggregate("x", "id")))
        with pytest.raises(DeclarationError, match=r"takes 2 column\(s\), got id"):
            aggregate(payload="id")


def test_strings_have_extremes_and_payloads():
    rows = [("b", "x"), ("a", "y"), ("b", "z")]
    assert answer(ordering.max().bind(None), [row[:1] for row in rows]) == "b"
    assert answer(ordering.argmax().bind(None, None), rows) == "x"
    assert answer(ordering.top_k(k=2).bind(None), [row[:1] for row in rows]) == ["b", "b"]
    assert answer(ordering.m4().bind(None), [row[:1] for row in rows]) == ("b", "a", "b", "b")


def test_a_range_of_fractions_is_a_fraction_and_one_of_nan_is_nan():
    assert answer(ordering.range().bind(None), [(Fraction(1, 3),), (Fraction(1, 2),)]) == Fraction(1, 6)
    assert math.isnan(answer(ordering.range().bind(np.dtype("f8")), [(1.0,), (NAN,)]))


@needs_machine_code
@pytest.mark.parametrize(("dtype", "values"), [("i8", (-(2**63), 0)), ("u8", (0, 2**64 - 1)), ("i8", (2**63 - 1, -1))])
def test_a_range_beyond_64_bits_raises_and_never_wraps(dtype, values):
    monoid, rows = ordering.range().bind(np.dtype(dtype)), [(value,) for value in values]
    wanted = f"range at row 0 is {max(values) - min(values)}, .* Cast the column to float64"
    with pytest.raises(SumOverflowError, match=wanted):
        answer(monoid, rows)
    with pytest.raises(SumOverflowError, match=wanted):
        compiled_answer(monoid, rows, [dtype], seed=3)


def test_the_youngest_is_the_last():
    rows = [(3,), (1,), (2,)]
    for dtype in (None, np.dtype("i4")):
        assert [answer(ordering.nth_youngest(n=n).bind(dtype), rows) for n in (1, 2, 3, 4)] == [2, 1, 3, None]


def test_the_largest_few_are_padded_with_nan_and_a_real_nan_comes_first():
    monoid = ordering.top_k(k=4).bind(np.dtype("f8"))
    assert same(answer(monoid, [(1.0,), (NAN,), (3.0,)]), [NAN, 3.0, 1.0, NAN])
    assert same(answer(monoid, [(-INF,)]), [-INF, NAN, NAN, NAN])
    assert same(answer(monoid, [(float(k),) for k in range(9)]), [8.0, 7.0, 6.0, 5.0])


@given(st.integers(1, 6), st.lists(dyadic, min_size=3, max_size=15), seeds)
def test_the_largest_few_and_the_youngest_are_right_for_every_number_of_them(k, values, seed):
    rows, dtype = [(value,) for value in values], np.dtype("f8")
    require_laws(ordering.top_k(k=k).bind(dtype), rows, seed)
    require_laws(ordering.nth_youngest(n=k).bind(dtype), rows, seed)
    assert same(answer(ordering.top_k(k=k).bind(dtype), rows, seed), (descending(values) + [NAN] * k)[:k])
    assert answer(ordering.nth_youngest(n=k).bind(dtype), rows, seed) == (values[-k] if k <= len(values) else None)


@pytest.mark.parametrize("wrong", [0, -1, 2.0, True, None])
def test_a_number_of_rows_must_be_a_positive_integer(wrong):
    with pytest.raises(DeclarationError, match=f"nth_youngest needs a positive integer n, got n={wrong}"):
        ordering.nth_youngest(n=wrong)
    with pytest.raises(DeclarationError, match=f"top_k needs a positive integer k, got k={wrong}"):
        ordering.top_k("x", wrong)


def test_a_number_in_the_place_of_a_column_is_explained():
    with pytest.raises(DeclarationError, match=r"write nth_youngest\(n=3\)"):
        ordering.nth_youngest(3)


@pytest.mark.parametrize("aggregate", [*ONES, *TWOS], ids=lambda a: a.name)
def test_what_is_no_number_is_refused(aggregate):
    with pytest.raises(DataError, match=f"{aggregate.name} got values of type datetime64"):
        aggregate.bind(*(np.dtype("M8[us]"),) * aggregate.n_inputs)


def test_the_same_declaration_gives_the_same_monoid():
    assert ordering.top_k("x", 3) == ordering.top_k("x", 3)
    assert ordering.top_k("x", 3) != ordering.top_k("x", 4)
    for aggregate in (*ONES, *TWOS):
        for dtype in (None, np.dtype("f8")):
            assert aggregate.bind(*(dtype,) * aggregate.n_inputs) is aggregate.bind(*(dtype,) * aggregate.n_inputs)
