"""Laws as tests: one line for an aggregate in a test of your own.

>>> from sash.testing.monoids import Sum
>>> assert_laws(Sum)
>>> test_sums_of_anything = law_test(Sum, st.integers())
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from sash.algebra.laws import check_laws
from sash.testing import strategies

from hypothesis import given  # isort: skip - after strategies, which says how to install it
from hypothesis import strategies as st  # isort: skip

MOST_SAMPLES = 6


def assert_laws(aggregate: Any, samples: Iterable[Any] | None = None) -> None:
    """Fail with the report of `sash.check_laws` unless an aggregate keeps its laws."""
    report = check_laws(aggregate, samples)
    assert report.ok, f"\n{report}"


def law_test(aggregate: Any, values: st.SearchStrategy[Any] | None = None) -> Callable[[], None]:
    """Make a test that checks the laws on samples drawn from a strategy, which shrinks what it finds."""
    drawn = st.lists(strategies.rows(aggregate, values), min_size=1, max_size=MOST_SAMPLES)

    @given(rows=drawn)
    def test_laws(rows: list[tuple[Any, ...]]) -> None:
        assert_laws(aggregate, [row[0] if len(row) == 1 else row for row in rows])

    return test_laws
