import contextlib
import itertools
import math
import random
import sys
from pathlib import Path

import pytest
from hypothesis import strategies as st

from sash.aggregators import fiba
from sash.aggregators.fiba import (
    balancing,
    bulk_evicting,
    bulk_inserting,
    ends,
    evicting,
    inserting,
    layout,
    querying,
    rebalancing,
    repairing,
    runs,
    searching,
)  # fmt: skip
from sash.aggregators.fiba.layout import (
    ARITY,
    AROUND,
    BLOCK,
    FLAGS,
    GAP,
    HEIGHT,
    LATEST,
    LEFT_FINGER,
    N_FIELDS,
    N_FREE_INNER,
    N_FREE_LEAVES,
    N_NODES,
    NODES_END,
    OWN,
    RECENT,
    ROOT,
    SUFFIXES,
)  # fmt: skip
from sash.engine.aggregator import aggregator
from sash.engine.binding import bind
from sash.engine.timed import TimedAggregator
from sash.engine.trees import Wanted, build_trees, new_tree
from sash.testing.counting import counting
from sash.testing.monoids import Affine, Sum
from tests.aggregators.trees import Letters, Oracle, aggregates, coins, letter, machine, planted, shape

TestFibaOfArity2 = machine("FibaOfArity2")
TestFibaOfArity3 = machine("FibaOfArity3", options={"min_arity": 3})
TestFibaOfAffineMaps = machine("FibaOfAffineMaps", aggregate=Affine, values=st.integers(0, 99))

PARTS = (
    layout,
    searching,
    repairing,
    runs,
    balancing,
    rebalancing,
    ends,
    inserting,
    evicting,
    querying,
    bulk_inserting,
    bulk_evicting,
)


SPAN = 1000  # between two rows, where a run of late ones goes


class Lines:
    """Every line of the algorithm that is run while it looks."""

    def __init__(self):
        self.files, self.seen = {part.__file__ for part in PARTS}, set()

    def __enter__(self):
        self.before = sys.gettrace()
        sys.settrace(self.trace)

    def __exit__(self, *_):
        sys.settrace(self.before)

    def trace(self, frame, event, _):
        if frame.f_code.co_filename not in self.files:
            return None
        self.seen.add((frame.f_code.co_filename, frame.f_lineno))
        return self.trace


def made_by_factories(part):
    """The code of the functions that the factories of a module make."""
    factories = [each for each in vars(part).values() if getattr(each, "__module__", "") == part.__name__]
    codes = [factory.__code__ for factory in factories if hasattr(factory, "__code__")]
    return [constant for code in codes for constant in code.co_consts if hasattr(constant, "co_lines")]


def lines_of(code):
    return {(code.co_filename, line) for _, _, line in code.co_lines() if line and line > code.co_firstlineno}


