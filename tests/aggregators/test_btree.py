import random

from hypothesis import strategies as st

from sash.aggregators.fiba.layout import HEIGHT, ROOT
from sash.engine.aggregator import aggregator
from sash.testing.counting import counting
from sash.testing.monoids import Affine, Sum
from tests.aggregators.trees import Letters, machine

TestBtree = machine("Btree", algorithm="btree")
TestBtreeOfAffineMaps = machine("BtreeOfAffineMaps", algorithm="btree", aggregate=Affine, values=st.integers(0, 99))


def test_the_root_aggregates_everything():
    window = aggregator("btree", Letters, min_arity=2)
    for time in random.Random(3).sample(range(26), 26):
        window.insert(time, chr(97 + time))
    assert window._tree.pool[window._tree.at[ROOT] * window._trees.kit.width] == "abcdefghijklmnopqrstuvwxyz"


def test_every_change_is_carried_up_to_the_root():
    """At least one combine a level, wherever the change is: what fiba saves near the ends."""
    counted, calls = counting(Sum)
    window = aggregator("btree", counted, min_arity=2)
    window.bulk_insert(range(3000), [1] * 3000)
    height = window._tree.at[HEIGHT]
    for time in (-1, 1500.5, 3001):
        calls.take()
        window.insert(time, 1)
        assert calls.take() >= height
    window.query()
    assert calls.take() == 0
