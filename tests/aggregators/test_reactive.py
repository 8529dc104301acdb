"""What is particular to reactive: figure 5 of the paper, holes, room, and costs that follow the changes."""

from __future__ import annotations

import functools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sash.aggregators.contract import END, MASK, OLDEST, View
from sash.aggregators.reactive import ALGORITHM, HOLES
from sash.algebra.declaring import aggregate, monoid_of
from sash.engine.aggregator import aggregator
from sash.engine.building import build, new_state
from sash.engine.events import Folder, reader
from sash.errors import EmptyWindowError
from sash.testing.counting import counting
from sash.testing.monoids import Affine, Concat, Max, Sum

RUNS = st.lists(st.tuples(st.sampled_from("+-x~?s"), st.integers(1, 20), st.integers(0, 99)), max_size=15)


@aggregate(state={"slope": "i8", "offset": "i8"})
class Poisoned:
    """Affine maps with an identity that is none: whoever combines with it spoils the answer."""

    identity = (0, 0)
    lift, combine, lower = Affine.lift, Affine.combine, Affine.lower


def follow(runs, aggregate, **options):
    """Insert (+), evict (-), evict anywhere (x), slide (~), query (?), save and restore (s); all must hold."""
    window, monoid, lifted, held = aggregator("reactive", aggregate, **options), monoid_of(aggregate), [], []
    for steps, times, place in [*runs, ("?", 1, 0)]:
        for step in steps.replace("~", "-+?") * times:
            if step == "+":
                lifted.append(monoid.lift(37 * len(lifted) % 101))
                held.append(lifted[-1])
                window.insert(37 * (len(lifted) - 1) % 101)
            elif step == "-" and held:
                window.evict()
                del held[0]
            elif step == "x" and held:
                window.evict_at(place % len(held))
                del held[place % len(held)]
            elif step == "?":
                total = functools.reduce(monoid.combine, held) if held else None
                assert window.query() == (monoid.lower(total) if monoid.lower and held else total)
            elif step == "s":
                saved, window = window.snapshot(), aggregator("reactive", aggregate, **options)
                window.restore(saved)
            window.check_invariants(lifted)
            assert len(window) == len(held)


def filled(text):
    window = aggregator("reactive", Concat)
    window.bulk_insert(text)
    return window


def slots(state):
    """The leaves, None where no element is, and the places of the front and the back pointer."""
    oldest, end, mask = state.at[OLDEST], state.at[END], state.at[MASK]
    in_use = {i & mask for i in range(oldest, end)}
    leaves = [state.pool[mask + 1 + place] if place in in_use else None for place in range(mask + 1)]
    return leaves, oldest & mask, (end - 1) & mask


@pytest.mark.parametrize("aggregate", [Concat, Affine])
@given(runs=RUNS)
def test_every_step_of_any_interleaving_keeps_the_invariants(aggregate, runs):
    follow(runs, aggregate)


def test_machine_code_keeps_the_invariants():
    steps, times = "+?~x?s+x~-x~?-+x", (20, 1, 30, 6, 1, 1, 9, 5, 9, 15, 3, 20, 2, 10, 9, 8)
    follow(list(zip(steps, times, range(1, 200, 7), strict=False)), Affine, compiled=True, dtype="i8")


def test_a_window_without_holes_never_combines_with_an_identity():
    steps, times = "+?~s-~-+", (20, 1, 40, 1, 15, 20, 5, 9)
    follow([(step, n, 0) for step, n in zip(steps, times, strict=True)], Poisoned, compiled=True, dtype="i8")


@pytest.mark.parametrize(
    ("aggregate", "answers"),
    [(Max, [4, 7, 7, 7, 7, 9]), (Concat, ["4", "4,7", "4,7,3", "4,7,3,2", "7,3,2", "7,3,2,9"])],
)
def test_figure_5_step_by_step(aggregate, answers):
    """Six events in a buffer of four slots; the last one makes the buffer inverted."""
    built = build(ALGORITHM, (monoid_of(aggregate),), False, ())
    state, fifo, cells = new_state(built, 4), built.fifo, built.cells
    lift = monoid_of(aggregate).lift
    events = [
        (4, [4, None, None, None], 0, 0),
        (7, [4, 7, None, None], 0, 1),
        (3, [4, 7, 3, None], 0, 2),
        (2, [4, 7, 3, 2], 0, 3),
        (None, [None, 7, 3, 2], 1, 3),
        (9, [9, 7, 3, 2], 1, 0),
    ]
    for (arrival, wanted, front, back), answer in zip(events, answers, strict=True):
        if arrival is None:
            fifo.evict(state)
        else:
            fifo.insert(state, ([arrival],), 0)
        assert slots(state) == ([None if value is None else lift(value) for value in wanted], front, back)
        results = cells.results(1)
        cells.lower(results, 0, state.pool, fifo.query(state))
        assert results[0][0] == answer


