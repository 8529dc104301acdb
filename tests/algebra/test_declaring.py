"""Aggregates of the user's own: what a declaration becomes, and what is refused with which words."""

from __future__ import annotations

import numpy as np
import pytest

from sash.algebra.aggregate import Aggregate
from sash.algebra.declaring import agg, aggregate, codec, monoid_of
from sash.algebra.state import Object, Record, Row, Scalar, parse_state
from sash.engine.aggregator import aggregator
from sash.errors import DataError, DeclarationError, UnsupportedError
from sash.testing.monoids import ArgMax, Concat, Max, Mean, Sum


class Collect:
    """All values, as PySpark's Aggregator would say it."""

    def zero(self):
        return []

    def reduce(self, buffer, value):
        buffer.append(value)
        return buffer

    def merge(self, buffer, other):
        buffer.extend(other)
        return buffer

    def finish(self, buffer):
        return list(buffer)


def declare(state="f8", **parts):
    """Declare an aggregate with some parts of a sum replaced; None removes a part."""
    given = {"identity": 0, "lift": lambda x: x, "combine": lambda older, newer: older + newer} | parts
    body = {name: part for name, part in given.items() if part is not None}
    return aggregate(state=state)(type("Declared", (), body))


@pytest.mark.parametrize(
    ("declared", "parsed"),
    [
        ("f8", Scalar(np.dtype("f8"))),
        (np.int32, Scalar(np.dtype("i4"))),
        ({"n": "i8", "total": "f8"}, Record(("n", "total"), (np.dtype("i8"), np.dtype("f8")))),
        (("u8", 256), Row(np.dtype("u8"), 256)),
        (object, Object()),
        (Scalar(np.dtype("f8")), Scalar(np.dtype("f8"))),
    ],
)
def test_a_state_is_read(declared, parsed):
    assert parse_state(declared) == parsed


@pytest.mark.parametrize(
    ("declared", "words"),
    [
        ("no type", "'no type' is no fixed-width number"),
        ("U5", "'U5' is no fixed-width number"),
        ("O", "object for any Python value"),
        ({}, "state={} has no fields"),
        ({"n": "M8[s]"}, "is no fixed-width number"),
        (("u8", 0), "positive integer, got 0"),
        (("u8", 2.5), "positive integer, got 2.5"),
    ],
)
def test_a_state_that_makes_no_sense_is_refused(declared, words):
    with pytest.raises(DeclarationError) as refused:
        aggregate(state=declared)
    assert words in str(refused.value)


@pytest.mark.parametrize("part", ["lift", "combine"])
def test_a_class_without_a_function_it_needs_is_refused(part):
    with pytest.raises(DeclarationError, match=f"Declared has no {part} function"):
        declare(**{part: None})


def test_a_state_of_fixed_width_needs_an_identity_and_an_object_does_not():
    with pytest.raises(DeclarationError, match="Declared has no identity"):
        declare(identity=None)
    assert monoid_of(declare(state=object, identity=None)).identity is None


def test_the_number_of_inputs_is_that_of_lift():
    assert monoid_of(declare(lift=lambda: 1)).n_inputs == 0
    assert monoid_of(Sum).n_inputs == 1
    assert monoid_of(ArgMax).n_inputs == 2
    assert monoid_of(declare(state=("f8", 2), lift=lambda x, y, out: None)).n_inputs == 2
    assert monoid_of(declare(lift=int)).n_inputs == 1, "a built-in takes one value"


def test_functions_may_be_plain_or_static():
    plain = monoid_of(declare(lift=lambda x: x + 1))
    static = monoid_of(declare(lift=staticmethod(lambda x: x + 1)))
    assert plain.lift(1) == static.lift(1) == 2


def test_claims_are_carried_over_and_nothing_is_claimed_by_default():
    bare = monoid_of(declare(state="i8"))
    assert (bare.commutative, bare.selective, bare.answers_empty, bare.invert) == (False, False, False, None)
    claimed = monoid_of(declare(commutative=True, selective=1, answers_empty=True, exact=True))
    assert (claimed.commutative, claimed.selective, claimed.answers_empty, claimed.exact) == (True, True, True, True)


@pytest.mark.parametrize(
    ("state", "exact"),
    [("i8", True), ("f8", False), ({"n": "i8", "total": "f4"}, False), (("u8", 4), True), (object, None)],
)
def test_an_inverse_of_floats_is_inexact_unless_claimed_otherwise(state, exact):
    assert monoid_of(declare(state=state)).exact is exact
    assert monoid_of(declare(state=state, exact=True)).exact is True


