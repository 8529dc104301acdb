"""What is particular to flat_fat: figures 3 and 4 of the paper, theorem 4.2, prefixes and suffixes, its bounds."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sash.aggregators import find
from sash.aggregators.flat_fat import HEAD, ROOT
from sash.algebra.declaring import aggregate, monoid_of
from sash.compiling.interpreted_cells import interpreted_cells
from sash.compiling.jit import interpreted
from sash.engine.aggregator import aggregator
from sash.errors import DataError, DeclarationError, FormatError, UnsupportedError
from sash.testing.counting import counting
from sash.testing.monoids import Affine, ArgMax, Bloom, Concat, Max, Sum
from tests.aggregators.walking import Poisoned

SIZES = st.integers(1, 40)


def flat_fat(aggregate, values, **options):
    return aggregator("flat_fat", aggregate, values=values, **options)


def recorded(text):
    """A tree over the characters of a text, and the list of all calls of combine."""
    calls = []

    @aggregate(state=object)
    class Recorded:
        def lift(x):
            return x

        def combine(older, newer):
            calls.append((older, newer))
            return older + newer

    return flat_fat(Recorded, text), calls


def folded(aggregate, values):
    monoid = monoid_of(aggregate)
    total = functools.reduce(monoid.combine, [monoid.lift(value) for value in values])
    return monoid.lower(total) if monoid.lower else total


def test_figure_3_new_computes_the_inner_nodes_level_by_level():
    tree, calls = recorded("12345678")
    a_to_d, e_and_f, g = calls[:4], calls[4:6], calls[6:]
    assert set(a_to_d) == {("1", "2"), ("3", "4"), ("5", "6"), ("7", "8")}
    assert set(e_and_f) == {("12", "34"), ("56", "78")}
    assert g == [("1234", "5678")]
    assert tree.aggregate() == "12345678"


def test_figure_4_updates_six_nodes_in_three_levels():
    tree, calls = recorded("12345678")
    calls.clear()
    tree.update({0: "A", 1: "B", 3: "D", 6: "G"})  # the paper's a[1], a[2], a[4] and a[7]
    w1, w2, w3 = calls[:3], calls[3:5], calls[5:]
    assert set(w1) == {("A", "B"), ("3", "D"), ("G", "8")}, "the nodes a, b and d"
    assert set(w2) == {("AB", "3D"), ("56", "G8")}, "the nodes e and f"
    assert w3 == [("AB3D", "56G8")], "the node g"
    assert tree.aggregate() == "AB3D56G8"


def test_one_change_updates_the_way_to_the_root_only():
    tree, calls = recorded("12345678")
    calls.clear()
    tree.update({2: "C"})  # a[3]: the nodes b, e, g, in this order
    assert calls == [("C", "4"), ("12", "C4"), ("12C4", "5678")]


def test_prefix_of_seven_is_e_and_c_and_the_seventh():
    tree, calls = recorded("12345678")
    calls.clear()
    assert tree.prefix(6) == "1234567"
    assert calls == [("56", "7"), ("1234", "567")]


def test_suffix_of_two_is_the_second_and_b_and_f():
    tree, calls = recorded("12345678")
    calls.clear()
    assert tree.suffix(1) == "2345678"
    assert calls == [("2", "34"), ("234", "5678")]


@given(n=SIZES, data=st.data())
def test_theorem_4_2_bounds_every_operation(n, data):
    counted, calls = counting(Concat)
    tree = flat_fat(counted, range(n))
    assert calls.take() == n - 1
    locations = data.draw(st.sets(st.integers(0, n - 1), min_size=1))
    tree.update({location: -location for location in locations})
    m = len(locations)
    assert calls.take() <= m * (1 + math.ceil(math.log2(n / m)))
    tree.aggregate()
    assert calls.take() == 0
    i = data.draw(st.integers(0, n - 1))
    tree.prefix(i)
    assert calls.take() <= math.ceil(math.log2(n))
    tree.suffix(i)
    assert calls.take() <= math.ceil(math.log2(n))


@pytest.mark.parametrize("aggregate", [Concat, Affine])
@given(n=SIZES, rounds=st.lists(st.dictionaries(st.integers(0, 39), st.integers(0, 99)), max_size=8))
def test_any_updates_keep_the_invariants_and_every_prefix_and_suffix(aggregate, n, rounds):
    values = list(range(n))
    tree = flat_fat(aggregate, values)
    for changes in rounds:
        inside = {location: value for location, value in changes.items() if location < n}
        tree.update(inside)
        for location, value in inside.items():
            values[location] = value
        tree.check_invariants([monoid_of(aggregate).lift(value) for value in values])
        assert tree.aggregate() == tree.query() == folded(aggregate, values)
        for i in range(n):
            assert tree.prefix(i) == folded(aggregate, values[: i + 1])
            assert tree.suffix(i) == folded(aggregate, values[i:])


@pytest.mark.parametrize("n", [1, 2, 6, 8, 11])
def test_machine_code_agrees_and_never_combines_with_an_identity(n):
    values = list(range(n))
    tree = flat_fat(Poisoned, values, compiled=True, dtype="i8")
    for step in range(20):
        changes = {(step * 7 + k) % n: 10 * step + k for k in range(min(n, 1 + step % 4))}
        tree.update(changes)
        for location, value in changes.items():
            values[location] = value
        tree.check_invariants([Affine.lift(value) for value in values])
        assert tree.aggregate() == folded(Affine, values)
        assert tree.prefix(step % n) == folded(Affine, values[: step % n + 1])
        assert tree.suffix(step % n) == folded(Affine, values[step % n :])


@pytest.mark.parametrize("compiled", [False, True])
def test_locations_may_be_null(compiled):
    tree = flat_fat(Max, [None] * 5, compiled=compiled, dtype="f8")
    assert tree.aggregate() is None
    tree.update({1: 3.0, 4: 1.0})
    assert (tree.aggregate(), tree.prefix(0), tree.suffix(2)) == (3.0, None, 1.0)
    tree.update({1: None})
    assert tree.aggregate() == 1.0


@pytest.mark.parametrize("compiled", [False, True])
def test_rows_of_a_matrix_are_combined_like_numbers(compiled):
    tree = flat_fat(Bloom, range(6), compiled=compiled, dtype="i8")
    tree.update({2: 50, 5: 51})
    alone = flat_fat(Bloom, [0, 1, 50, 3, 4, 51])
    assert np.array_equal(tree.aggregate(), alone.aggregate())


def test_several_aggregates_and_several_inputs_share_one_tree():
    tree = flat_fat({"largest": Max, "where": ArgMax}, [(3, 10), (9, 11), None, (9, 13)])
    assert tree.aggregate() == {"largest": 9.0, "where": 11}
    tree.update({1: (0, 11)})
    assert tree.suffix(1) == {"largest": 9.0, "where": 13}


def test_goes_on_from_bytes():
    tree = flat_fat(Concat, "abcde")
    tree.update({1: "B"})
    other = flat_fat(Concat, "xyz")
    other.restore(tree.snapshot())
    assert len(other) == 5
    other.update({4: "E"})
    other.check_invariants(list("aBcdE"))
    assert (other.aggregate(), other.prefix(1)) == ("a,B,c,d,E", "a,B")
    with pytest.raises(FormatError, match="flat_fat"):
        flat_fat(Sum, [1]).restore(tree.snapshot())


@pytest.mark.parametrize("location", [-1, 4])
def test_a_location_outside_is_an_error_and_nothing_is_changed(location):
    tree = flat_fat(Concat, "abcd")
    with pytest.raises(DataError, match=f"location {location} is outside 0 to 3"):
        tree.update({0: "A", location: "?"})
    with pytest.raises(DataError, match="outside 0 to 3"):
        tree.prefix(location)
    with pytest.raises(DataError, match="outside 0 to 3"):
        tree.suffix(location)
    assert tree.aggregate() == "a,b,c,d"


def test_a_value_of_the_wrong_width_is_an_error():
    with pytest.raises(DataError, match="a tuple of 2 values, got 5"):
        flat_fat(ArgMax, [5])


def test_no_locations_are_an_error():
    with pytest.raises(DeclarationError, match="at least one location"):
        flat_fat(Sum, [])


def test_refuses_to_insert_and_evict_and_names_what_does():
    tree = flat_fat(Sum, [1, 2])
    for change in (lambda: tree.insert(3), tree.evict, lambda: tree.bulk_insert([3]), lambda: tree.bulk_evict(1)):
        with pytest.raises(UnsupportedError, match="Use reactive"):
            change()
    with pytest.raises(UnsupportedError, match="Use reactive"):
        find("flat_fat").build(interpreted_cells(monoid_of(Sum)), interpreted)
    assert tree.aggregate() == 3


@pytest.mark.parametrize(("invariant", "cell"), [("I1", 9), ("I2", 5), ("I2", ROOT)])
def test_damage_to_a_cell_is_named_by_its_invariant(invariant, cell):
    tree = flat_fat(Concat, "abcdefgh")
    tree._state.pool[cell] = "damaged"
    with pytest.raises(AssertionError, match=f"{invariant} is broken"):
        tree.check_invariants(list("abcdefgh"))


@pytest.mark.parametrize(("link", "value"), [(HEAD, 2), (HEAD, 4), (6, 6)])
def test_damage_to_the_list_breaks_the_third_invariant(link, value):
    tree = flat_fat(Concat, "abcdefgh")
    tree._state.links[link] = value
    with pytest.raises(AssertionError, match="I3 is broken"):
        tree.check_invariants(list("abcdefgh"))
