"""Windows that slide by a policy: the search, what is refused, columns by name, bytes and back."""

from __future__ import annotations

from math import log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

import sash
from sash import policies
from sash.algebra.sessions import last_session
from sash.compiling.jit import is_enabled
from sash.engine.aggregator import aggregator
from sash.errors import DataError, DeclarationError, FormatError, UnknownNameError, UnsupportedError
from sash.testing.counting import counting
from sash.testing.monoids import Affine, Concat, Max

TREES = ["amta", "log_mta"]
ONE_BY_ONE = ["recalc", "two_stacks_lite", "daba_lite"]
compiled_only = pytest.mark.skipif(not is_enabled(), reason="machine code is switched off")


def at_most_three(total, old):
    return total.n - old.n >= 3


def at_most_ten(total, old):
    return total.sum - old.sum + old.last > 10


def summed():
    return {"sum": sash.sum("x"), "last": sash.last("x"), "all": sash.collect("x")}


# --- the search


def asked_for(algorithm, size, begin):
    """A window of `size` counted from element `begin`, and a function that makes m elements go and counts questions."""
    window = aggregator(algorithm, {"n": sash.count()})
    window.bulk_insert([0] * begin)
    window.bulk_evict(begin)
    window.bulk_insert([0] * size)
    saved, asked = window.snapshot(), []

    def ask(m):
        def policy(total, old):
            asked.append(old.n)
            return old.n <= m

        asked.clear()
        window.restore(saved)
        window.bulk_evict_while(policy)
        assert len(window) == size - m
        return list(asked)

    return ask


@pytest.mark.parametrize("algorithm", TREES)
@pytest.mark.parametrize("begin", [*range(10), 21, 31, 32, 63, 127, 1023])
def test_a_prefix_of_m_takes_two_logarithms_of_m_questions_wherever_the_window_begins(algorithm, begin):
    for size in (1, 2, 3, 16, 100):
        ask = asked_for(algorithm, size, begin)
        assert ask(0) == [1], "nothing leaves: one question"
        assert len(ask(1)) <= 2, "one element leaves: two questions"
        for m in range(2, size + 1):
            assert len(ask(m)) <= 2 * log2(m) + 4, (size, m)


def test_the_questions_of_a_search_that_rises_and_falls():
    ask = asked_for("amta", 100, 0)
    assert ask(27) == [1, 2, 4, 8, 16, 32, 24, 28, 26, 27]


@pytest.mark.parametrize("algorithm", ONE_BY_ONE)
def test_without_levels_the_search_asks_about_one_element_at_a_time(algorithm):
    asked = []

    def policy(total, old):
        asked.append(old.n)
        return total.n == 9 and old.n <= 5

    window = aggregator(algorithm, {"n": sash.count()}, policy=policy)
    window.bulk_insert([0] * 8)
    asked.clear()
    window.insert(0)
    assert asked == [1, 2, 3, 4, 5, 6]
    assert len(window) == 4


@pytest.mark.parametrize("algorithm", TREES)
def test_sliding_by_a_policy_costs_logarithms_even_if_half_the_window_goes(algorithm):
    counted, calls = counting(Max)

    def halve(total, old):
        return total.n >= 1024 and old.n <= 512

    window = aggregator(algorithm, {"max": counted, "n": sash.count()}, policy=halve)
    worst = 0
    for value in range(3000):
        window.insert(value)
        is_sample = value < 32 or (value + 1) & value == 0
        worst, _ = max(worst, 0 if is_sample else calls.combine), calls.take()
    assert len(window) < 1024
    assert worst <= 7 * 10


# --- monotone or not


def only_even(total, old):
    return old.n % 2 == 0


@pytest.mark.parametrize("algorithm", TREES)
def test_a_policy_that_is_not_monotone_is_refused_where_the_search_leaps(algorithm):
    window = aggregator(algorithm, {"n": sash.count()}, policy=only_even)
    window.insert(1)
    with pytest.raises(
        DataError, match=r"only_even is not monotone .* window of 2, .* every shorter .* two_stacks_lite"
    ):
        window.insert(1)


@pytest.mark.parametrize("algorithm", TREES)
def test_values_that_make_a_policy_lose_its_order_are_found(algorithm):
    window = aggregator(algorithm, summed(), policy=at_most_ten)
    with pytest.raises(DataError, match="at_most_ten is not monotone"):
        window.bulk_insert([1, -8, 12, 1, 1, 1])


