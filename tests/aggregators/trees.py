"""What tests of trees share: an oracle, trees planted by hand, and the machine that drives both."""

import functools

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import sash
from sash.aggregators.fiba.layout import (
    ARITY,
    BLOCK,
    BLOCKS_END,
    HEIGHT,
    LEFT_FINGER,
    NODES_END,
    PARENT,
    RIGHT_FINGER,
    ROOT,
    nodes_of,
    supply_of,
)  # fmt: skip
from sash.aggregators.fiba.repairing import repairing_of
from sash.engine.aggregator import aggregator
from sash.engine.trees import new_tree


@sash.aggregate(state=object)
class Letters:
    """Text, as in the figures of the paper."""

    def lift(x):
        return x

    def combine(older, newer):
        return older + newer


class Oracle:
    """A dict of times and partials, folded anew for every answer."""

    def __init__(self, monoid):
        self.monoid, self.rows = monoid, {}

    def insert(self, time, value):
        partial = None if value is None else self.monoid.lift(value)
        self.rows[time] = self.join(self.rows[time], partial) if time in self.rows else partial

    def join(self, older, newer):
        if older is None or newer is None:
            return newer if older is None else older
        return self.monoid.combine(older, newer)

    def bulk_evict(self, time):
        self.rows = {key: partial for key, partial in self.rows.items() if key > time}

    def items(self):
        return sorted(self.rows.items())

    def answer(self, holds=lambda time: True):
        total = functools.reduce(self.join, [partial for time, partial in self.items() if holds(time)], None)
        return total if total is None or self.monoid.lower is None else self.monoid.lower(total)


def letter(time):
    """1:a, 2:b and so on, as in the figures."""
    return chr(96 + time)


def planted(spec, min_arity=2):
    """Make a fiba window with a tree of a given shape: a leaf lists times, an inner node children and times in turn."""
    window = aggregator("fiba", Letters, min_arity=min_arity)
    tree = new_tree(window._trees, 64, 64)
    kit = window._trees.kit
    nodes, repairs = nodes_of(kit), repairing_of(kit, nodes_of(kit))
    supply = supply_of(kit, nodes)
    tree.at[NODES_END], tree.at[BLOCKS_END] = 1, 1

    def plant(part):
        children = [plant(each) for each in part if isinstance(each, list)]
        times = [each for each in part if not isinstance(each, list)]
        node = supply.new_inner(tree) if children else supply.new_leaf(tree)
        nodes.put(tree.links, node, ARITY, len(times) + 1)
        for i, time in enumerate(times):
            tree.keys[node * kit.width + 1 + i] = time
            tree.pool[node * kit.width + 1 + i] = letter(time)
        for i, child in enumerate(children):
            nodes.adopt(tree, node, i, child)
        return node

    tree.at[ROOT] = root = plant(spec)
    nodes.put(tree.links, root, PARENT, 0)
    flag_spines(tree, nodes, root)
    repair_all(tree, nodes, repairs, root, tree.at[HEIGHT])
    repairs.settle(tree)
    window._tree = tree
    window.check_invariants([(time, letter(time)) for time in times_of(spec)])
    return window


def flag_spines(tree, nodes, root):
    for end, finger, flag in ((0, LEFT_FINGER, 1), (-1, RIGHT_FINGER, 2)):
        node, height = root, 0
        while nodes.get(tree.links, node, BLOCK):
            arity = nodes.get(tree.links, node, ARITY)
            node, height = nodes.child(tree, node, end % arity), height + 1
            nodes.put(tree.links, node, 2, flag)
        tree.at[finger], tree.at[HEIGHT] = node, height


def repair_all(tree, nodes, repairs, node, level):
    for i in range(nodes.get(tree.links, node, ARITY) if level else 0):
        repair_all(tree, nodes, repairs, nodes.child(tree, node, i), level - 1)
    repairs.tidy(tree, node, level)


def times_of(spec):
    return [time for part in spec for time in (times_of(part) if isinstance(part, list) else [part])]


def shape(window):
    """The shape of a tree, as `planted` takes it."""
    opened = window._opened()

    def of(node):
        times, children = [window._tree.keys[place] for place in opened.places(node)], opened.children(node)
        if not children:
            return times
        return [each for pair in zip(map(of, children), [*times, None], strict=True) for each in pair][:-1]

    return of(window._tree.at[ROOT])


def aggregates(window):
    """The aggregates of a tree by node, as the drawing of the figures shows them: parents first."""
    return {node: window._tree.pool[node * window._trees.kit.width] for node, _ in window._opened().nodes()}


def coins(window):
    """What lemma 9 keeps at the nodes of a tree."""
    opened, root, least = window._opened(), window._tree.at[ROOT], window._trees.kit.min_arity
    total = 0
    for node, _ in opened.nodes():
        arity = opened.field(node, ARITY)
        total += 2 if arity == 2 * least else 1 if arity == least and node != root else 0
    return total


class TimedMachine(RuleBasedStateMachine):
    """A window and the oracle in step; after every step the same size and answer, and all invariants."""

    algorithm, aggregate, options = "fiba", Letters, {"min_arity": 2}
    times, values = st.integers(0, 60), st.sampled_from("abcdefgh")

    def __init__(self):
        super().__init__()
        self.window = self.fresh()
        self.oracle = Oracle(self.window._bound.monoids[0])

    def fresh(self):
        return aggregator(self.algorithm, self.aggregate, **self.options)

    @rule(data=st.data())
    def insert(self, data):
        time, value = data.draw(self.times), data.draw(self.values | st.none())
        self.window.insert(time, value)
        self.oracle.insert(time, value)

    @rule(data=st.data(), length=st.integers(2, 12), step=st.sampled_from((1, -1)))
    def insert_a_run(self, data, length, step):
        first, value = data.draw(self.times), data.draw(self.values)
        for time in range(first, first + step * length, step):
            self.window.insert(time, value)
            self.oracle.insert(time, value)
            self.agrees()

    @rule(data=st.data())
    def bulk_insert(self, data):
        times = sorted(data.draw(st.lists(self.times, max_size=25)))
        values = data.draw(st.lists(self.values, min_size=len(times), max_size=len(times)))
        self.window.bulk_insert(times, values)
        for time, value in zip(times, values, strict=True):
            self.oracle.insert(time, value)

    @rule(data=st.data())
    def evict(self, data):
        held = sorted(self.oracle.rows)
        time = data.draw(st.sampled_from(held) | self.times if held else self.times)
        self.window.evict(time)
        self.oracle.rows.pop(time, None)

    @rule(data=st.data())
    def bulk_evict(self, data):
        time = data.draw(self.times)
        self.window.bulk_evict(time)
        self.oracle.bulk_evict(time)

    @rule(data=st.data())
    def query_a_range(self, data):
        first, last = sorted((data.draw(self.times), data.draw(self.times)))
        assert self.window.query(first, last) == self.oracle.answer(lambda time: first <= time <= last)

    @rule()
    def snapshot_and_restore(self):
        saved, self.window = self.window.snapshot(), self.fresh()
        self.window.restore(saved)

    @invariant()
    def agrees(self):
        items = self.oracle.items()
        self.window.check_invariants(items)
        assert len(self.window) == len(items)
        assert self.window.query() == self.oracle.answer()
        assert self.window.oldest == (items[0][0] if items else None)
        assert self.window.youngest == (items[-1][0] if items else None)


def machine(name, **attributes):
    """A machine for another algorithm, aggregate or kind of time."""
    return type(name, (TimedMachine,), attributes).TestCase
