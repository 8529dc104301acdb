"""What figure 18 of DABA claims of rows of 2 kB: where they are beyond the caches is a matter of the machine."""

import pytest

from bench.experiments.contract import point
from bench.experiments.daba import _flat_rows
from bench.experiments.fitting import Curves

WINDOWS = [2**k for k in (8, 10, 12, 14, 16, 17)]


def flat(throughputs, cache_mb):
    rows = [point("bloom", "daba", n, y) for n, y in zip(WINDOWS, throughputs, strict=True)]
    return _flat_rows(Curves([*rows, *([point("last cache", "of the processor", 0, cache_mb)] if cache_mb else [])]))


@pytest.mark.parametrize(("throughputs", "cache_mb", "holds"), [
    ((6, 5, 3, 1.1, 1, 1), 32, True),  # falls as it leaves the caches
    ((6, 5, 3, 1.1, 0.7, 0.5), 32, False),  # and goes on
    ((6, 5, 3, 1.1, 1, 1), 1, False),  # falls, though none of them has been in a cache
    ((6, 5, 3, 1.1, 1, 1), None, False),
])  # fmt: skip
def test_rows_beyond_the_last_cache_must_be_flat(throughputs, cache_mb, holds):
    claim = flat(throughputs, cache_mb)
    assert claim.holds is holds
    assert claim.why


def test_it_is_told_from_where_on_it_was_fitted():
    assert "from 16,384 elements on, which take 64 MB (the last cache has 32)" in flat((6, 5, 3, 1, 1, 1), 32).measured