@pytest.mark.parametrize("algorithm", ONE_BY_ONE)
def test_one_element_at_a_time_stops_at_the_first_to_stay(algorithm):
    window = aggregator(algorithm, {"n": sash.count()}, policy=only_even)
    window.bulk_insert([1, 1, 1, 1])
    assert len(window) == 4


@pytest.mark.parametrize("algorithm", TREES)
def test_a_policy_is_checked_after_each_of_32_events_then_at_powers_of_two(algorithm):
    checked = []

    def policy(total, old):
        if old.n == total.n > 2:  # asked about the whole window, though nothing goes: a census
            checked.append(total.n)
        return False

    window = aggregator(algorithm, {"n": sash.count()}, policy=policy)
    window.bulk_insert([0] * 300)
    assert checked == [*range(3, 33), 64, 128, 256]


@given(given_up=st.lists(st.booleans(), min_size=1, max_size=12))
def test_whatever_a_policy_says_it_is_obeyed_or_refused(given_up):
    """An arbitrary answer for each prefix: refused unless all that go come before all that stay."""
    n = len(given_up)

    def policy(total, old):
        return total.n == n and given_up[old.n - 1]

    n_first = [*given_up, False].index(False)
    window = aggregator("amta", {"n": sash.count()}, policy=policy)
    if any(given_up[n_first:]):
        with pytest.raises(DataError, match="not monotone"):
            window.bulk_insert([0] * n)
    else:
        window.bulk_insert([0] * n)
        assert len(window) == n - n_first


# --- names


@pytest.mark.parametrize("form", [False, pytest.param(True, marks=compiled_only)])
def test_a_policy_that_names_an_absent_aggregate_is_told_the_nearest(form):
    window = aggregator("amta", {"n": sash.count()}, policy=lambda total, old: total.nn - old.n >= 3, compiled=form)
    with pytest.raises(UnknownNameError, match=r"unknown aggregate in <lambda>: 'nn'\. Did you mean 'n'\?"):
        window.insert(1)


def test_an_attribute_error_of_anything_else_is_the_users_own():
    window = aggregator("amta", {"n": sash.count()}, policy=lambda total, old: total.n.real.nothing)
    with pytest.raises(AttributeError, match="nothing"):
        window.insert(1)


@compiled_only
def test_a_policy_that_cannot_be_compiled_says_so():
    def wordy(total, old):
        return {"a": 1}[f"{total.n}"] > 0

    window = aggregator("amta", {"n": sash.count()}, policy=wordy, compiled=True)
    with pytest.raises(DeclarationError, match="wordy cannot be compiled"):
        window.insert(1)


def test_names_that_no_attribute_can_have_are_only_for_the_answers():
    named = {"n": sash.count(), "sum of x": sash.sum("x"), "class": sash.max("x"), "_min": sash.min("x")}
    window = aggregator("amta", named, policy=at_most_three)
    window.bulk_insert([1, 2, 3, 4])
    assert window.query() == {"n": 3, "sum of x": 9, "class": 4, "_min": 2}


def test_a_single_aggregate_is_known_by_its_own_name():
    window = aggregator("log_mta", sash.count(), policy=lambda total, old: total.count - old.count >= 2)
    window.bulk_insert("abc")
    assert window.query() == 2


def test_the_aggregates_of_a_ready_made_policy_do_not_touch_those_of_the_user():
    window = aggregator("amta", {"n": sash.sum("x"), "sum": sash.count()}, policy=policies.at_most(2))
    window.bulk_insert([5, 6, 7])
    assert window.query() == {"n": 13, "sum": 2}


def test_columns_by_name_feed_the_policy_and_the_answers():
    window = aggregator("amta", {"max": sash.max("x"), "n": sash.count()}, policy=policies.within(10, "t"))
    window.insert(x=5, t=0)
    window.insert(9, 4)  # in the order in which they are first named
    window.insert(t=13, x=1)
    assert window.query() == {"max": 9, "n": 2}
    window.bulk_insert({"t": np.array([14, 15]), "x": np.array([2, 3])})
    assert window.query() == {"max": 3, "n": 3}
    with pytest.raises(DataError, match="insert takes x, t, got x"):
        window.insert(x=1)
    assert len(window) == 3


# --- other algorithms


@pytest.mark.parametrize("algorithm", ["fiba", "btree", "flat_fat", "sba", "pba"])
def test_algorithms_that_are_no_queues_refuse_a_policy(algorithm):
    with pytest.raises(UnsupportedError, match=rf"{algorithm} takes no policy.*Use amta"):
        aggregator(algorithm, sash.max("x"), policy=policies.at_most(2))