def test_an_inverted_buffer_is_its_suffix_followed_by_its_prefix():
    calls = []

    @aggregate(state=object)
    class Recorded:
        def lift(x):
            return x

        def combine(older, newer):
            calls.append((older, newer))
            return older + newer

    window = aggregator("reactive", Recorded)
    window.bulk_insert("abcdefgh")
    window.bulk_evict(5)
    window.bulk_insert("ij")
    assert window.query() == "fghij"
    assert set(calls[:3]) == {("i", "j"), ("g", "h"), ("f", "gh")}, "the nodes on the ways from both ends"
    assert calls[3:] == [("fgh", "ij")], "which meet in the root"
    calls.clear()
    assert window.query() == "fghij"
    assert calls == [], "nothing has changed"


def test_inserts_and_evictions_combine_nothing_before_the_query():
    counted, calls = counting(Sum)
    window = aggregator("reactive", counted)
    window.bulk_insert(range(60))
    window.evict_at(30)
    window.bulk_evict(9)
    assert calls.take() == 0
    assert window.query() == sum(range(60)) - 30 - sum(range(9))
    assert 0 < calls.take() <= 63
    window.query()
    assert calls.take() == 0


@given(n=st.integers(1, 64), moves=st.lists(st.integers(1, 70), min_size=1, max_size=6))
def test_m_changes_cost_at_most_what_theorem_4_2_says(n, moves):
    """A window of n in a buffer of 64 slides by `moves`; an inverted one adds a suffix to a prefix."""
    counted, calls = counting(Concat)
    window = aggregator("reactive", counted)
    window.bulk_insert(range(64))
    window.bulk_evict(64 - n)
    window.query()
    calls.take()
    capacity = window._state.at[MASK] + 1
    for move in moves:
        for value in range(move):
            window.evict()
            window.insert(value)
        window.query()
        m = min(2 * move, capacity)
        bound = m * (1 + math.ceil(math.log2(capacity / m)))
        inverted = (window._state.at[END] - 1) % capacity < window._state.at[OLDEST] % capacity
        assert calls.take() <= bound + inverted * math.log2(capacity)


@pytest.mark.parametrize("n", [8, 48, 64, 1000])
def test_a_round_takes_log_n_combines_on_average(n):
    counted, calls = counting(Sum)
    window = aggregator("reactive", counted)
    window.bulk_insert(range(n))
    window.query()
    calls.take()
    rounds = []
    for value in range(4 * n):
        window.evict()
        window.insert(value)
        window.query()
        rounds.append(calls.take())
    assert sum(rounds) <= math.log2(n) * len(rounds)
    assert max(rounds) <= 2 * math.ceil(math.log2(n))


def test_evictions_of_one_node_are_repaired_once():
    counted, calls = counting(Sum)
    window = aggregator("reactive", counted)
    window.bulk_insert(range(64))
    window.query()
    calls.take()
    window.bulk_evict(32)
    assert window.query() == sum(range(32, 64))
    assert calls.take() == 0, "half of the tree is out of use, and the other half is the answer"


def test_a_full_buffer_doubles_if_more_than_three_quarters_hold_elements():
    window = filled("abcdefgh")
    window.evict_at(4)
    assert (len(window), window._state.at[MASK], window._state.at[HOLES]) == (7, 7, 1)
    window.insert("i")
    assert (len(window), window._state.at[MASK], window._state.at[HOLES]) == (8, 15, 0)
    assert window.query() == "a,b,c,d,f,g,h,i"


def test_a_full_buffer_is_compacted_if_at_most_three_quarters_hold_elements():
    window = filled("abcdefgh")
    window.evict_at(4)
    window.evict_at(1)
    window.insert("i")
    assert (len(window), window._state.at[MASK], window._state.at[HOLES]) == (7, 7, 0)
    window.check_invariants(list("abcdefghi"))
    assert window.query() == "a,c,d,f,g,h,i"
    window.insert("j")
    assert window._state.at[MASK] == 7
    window.insert("k")
    assert window._state.at[MASK] == 15
    assert window.query() == "a,c,d,f,g,h,i,j,k"