class Life:
    """A long life: growth and decline by turns, near both ends and in the middle, one by one and in bulk."""

    def __init__(self, window, seed):
        self.window, self.oracle, self.chosen = window, Oracle(window._bound.monoids[0]), random.Random(seed)

    def live(self, steps, lines):
        for step in range(steps):
            with lines:
                self.take(step)
                assert self.window.query() == self.oracle.answer()
                assert len(self.window) == len(self.oracle.rows)
            self.window.check_invariants(self.oracle.items())

    def take(self, step):
        """Most steps of the first hundred of each three insert, and most of the last one evict."""
        phase, kind = step // 100 % 3, self.chosen.random()
        time = self.chosen.randrange(self.chosen.choice((30, 300, 3000)))
        if step % 300 == 200:
            self.bulk_evict(sorted(self.oracle.rows)[-40])
        elif kind < (0.5, 0.3, 0.05)[phase]:
            self.insert(time, "v")
        elif kind < (0.6, 0.7, 0.95)[phase]:
            self.evict(self.chosen.choice(sorted(self.oracle.rows)) if self.oracle.rows and kind > 0.1 else time)
        elif phase == 2 or kind < 0.75:
            self.window.restore(self.window.snapshot())  # leaves out room that was never used: lists must serve
        elif kind < 0.8:
            self.insert(max(self.oracle.rows, default=0) + 1, "u")
        elif kind < 0.86:
            share = max(1, len(self.oracle.rows) // self.chosen.choice((1, 4, 40)))
            self.bulk_evict(self.chosen.choice([*sorted(self.oracle.rows)[:share], time]))
        elif kind < 0.93:
            self.bulk_insert(sorted(self.chosen.randrange(time + 1) + self.chosen.choice((0, 3000)) for _ in range(50)))
        else:
            first, last = sorted((self.chosen.randrange(-5, time + 5), self.chosen.randrange(3000)))
            assert self.window.query(first, last) == self.oracle.answer(lambda each: first <= each <= last)

    def live_in_runs(self, size, lines):
        """Late rows come in runs, some at a time; in between, something else happens now and then."""
        for time in range(size):
            self.insert(SPAN * time, "r")
        runs = [self.chosen.randrange(SPAN * size) for _ in range(3)]
        for step in range(4 * size):
            with lines:
                which = self.chosen.randrange(1 + step // 50 % 3)
                runs[which] += 1
                self.insert(runs[which], "l")
                if self.chosen.random() < 0.2:
                    runs[which] = self.happen(runs[which], self.chosen.randrange(8))
                assert self.window.query() == self.oracle.answer()
            self.window.check_invariants(self.oracle.items())

    def happen(self, latest, what):
        """Something beside a run; where it goes on."""
        times = sorted(self.oracle.rows)
        if what == 0:
            self.bulk_evict(times[self.chosen.randrange(1 + len(times) // 20)])
        elif what == 1:
            self.bulk_insert(sorted(latest + self.chosen.randrange(-2 * SPAN, 2 * SPAN) for _ in range(6)))
        elif what == 2:
            self.window.restore(self.window.snapshot())
        elif what == 3:
            self.evict(self.chosen.choice(times))
        elif what == 4:
            self.insert(times[-1] + 1, "u")
        elif what == 5:
            self.insert(self.chosen.choice(times), "s")
        elif what == 6:
            return self.chosen.choice(times)
        else:
            self.evict(times[0])
        return latest

    def live_in_order(self, size, lines):
        """Rows come younger than all others; as soon as there are so many, the oldest leaves for each."""
        for time in range(3 * size):
            with lines:
                if time >= size:
                    self.evict(time - size)
                self.insert(time, "r")
                assert self.window.query() == self.oracle.answer()
            self.window.check_invariants(self.oracle.items())
        self.bulk_evict(3 * size)

    def insert(self, time, value):
        self.window.insert(time, value)
        self.oracle.insert(time, value)

    def bulk_insert(self, times):
        self.window.bulk_insert(times, ["w"] * len(times))
        for time in times:
            self.oracle.insert(time, "w")

    def evict(self, time):
        self.window.evict(time)
        self.oracle.rows.pop(time, None)

    def bulk_evict(self, time):
        self.window.bulk_evict(time)
        self.oracle.bulk_evict(time)


def test_a_long_life_runs_every_line_of_the_algorithm():
    """Every split, merge, move, change of height, inner eviction and case of the bulk operations happens."""
    lines = Lines()
    for algorithm, min_arity in (("fiba", 2), ("fiba", 3), ("btree", 2)):
        window = aggregator(algorithm, Letters, min_arity=min_arity)
        Life(window, seed=20261115).live(1200, lines)
    for min_arity, size in ((2, 60), (3, 200)):
        Life(aggregator("fiba", Letters, min_arity=min_arity), seed=2).live_in_runs(size, lines)
    for min_arity, size in ((2, 4), (2, 100), (3, 7), (3, 40)):
        Life(aggregator("fiba", Letters, min_arity=min_arity), seed=1).live_in_order(size, lines)
    wanted = set().union(*(lines_of(code) for part in PARTS for code in made_by_factories(part)))
    missing = sorted(f"{Path(file).name}:{line}" for file, line in wanted - lines.seen)
    assert not missing, " ".join(missing)


def test_a_long_life_meets_every_event():
    """Those that a line does not show: how many entries move, and from which side a substitute comes."""
    seen = set()

    def noting(function):
        def noted(*arguments):
            if function.__name__ == "move_left":
                seen.add("move of several" if arguments[3] > 1 else "move to the left")
            elif function.__name__ == "fit":
                seen.add("fit of a leaf" if not window._opened().children(arguments[2]) else "fit of an inner node")
            seen.add(function.__name__)
            return function(*arguments)

        return noted

    bound = bind(Letters, None, compiled=False)
    trees = build_trees.__wrapped__(Wanted("fiba", bound.monoids, False, "object", 3))
    timed = fiba.build(trees.kit._replace(jit=noting, apart=noting))
    window = TimedAggregator(trees._replace(timed=timed, inner=timed), bound)
    life = Life(window, seed=7)
    life.live(1200, contextlib.nullcontext())
    life.bulk_evict(10**4)
    for size in (6, 120):
        life.live_in_order(size, contextlib.nullcontext())
    wanted = {
        "grow",
        "shrink",
        "split",
        "merge",
        "move to the left",
        "move of several",
        "move_right",
        "lower_root",
        "evict_inner",
        "slide",
        "slide_root",
        "take_in",
        "borrow",
        "pass_on",
        "trim",
        "fill",
        "close_gap",
        "cut_root",
        "fit of a leaf",
        "fit of an inner node",
        "take_inner",
        "dissolve",
        "join",
        "enter",
        "climb",
        "add_older",
        "add_newer",
    }
    assert wanted <= seen, wanted - seen


# --- the figures of the paper, as far as its text tells them; coins confirm the shapes

FIGURE_3_A = [[[1, 2], 3, [4], 5, [6]], 7, [[8, 9], 10, [11], 12, [13, 14]], 15, [[17, 19], 20, [21]]]


def step(window, spent, billed, **change):
    """Insert or evict one time, and compare the coins before and after; the aggregates before and after."""
    before, aggregates_before = coins(window), aggregates(window)
    if "insert" in change:
        window.insert(change["insert"], letter(change["insert"]))
    else:
        window.evict(change["evict"])
    assert before + billed == coins(window) + spent
    window.check_invariants([(time, letter(time)) for time in sorted(time for time, _ in window)])
    after = aggregates(window)
    return {aggregate for node, aggregate in after.items() if aggregates_before.get(node) != aggregate}


def test_figure_1_is_the_same_tree_with_aggregates_of_all_below():
    window = planted(FIGURE_3_A)
    assert window.query() == "abcdefghijklmnoqstu"
    classic = aggregator("btree", Letters, min_arity=2)
    classic.bulk_insert([time for time, _ in window], [text for _, text in window])
    assert classic.query() == window.query()


def test_figure_3_step_by_step():
    window = planted(FIGURE_3_A)
    assert {"hijklmn", "cdef"} <= set(aggregates(window).values())
    assert step(window, insert=22, spent=0, billed=-1) == {"qstuv"}
    assert step(window, insert=18, spent=0, billed=2) == {"qrs", "qrst", "qrstuv"}
    assert step(window, evict=1, spent=0, billed=1) == {"bcdef"}
    step(window, insert=16, spent=1, billed=-1)
    assert shape(window)[-1] == [[16, 17], 18, [19], 20, [21, 22]]
    step(window, evict=2, spent=1, billed=0)
    assert shape(window)[0] == [[3, 4], 5, [6]]
    assert window.query() == "cdefghijklmnopqrstuv"


def test_figure_4_splits_up_to_a_new_root():
    window = planted([[1, 2, 4], 5, [6], 7, [8], 9, [10]])
    step(window, insert=3, spent=2, billed=0)
    assert shape(window) == [[[1, 2], 3, [4], 5, [6]], 7, [[8], 9, [10]]]
    assert window._tree.at[HEIGHT] == 2
    assert window.query() == "abcdefghij"


def test_figure_5_merges_and_moves():
    window = planted([[[4], 5, [6]], 7, [[8], 9, [10], 11, [12]], 13, [[14], 15, [16]]])
    step(window, evict=4, spent=2, billed=1)
    assert shape(window) == [[[5, 6], 7, [8]], 9, [[10], 11, [12]], 13, [[14], 15, [16]]]
    assert window.query() == "efghijklmnop"


def test_figure_6_merges_twice_and_loses_a_level():
    window = planted([[[9], 10, [11]], 12, [[13], 14, [15]]])
    step(window, evict=15, spent=2, billed=-2)
    assert shape(window) == [[9], 10, [11], 12, [13, 14]]
    assert window._tree.at[HEIGHT] == 1
    assert window.query() == "ijklmn"


def test_figure_9_an_inner_eviction_takes_the_next_younger_entry_if_its_node_can_spare_it():
    window = planted([[[1], 2, [3]], 4, [[5, 6], 7, [8], 9, [10]]])
    window.evict(4)
    assert shape(window) == [[[1], 2, [3]], 5, [[6], 7, [8], 9, [10]]]
    window.evict(5)
    assert shape(window)[1] == 6, "the leaf is merged, but its parent could spare an entry"
    window.evict(6)
    assert window.query() == "abcghij"
    window.check_invariants([(time, letter(time)) for time in (1, 2, 3, 7, 8, 9, 10)])


# --- errata


@pytest.mark.parametrize("is_printed", [True, False])
def test_erratum_1_a_sibling_on_the_left_spine_must_be_repaired_too(monkeypatch, is_printed):
    """Figure 7, line 61: the right child of the root takes an entry from the left one."""
    if is_printed:
        made = repairing.repairing_of

        def as_printed(kit, nodes):
            repairs = made(kit, nodes)

            def tidy(s, node, level):
                if not nodes.get(s.links, node, 2) & 1:
                    repairs.tidy(s, node, level)

            return repairs._replace(tidy=tidy)

        monkeypatch.setattr("sash.aggregators.fiba.repairing_of", as_printed)
    build_trees.cache_clear()
    window = planted([[1, 2, 3], 4, [5]])
    window.evict(5)
    build_trees.cache_clear()
    assert shape(window) == [[1, 2], 3, [4]]
    assert window.query() == ("abccd" if is_printed else "abcd")
    if is_printed:
        with pytest.raises(AssertionError, match="I8 is broken"):
            window.check_invariants([(time, letter(time)) for time in (1, 2, 3, 4)])


def range_query_by_recursion(window, first, last, end_of_middle):
    """Figure 10; line 20 asks whether i + 1 < arity - end_of_middle."""
    opened, tree, width = window._opened(), window._tree, window._trees.kit.width
    low, high = -(10**9), 10**9

    def recur(node, first, last):
        if first == low and last == high and window_is_up(node):
            return tree.pool[node * width]
        places, children, found = opened.places(node), opened.children(node), ""
        times = [tree.keys[place] for place in places]
        if children and first < times[0]:
            found += recur(children[0], first, high if times[0] <= last else last)
        for i, time in enumerate(times):
            if first <= time <= last:
                found += tree.pool[places[i]]
            if children and i + 1 < len(children) - end_of_middle and time < last and first < times[i + 1]:
                found += recur(children[i + 1], low if first <= time else first, high if times[i + 1] <= last else last)
        if children and times[-1] < last:
            found += recur(children[-1], low if first <= times[-1] else first, last)
        return found

    def window_is_up(node):
        return node != tree.at[ROOT] and opened.field(node, 2) == 0

    return recur(tree.at[ROOT], first, last)


def test_erratum_2_a_range_must_not_lose_the_last_child_but_one():
    """Figure 10, line 20: i + 1 < arity - 1, and not arity - 2."""
    window = planted([[1], 2, [3], 4, [5], 6, [7]])
    for first, last in itertools.combinations_with_replacement(range(9), 2):
        wanted = "".join(letter(time) for time in range(1, 8) if first <= time <= last) or None
        assert window.query(first, last) == wanted
        assert (range_query_by_recursion(window, first, last, 1) or None) == wanted
    assert range_query_by_recursion(window, 0, 8, 2) == "abcdfg", "the printed condition loses 5:e"


# --- costs, counted in calls of combine


def counted_window(n, min_arity=4):
    counted, calls = counting(Sum)
    window = aggregator("fiba", counted, min_arity=min_arity)
    window.bulk_insert(range(n), [1] * n)
    calls.take()
    return window, calls


def test_in_order_rounds_take_the_same_number_of_combines_for_every_size():
    means = []
    for n in (64, 512, 4096):
        window, calls = counted_window(n)
        for time in range(n, n + 512):
            window.evict(time - n)
            window.insert(time, 1)
            window.query()
        means.append(calls.take() / 512)
    assert max(means) < 12
    assert max(means) - min(means) < 3


def test_an_eviction_in_order_takes_no_combine_while_its_leaf_can_spare_an_entry():
    window, calls = counted_window(1000)
    spent = []
    for time in range(100):
        window.evict(time)
        spent.append(calls.take())
    assert spent.count(0) >= 75
    window.check_invariants([(time, 1) for time in range(100, 1000)])


def mean_of_changes(n, distance):
    window, calls = counted_window(n)
    chosen = random.Random(5)
    for _ in range(200):
        time = n - distance - chosen.randrange(distance) - 0.5
        window.insert(time, 1)
        window.evict(time)
    return calls.take() / 400


@pytest.mark.parametrize("distance", [1, 4, 16, 64, 256, 1024, 4000])
def test_a_change_takes_the_logarithm_of_its_distance(distance):
    assert mean_of_changes(2**14, distance) <= 12 + 3 * math.log2(2 * distance)


def test_a_change_near_an_end_takes_the_same_in_a_window_of_any_size():
    assert abs(mean_of_changes(2**8, 8) - mean_of_changes(2**14, 8)) < 5


def test_from_the_third_row_of_a_run_on_two_combines_repair_a_node():
    n = 2**15  # so that the middle is below an inner child of the root
    window, calls = counted_window(n, min_arity=8)
    tree, opened = window._tree, window._opened()
    for k in range(6):
        window.insert(n // 2 + 0.5 + k / 1000, 1)
        spent, n_entries = calls.take(), opened.field(int(tree.at[RECENT]), ARITY) - 1
        if k >= 2:
            assert spent == n_entries - 1 + 2 * tree.at[HEIGHT]


@pytest.mark.parametrize(("distance", "share"), [(10, 0.75), (100, 0.65), (1000, 0.6), (8000, 0.62)])
def test_a_run_of_late_rows_takes_fewer_combines_than_rows_that_come_anywhere(distance, share):
    n, costs = 2**14, []
    for is_run in (True, False):
        window, calls = counted_window(n, min_arity=8)
        chosen = random.Random(3)
        for k in range(256):
            window.insert(n - distance - 0.5 + (k / 1000 if is_run else chosen.uniform(-distance, 0)), 1)
        costs.append(calls.take() / 256)
        window.check_invariants([(time, 1) for time in sorted(dict(window))])
    assert costs[0] < share * costs[1], costs


def test_runs_elsewhere_are_kept_too():
    n, costs = 2**14, []
    for n_runs in (1, 4):
        window, calls = counted_window(n, min_arity=8)
        for k in range(256):
            window.insert(n // 5 * (1 + k % n_runs) + 0.5 + k / 1000, 1)
        costs.append(calls.take() / 256)
    assert costs[1] < 1.6 * costs[0], costs


def test_the_figures_of_bulk_operations_are_those_of_the_document():
    """docs/explanation/fiba.md, "Bulk": 256 rows among the youngest 512 of 4,096, and the oldest 256 of them all."""
    n, m = 4096, 256
    times = sorted(random.Random(1).sample(range(2 * (n - 512) + 1, 2 * n, 2), m))

    def cost(change):
        counted, calls = counting(Sum)
        window = aggregator("fiba", counted, min_arity=8)
        window.bulk_insert(range(0, 2 * n, 2), [1] * n)
        calls.take()
        change(window)
        return f"{calls.take():,}"

    def one_by_one(operation, times):
        for time in times:
            operation(time)

    at_once = cost(lambda window: window.bulk_insert(times, [1] * m))
    in_order = cost(lambda window: one_by_one(lambda time: window.insert(time, 1), times))
    in_any = cost(lambda window: one_by_one(lambda time: window.insert(time, 1), random.Random(2).sample(times, m)))
    evicted_at_once = cost(lambda window: window.bulk_evict(2 * m - 2))
    evicted = cost(lambda window: one_by_one(window.evict, range(0, 2 * m, 2)))
    said = " ".join(
        (Path(__file__).parents[2] / "docs" / "explanation" / "fiba.md").read_text(encoding="utf-8").split()
    )
    assert f"{at_once} at once, {in_order} one by one in order of time, {in_any} in any order" in said
    assert f"to evict the oldest 256: {evicted_at_once} against {evicted}" in said


def test_bulk_evict_of_m_takes_about_the_logarithm_of_m():
    n, costs = 2**14, {}
    for m in (1, 16, 256, 4096, n // 2):
        window, calls = counted_window(n)
        window.bulk_evict(m - 1)
        costs[m] = calls.take()
        assert len(window) == n - m
    assert max(costs.values()) < 150
    assert costs[4096] < 4 * costs[16] + 40


def test_bulk_insert_of_m_takes_far_fewer_combines_than_one_by_one():
    n, m = 8192, 2048
    times = sorted(random.Random(1).sample(range(10 * n - 40_000, 10 * n), m))
    costs = []
    for is_bulk in (True, False):
        counted, calls = counting(Sum)
        window = aggregator("fiba", counted, min_arity=4)
        window.bulk_insert([10 * time + 0.5 for time in range(n)], [1] * n)
        calls.take()
        if is_bulk:
            window.bulk_insert(times, [1] * m)
        else:
            for time in random.Random(2).sample(times, m):
                window.insert(time, 1)
        costs.append(calls.take())
        assert window.query() == n + m
    assert 5 * costs[0] < costs[1]
    assert costs[0] < 12 * m


# --- the gap in the left finger


def gapped():
    """A window whose left finger has a gap: 2 entries of 5 have left."""
    window = planted([[1, 2, 3, 4, 5], 6, [7, 8], 9, [10, 11]], min_arity=3)
    for time in (1, 2):
        window.evict(time)
    assert window._tree.at[GAP] == 2
    return window, [3, 4, 5, 6, 7, 8, 9, 10, 11]


CHANGES = {
    "insert": (lambda window: window.insert(4, "y"), {4: "dy"}),
    "insert before all": (lambda window: window.insert(0, "y"), {0: "y"}),
    "insert after all": (lambda window: window.insert(12, "y"), {12: "y"}),
    "insert until there is a new root": (
        lambda window: [window.insert(time, "y") for time in range(12, 30)],
        dict.fromkeys(range(12, 30), "y"),
    ),
    "evict": (lambda window: window.evict(4), {4: None}),
    "evict the oldest": (lambda window: window.evict(3), {3: None}),
    "evict the next": (lambda window: window.evict(6), {6: None}),
    "bulk_insert": (lambda window: window.bulk_insert([2, 4, 12], "xyz"), {2: "x", 4: "dy", 12: "z"}),
    "bulk_evict": (lambda window: window.bulk_evict(3), {3: None}),
    "snapshot": (lambda window: window.restore(window.snapshot()), {}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_gap_is_in_nobodys_way(change):
    window, times = gapped()
    assert (window.query(), window.oldest, [time for time, _ in window]) == ("cdefghijk", 3, times)
    act, wanted = CHANGES[change]
    act(window)
    rows = {time: letter(time) for time in times} | wanted
    left = sorted((time, text) for time, text in rows.items() if text is not None)
    window.check_invariants(left)
    assert window.query() == "".join(text for _, text in left)
    assert window._tree.at[GAP] <= 3


def test_a_range_within_the_left_finger_is_answered_over_its_gap():
    for first, last in itertools.combinations_with_replacement(range(1, 12), 2):
        window, times = gapped()
        wanted = "".join(letter(time) for time in times if first <= time <= last) or None
        assert window.query(first, last) == wanted
        window.check_invariants([(time, letter(time)) for time in times])


def test_the_left_spine_merges_where_both_fit_into_one_but_not_below_the_root():
    leaves = [[1], 2, [3, 4], 5, [6]]
    window = planted([leaves, 7, [[8], 9, [10]]])
    window.evict(1)
    assert shape(window) == [[[2, 3, 4], 5, [6]], 7, [[8], 9, [10]]]
    window = planted([[1], 2, [3, 4]])
    window.evict(1)
    assert shape(window) == [[2], 3, [4]]
    assert window._tree.at[LEFT_FINGER] == window._opened().children(window._tree.at[ROOT])[0]


# --- a left finger that has run down


def test_a_left_finger_runs_down_to_its_last_entry_and_takes_in_its_neighbour():
    window = planted([[1, 2, 3, 4, 5], 6, [7, 8], 9, [10, 11]], min_arity=3)
    for time in range(1, 5):
        window.evict(time)
    assert shape(window) == [[5], 6, [7, 8], 9, [10, 11]]
    window.evict(5)
    assert shape(window) == [[6, 7, 8], 9, [10, 11]]


def test_a_left_finger_borrows_what_a_full_neighbour_can_spare():
    window = planted([[1, 2], 3, [4, 5, 6, 7, 8], 9, [10, 11]], min_arity=3)
    window.evict(1)
    window.evict(2)
    assert shape(window) == [[3, 4, 5], 6, [7, 8], 9, [10, 11]]


def test_two_leaves_share_until_they_fit_into_one():
    window = planted([[1, 2], 3, [4, 5, 6]], min_arity=3)
    window.evict(1)
    window.evict(2)
    assert shape(window) == [[3], 4, [5, 6]]
    window.evict(3)
    assert shape(window) == [4, 5, 6]


RUN_DOWN = [[1, 2, 3, 4, 5], 6, [7, 8], 9, [10, 11]]
CHANGES_NEAR_IT = {
    "evict the only one": (lambda window: window.evict(5), {5: None}),
    "evict above it": (lambda window: window.evict(6), {6: None}),
    "evict beside it": (lambda window: window.evict(8), {8: None}),
    "insert into it": (lambda window: window.insert(4, "y"), {4: "y"}),
    "overfill it": (
        lambda window: window.bulk_insert([-1, 0, 1, 2, 3, 4], "uvwxyz"),
        dict(zip(range(-1, 5), "uvwxyz", strict=True)),
    ),
    "bulk_evict nothing": (lambda window: window.bulk_evict(4), {}),
    "bulk_evict it": (lambda window: window.bulk_evict(5), {5: None}),
    "bulk_evict into its neighbour": (lambda window: window.bulk_evict(7), {5: None, 6: None, 7: None}),
    "snapshot": (lambda window: window.restore(window.snapshot()), {}),
}


@pytest.mark.parametrize("has_neighbours", [True, False])
@pytest.mark.parametrize("change", CHANGES_NEAR_IT)
def test_a_left_finger_that_has_run_down_is_in_nobodys_way(change, has_neighbours):
    window = planted(RUN_DOWN if has_neighbours else RUN_DOWN[:3], min_arity=3)
    window.bulk_insert([12, 13], "lm")
    for time in range(1, 5):
        window.evict(time)
    rows = dict(window)
    act, wanted = CHANGES_NEAR_IT[change]
    act(window)
    left = sorted((time, text) for time, text in (rows | wanted).items() if text is not None)
    window.check_invariants(left)
    assert window.query() == "".join(text for _, text in left)
    for time, _ in left:
        window.evict(time)
    assert window.query() is None


def test_rounds_over_few_rows_take_no_more_combines_than_over_many():
    for n in (16, 17, 20, 31):
        window, calls = counted_window(n, min_arity=8)
        for time in range(n, n + 512):
            window.insert(time, 1)
            window.evict(time - n)
            window.query()
        assert calls.take() / 512 < 10


# --- nodes in use and not


def test_dropped_subtrees_cost_nothing_and_are_used_again():
    window, _ = counted_window(2000)
    room = int(window._tree.at[N_NODES])
    window.bulk_evict(999)
    listed = int(window._tree.at[N_FREE_LEAVES] + window._tree.at[N_FREE_INNER])
    assert listed < 40, "of some 250 nodes that are not in use any more"
    window.bulk_insert(range(2000, 3000), [1] * 1000)
    assert int(window._tree.at[N_NODES]) == room
    window.check_invariants([(time, 1) for time in range(1000, 3000)])


def damage_of_a_run(which):
    """What is said of what a node keeps around the child of a run, once that is something else."""
    window = planted([[[1], 2, [3]], 4, [[5], 6, [7], 8, [9]], 10, [[11], 12, [13]]])
    window.insert(6.5, "y")
    window.insert(6.7, "z")
    tree, opened, width = window._tree, window._opened(), window._trees.kit.width
    node = next(each for each, _ in opened.nodes() if opened.field(each, FLAGS) & AROUND)
    child = opened.field(node, LATEST) if which == "before" else opened.children(node)[0]
    tree.pool[(child + 1) * width - 1] = "x"
    with pytest.raises(AssertionError) as error:
        window.check_invariants(sorted(({time: letter(time) for time in range(1, 14)} | {6.5: "y", 6.7: "z"}).items()))
    return str(error.value).split()[0]


def test_damage_is_named_by_its_invariant():
    def damaged(change):
        window = planted(FIGURE_3_A)
        change(window._tree)
        with pytest.raises(AssertionError) as error:
            window.check_invariants([(time, letter(time)) for time in range(1, 22) if time not in (16, 18)])
        return str(error.value).split()[0]

    window = planted(FIGURE_3_A)
    opened, root = window._opened(), window._tree.at[ROOT]
    left, middle, right = opened.children(root)
    width = window._trees.kit.width
    assert damaged(lambda tree: tree.links.__setitem__(middle * N_FIELDS + ARITY, 1)) in ("I1", "I2")
    assert damaged(lambda tree: tree.keys.__setitem__(root * width + 1, 99)) == "I3"
    assert damaged(lambda tree: tree.links.__setitem__(left * N_FIELDS, 0)) == "I4"
    assert damaged(lambda tree: tree.links.__setitem__(middle * N_FIELDS + 2, 1)) == "I5"
    assert damaged(lambda tree: tree.pool.__setitem__(middle * width, "x")) in ("I6", "I7")
    assert damaged(lambda tree: tree.pool.__setitem__(root * width, "x")) == "I7"
    assert damaged(lambda tree: tree.pool.__setitem__(left * width, "x")) == "I8"
    assert damaged(lambda tree: tree.pool.__setitem__(right * width, "x")) == "I9"
    assert damaged(lambda tree: tree.links.__setitem__(root * N_FIELDS + 3, 1)) == "I10"
    assert damaged(lambda tree: tree.at.__setitem__(NODES_END, 5)) == "I11"
    assert damaged(lambda tree: tree.at.__setitem__(14, 1)) == "I12"
    assert damaged(lambda tree: tree.keys.__setitem__(root * width + 1, 7.5)) == "I13"
    assert damaged(lambda tree: tree.pool.__setitem__(SUFFIXES + 1, "x")) == "I14"
    assert damaged(lambda tree: tree.at.__setitem__(GAP, -1)) in ("I3", "I8", "I13", "I14", "I15")
    assert damaged(lambda tree: tree.pool.__setitem__((left + 1) * width - 1, "x")) == "I16"
    assert damaged(lambda tree: tree.links.__setitem__(left * N_FIELDS + OWN, 99)) == "I10"
    assert damaged(lambda tree: tree.links.__setitem__(root * N_FIELDS + FLAGS, AROUND)) == "I17"
    assert all(damage_of_a_run(which) == "I17" for which in ("before", "after"))
    assert damaged(lambda tree: tree.at.__setitem__(RECENT, root)) == "I18"
    assert window._tree.links[middle * N_FIELDS + BLOCK] > 0
    assert new_tree(window._trees).at[ROOT] == 1