def test_subtraction_refuses_a_policy_whose_aggregates_have_no_inverse():
    with pytest.raises(UnsupportedError, match=r"needs an inverse, but last has none"):
        aggregator("subtract_on_evict", sash.sum("x"), policy=policies.sum_at_most(10, "x"))


def test_floats_are_subtracted_only_if_asked_for_under_a_policy_too():
    window = aggregator("subtract_on_evict", sash.sum("x"), policy=policies.at_most(2))
    with pytest.raises(UnsupportedError, match="inexact=True"):
        window.insert(0.5)
    assert len(window) == 0
    window = aggregator("subtract_on_evict", sash.sum("x"), policy=policies.at_most(2), inexact=True)
    window.bulk_insert([0.5, 0.25, 0.125])
    assert window.query() == 0.375


def test_no_policy_is_no_policy():
    window = aggregator("two_stacks_lite", sash.sum(), policy=None)
    window.bulk_insert([1, 2, 3])
    window.bulk_evict(2)
    window.insert(5)
    assert window.query() == 8


# --- bulk_evict_while


@pytest.mark.parametrize("algorithm", TREES)
def test_bulk_evict_while_removes_what_a_policy_gives_up(algorithm):
    window = aggregator(algorithm, summed())
    window.bulk_insert([5, 4, 3, 2, 1, 0])
    window.bulk_evict_while(at_most_ten)
    assert window.query() == {"sum": 10, "last": 0, "all": [4, 3, 2, 1, 0]}
    window.bulk_evict_while(lambda total, old: True)
    assert len(window) == 0
    window.bulk_evict_while(lambda total, old: True)
    assert len(window) == 0


@pytest.mark.parametrize("algorithm", [*TREES, *ONE_BY_ONE])
def test_another_policy_beside_that_of_the_window_sees_the_aggregates_of_the_user(algorithm):
    window = aggregator(algorithm, summed(), policy=policies.at_most(5))
    window.bulk_insert([9, 5, 4, 3, 2, 1])
    window.bulk_evict_while(at_most_ten)
    assert window.query()["all"] == [4, 3, 2, 1]
    window.bulk_evict_while(policies.at_most(3))
    assert window.query()["all"] == [3, 2, 1]
    window.bulk_evict_while(policies.sum_at_most(3, "x"))  # the window happens to have what it looks at
    assert window.query()["all"] == [2, 1]


def test_a_ready_made_policy_over_aggregates_that_the_window_does_not_have_is_refused():
    window = aggregator("amta", {"n": sash.sum("x")})
    window.insert(1)
    with pytest.raises(DeclarationError, match=r"at_most\(2\) looks at count\(\), which this window does not have"):
        window.bulk_evict_while(policies.at_most(2))
    with pytest.raises(DeclarationError, match=r"looks at last\(t\), which this window does not have"):
        window.bulk_evict_while(policies.within(2, "t"))


def test_a_window_that_forgets_its_elements_says_who_could():
    window = aggregator("two_stacks_lite", {"n": sash.count()})
    with pytest.raises(UnsupportedError, match=r"forgets its elements.*Use amta or log_mta"):
        window.bulk_evict_while(at_most_three)


# --- bytes and back


@pytest.mark.parametrize("algorithm", [*TREES, *ONE_BY_ONE])
def test_a_window_goes_on_from_bytes(algorithm):
    first = aggregator(algorithm, summed(), policy=policies.sum_at_most(10, "x"))
    first.bulk_insert([3, 4, 1, 2])
    second = aggregator(algorithm, summed(), policy=policies.sum_at_most(10, "x"))
    second.restore(first.snapshot())
    for value in (5, 1, 9, 2):
        first.insert(value)
        second.insert(value)
        assert second.query() == first.query()
    assert second.query()["all"] == [2]
    assert second.snapshot() == first.snapshot()


def test_the_samples_go_on_from_bytes():
    first, n_asked = aggregator("amta", {"n": sash.count()}, policy=at_most_three), []
    first.bulk_insert([0] * 40)

    def at_most_three_counted(total, old):
        n_asked.append(1)
        return total.n - old.n >= 3

    second = aggregator("amta", {"n": sash.count()}, policy=at_most_three_counted)
    second.restore(first.snapshot())
    second.insert(0)
    assert len(n_asked) == 2, "no census after the 41st event"