def test_floats_are_not_subtracted_unless_asked():
    declared = declare(state="f8", invert=lambda whole, older: whole - older)
    with pytest.raises(UnsupportedError, match="would subtract floats"):
        aggregator("subtract_on_evict", declared)
    window = aggregator("subtract_on_evict", declared, inexact=True)
    window.bulk_insert([1.5, 2.0])
    window.evict()
    assert window.query() == 2.0


def test_the_same_class_gives_the_same_monoid_every_time():
    assert agg(Mean, "x").bind(None) is agg(Mean).bind(np.dtype("f8")) is monoid_of(Mean)


def test_an_aggregate_knows_its_columns_and_its_card():
    declared = agg(ArgMax, "x", "name")
    assert isinstance(declared, Aggregate)
    assert declared.columns == ("x", "name")
    assert declared.name == "ArgMax"
    assert declared.card.answer == "What stands beside the largest number; the first of equals wins."
    assert (declared.card.selective, declared.card.commutative, declared.card.invertible) == (True, False, False)
    assert agg(ArgMax).columns == ()


def test_an_aggregate_with_too_few_columns_is_refused():
    with pytest.raises(DeclarationError, match=r"ArgMax takes 2 column\(s\), got x"):
        agg(ArgMax, "x")


def test_binding_to_the_wrong_number_of_types_is_refused():
    with pytest.raises(DeclarationError, match=r"ArgMax takes 2 column\(s\), got 1"):
        agg(ArgMax).bind(None)


def test_a_condition_can_be_given_once():
    declared = agg(Sum, "x").where("is_paid")
    assert declared.condition == "is_paid"
    with pytest.raises(DeclarationError, match="has a condition already"):
        declared.where("is_new")


@pytest.mark.parametrize("nothing", [42, "max", object(), dict])
def test_what_is_no_aggregate_is_refused_with_both_ways_to_make_one(nothing):
    with pytest.raises(DeclarationError, match=r"is no aggregate.*@sash\.aggregate.*PySpark Aggregator"):
        agg(nothing)


@pytest.mark.parametrize("given_as", [Collect, Collect()], ids=["class", "instance"])
@pytest.mark.parametrize("algorithm", ["recalc", "two_stacks_lite"])
def test_a_pyspark_style_aggregator_works_although_it_works_in_place(given_as, algorithm):
    window = aggregator(algorithm, given_as)
    for value in range(5):
        window.insert(value)
        window.query()
    window.evict()
    assert window.query() == [1, 2, 3, 4]
    assert window.query() == [1, 2, 3, 4]


def test_a_pyspark_style_zero_may_be_a_plain_value():
    class Total:
        zero = 0

        def reduce(self, buffer, value):
            return buffer + value

        merge = reduce

        def finish(self, buffer):
            return buffer

    window = aggregator("two_stacks_lite", Total())
    window.bulk_insert([1, 2, 3])
    assert window.query() == 6


def test_a_codec_makes_any_object_storable():
    class Point:
        def __init__(self, x):
            self.x = x

    def plain(**parts):
        return declare(state=object, lift=Point, combine=lambda p, q: Point(p.x + q.x), lower=lambda p: p.x, **parts)

    window = aggregator("two_stacks_lite", plain())
    window.insert(1)
    with pytest.raises(UnsupportedError, match=r"a Point cannot be written to bytes\. Declare a codec"):
        window.snapshot()
    stored = plain(codec=codec(lambda p: str(p.x).encode(), lambda data: Point(int(data))))
    window = aggregator("two_stacks_lite", stored)
    window.bulk_insert([1, None, 2])
    again = aggregator("two_stacks_lite", stored)
    again.restore(window.snapshot())
    assert again.query() == 3


def test_several_aggregates_share_one_window_and_answer_as_a_dict():
    window = aggregator("two_stacks_lite", {"total": Sum, "largest": Max, "all": Concat})
    window.bulk_insert([3, 1, None, 2])
    window.evict()
    assert window.query() == {"total": 3, "largest": 2, "all": "1,2"}


def test_no_aggregates_at_all_are_refused():
    with pytest.raises(DeclarationError, match="no aggregate given"):
        aggregator("recalc", {})


def test_the_wrong_number_of_values_is_refused_before_anything_changes():
    window = aggregator("recalc", ArgMax)
    with pytest.raises(DataError, match=r"insert takes 2 value\(s\), got 1"):
        window.insert(1)
    assert len(window) == 0
