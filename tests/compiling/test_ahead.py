"""Asking for memory ahead: compiled for every kind of pool, it is there in machine code and changes nothing."""

import numpy as np
import pytest

from sash.compiling.ahead import ahead
from sash.compiling.jit import entry, interpreted

POOLS = {
    "numbers": np.arange(4.0),
    "a record": (np.arange(4.0), np.arange(4)),
    "rows": np.arange(12).reshape(4, 3),
    "several, with counts": (np.arange(4), (np.arange(4.0), (np.ones((4, 2)), np.arange(4.0)))),
}


def leaves(pool):
    return [leaf for each in pool for leaf in leaves(each)] if isinstance(pool, tuple) else [pool]


@pytest.mark.parametrize("kind", POOLS)
def test_each_array_of_a_pool_is_asked_and_none_is_changed(kind):
    fetch = ahead(True)

    def ask_all(pool, n):
        for place in range(n):
            fetch(pool, place)
        return n

    before = [leaf.copy() for leaf in leaves(POOLS[kind])]
    asking = entry(ask_all)
    assert asking(POOLS[kind], 4) == 4
    assert all(map(np.array_equal, before, leaves(POOLS[kind])))
    (code,) = asking.inspect_llvm().values()
    assert code.count("call void @llvm.prefetch") >= len(before)


def test_interpreted_there_is_nothing_to_ask():
    assert interpreted(ahead(False))([1, 2], 0) is None