def test_bytes_of_anything_else_are_refused():
    window = aggregator("amta", {"n": sash.count()}, policy=at_most_three)
    window.insert(1)
    saved = window.snapshot()
    for other in (b"", b"junk", saved[:-1], saved[:20] + bytes([saved[20] ^ 1]) + saved[21:]):
        with pytest.raises(FormatError):
            window.restore(other)
    plain = aggregator("two_stacks_lite", {"n": sash.count()})
    with pytest.raises(FormatError):
        window.restore(plain.snapshot())
    with pytest.raises(FormatError):
        plain.restore(saved)
    with pytest.raises(FormatError, match="another algorithm"):
        aggregator("two_stacks_lite", {"n": sash.count()}, policy=at_most_three).restore(saved)
    assert len(window) == 1, "what was refused has changed nothing"


# --- a machine in step with plain lists


class PolicedMachine(RuleBasedStateMachine):
    """Events come, the policy takes what it gives up, and the user may take more."""

    aggregates = {"order": Concat, "affine": Affine, "sum": sash.sum(), "last": sash.last()}  # noqa: RUF012
    policy = staticmethod(at_most_ten)

    @initialize(algorithm=st.sampled_from([*TREES, *ONE_BY_ONE, "two_stacks", "aba", "daba", "flat_fit", "reactive"]))
    def choose(self, algorithm):
        self.algorithm = algorithm
        self.subject = self.fresh()
        self.kept = []

    def fresh(self):
        return aggregator(self.algorithm, self.aggregates, policy=self.policy)

    def slid(self, limit=10):
        while sum(self.kept) > limit:
            self.kept.pop(0)

    @rule(value=st.integers(0, 6))
    def insert(self, value):
        self.subject.insert(value)
        self.kept.append(value)
        self.slid()

    @rule(values=st.lists(st.sampled_from([0, 0, 1, 2]), max_size=12))
    def bulk_insert(self, values):
        self.subject.bulk_insert(values)
        for value in values:
            self.kept.append(value)
            self.slid()

    @rule(share=st.integers(0, 3))
    def bulk_evict(self, share):
        count = len(self.kept) * share // 3
        self.subject.bulk_evict(count)
        del self.kept[:count]

    @rule()
    def evict(self):
        if self.kept:
            self.subject.evict()
            del self.kept[0]

    @rule(limit=st.integers(0, 10))
    def bulk_evict_while(self, limit):
        self.subject.bulk_evict_while(lambda total, old: total.sum - old.sum + old.last > limit)
        self.slid(limit)

    @rule()
    def snapshot_and_restore(self):
        saved = self.subject.snapshot()
        self.subject = self.fresh()
        self.subject.restore(saved)

    @invariant()
    def agrees(self):
        assert len(self.subject) == len(self.kept)
        answer, plain = self.subject.query(), aggregator("recalc", self.aggregates)
        plain.bulk_insert(self.kept)
        assert answer == plain.query()
        if self.kept:
            assert answer["order"] == ",".join(map(str, self.kept))


def test_policed_windows_stay_in_step_with_plain_lists():
    run_state_machine_as_test(PolicedMachine, settings=settings(max_examples=60))


# --- machine code


def session_of_at_most_a_thousand(total, old):
    """A record, a sum of 128 bits and null answers: all that a policy reads of compiled cells."""
    if old.n == 0:
        return total.n > 0
    return (total.session.is_cut and old.session.end < total.session.begin) or total.sum - old.sum >= 1000


@compiled_only
def test_machine_code_slides_as_plain_python_does_over_integers_and_nulls():
    aggregates = {"n": sash.count("t"), "sum": sash.sum("t"), "session": last_session(4, "t")}
    form = {"policy": session_of_at_most_a_thousand, "compiled": True, "dtype": "i8"}
    plain = aggregator("recalc", aggregates, policy=session_of_at_most_a_thousand)
    machine, rng, time, lengths = aggregator("amta", aggregates, **form), np.random.default_rng(11), 1, set()
    for _ in range(600):
        time += int(rng.choice([0, 1, 2, 3, 6], p=[0.3, 0.3, 0.2, 0.15, 0.05]))
        event = None if rng.random() < 0.1 else time
        plain.insert(event)
        machine.insert(event)
        assert (len(machine), machine.query()) == (len(plain), plain.query()), event
        lengths.add(len(plain))
    assert len(lengths) > 5
    second = aggregator("amta", aggregates, **form)
    second.restore(machine.snapshot())
    assert second.query() == machine.query()


@compiled_only
def test_machine_code_without_levels_keeps_a_queue_beside_it():
    window = aggregator("two_stacks_lite", {"n": sash.count()}, policy=at_most_three, compiled=True)
    for value in range(40):
        window.insert(value)
        assert window.query() == {"n": min(value + 1, 3)}