@given(turned=st.integers(0, 15), leaving=st.sets(st.integers(1, 15), min_size=4, max_size=11))
def test_compacting_puts_right_every_node_wherever_the_window_begins(turned, leaving):
    texts = [str(i) for i in range(16 + turned)]
    window = filled(texts[:16])
    for text in texts[16:]:
        window.evict()
        window.insert(text)
    held = texts[turned:]
    for position in sorted(leaving, reverse=True):
        window.evict_at(position)
        del held[position]
    assert window.query() == ",".join(held)
    window.insert("new")
    assert (window._state.at[MASK], window._state.at[HOLES]) == (15, 0)
    assert window.query() == ",".join([*held, "new"])
    window.check_invariants([*texts, "new"])


@given(turned=st.integers(0, 7), size=st.integers(3, 8), data=st.data())
def test_compacting_is_right_even_before_the_buffer_is_full(turned, size, data):
    texts = [str(i) for i in range(size + turned)]
    window = filled(texts[:size])
    for text in texts[size:]:
        window.evict()
        window.insert(text)
    held = texts[turned:]
    for position in sorted(data.draw(st.sets(st.integers(1, size - 1), max_size=size - 2)), reverse=True):
        window.evict_at(position)
        del held[position]
    window.query()
    window._middle.compact(window._state)
    window.check_invariants(texts)
    assert window.query() == ",".join(held)
    window.check_invariants(texts)


def test_a_buffer_less_than_a_quarter_full_halves_whoever_leaves():
    window = filled("abcdefghijkl")
    assert window._state.at[MASK] == 15
    for _ in range(9):
        window.evict_at(1)
    assert (len(window), window._state.at[MASK], window._state.at[HOLES]) == (3, 7, 0)
    window.check_invariants(list("abcdefghijkl"))
    assert window.query() == "a,k,l"


def test_the_oldest_element_takes_the_holes_behind_it_along():
    window = filled("abcdef")
    window.evict_at(1)
    window.evict_at(1)
    assert (window._state.at[OLDEST], window._state.at[HOLES]) == (0, 2)
    window.evict()
    assert (window._state.at[OLDEST], window._state.at[HOLES]) == (3, 0)
    assert window.query() == "d,e,f"


def test_positions_count_elements_and_not_holes():
    window = filled("abcdefg")
    for position, rest in [(5, "a,b,c,d,e,g"), (1, "a,c,d,e,g"), (4, "a,c,d,e"), (0, "c,d,e"), (2, "c,d")]:
        window.evict_at(position)
        assert window.query() == rest
    window.insert("h")
    assert window.query() == "c,d,h"


@pytest.mark.parametrize("compiled", [False, True])
def test_a_null_is_an_element_and_no_hole(compiled):
    window = aggregator("reactive", Max, compiled=compiled, dtype="f8")
    window.bulk_insert([None, 5.0, None, 3.0])
    assert len(window) == 4
    window.evict_at(1)
    assert (len(window), window.query()) == (3, 3.0)
    window.evict_at(2)
    assert (len(window), window.query()) == (2, None)
    window.check_invariants([None, 5.0, None, 3.0])


def test_a_window_emptied_from_the_middle_begins_again():
    window = filled("abc")
    for position in (1, 1, 0):
        window.evict_at(position)
    assert (len(window), window.query()) == (0, None)
    window.insert("d")
    assert window.query() == "d"


@pytest.mark.parametrize("position", [-1, 3])
def test_evicting_where_there_is_no_element_is_an_error(position):
    window = filled("abcd")
    window.evict_at(1)
    with pytest.raises(EmptyWindowError, match=rf"evict_at\({position}\) in a window of 3 events"):
        window.evict_at(position)
    assert window.query() == "a,c,d"


def test_holes_are_not_written_to_bytes():
    window = filled("abcdefgh")
    window.evict_at(3)
    window.query()
    other = aggregator("reactive", Concat)
    other.restore(window.snapshot())
    assert (len(other), other._state.at[HOLES]) == (7, 0)
    other.check_invariants(list("abcdefgh"))
    assert other.query() == window.query() == "a,b,c,e,f,g,h"


@pytest.mark.parametrize(
    ("invariant", "part", "place", "value"),
    [
        ("I1", "pool", 8 + 3, "damaged"),
        ("I2", "pool", 5, "damaged"),
        ("I4", "pool", 1, "damaged"),
        ("I5", "links", 8 + 3, 99),
        ("I6", "at", HOLES, 0),
        ("I7", "links", 8 + 4, 4),
    ],
)
def test_damage_is_named_by_its_invariant(invariant, part, place, value):
    window = filled("abcdefgh")
    window.evict_at(5)
    window.evict()
    window.insert("i")
    window.query()
    getattr(window._state, part)[place] = value
    truth = Folder(monoid_of(Concat), [*"abcde", None, *"ghi"])
    with pytest.raises(AssertionError, match=f"{invariant} is broken"):
        ALGORITHM.check(View(window._state, reader(window._state.pool, is_compiled=False), truth))
