"""The walk of log_mta and amta: they put work off until a query, so it asks only where a step says so."""

from __future__ import annotations

import functools

from hypothesis import strategies as st

from sash.algebra.declaring import monoid_of
from sash.engine.aggregator import aggregator

RUNS = st.lists(st.tuples(st.sampled_from("+-~sq/"), st.integers(1, 40)), max_size=12)


def climb(algorithm, runs, aggregate, **options):
    """Insert (+), evict (-), slide (~), save and restore (s), query (q), evict some fortieths (/) in runs."""
    window, monoid, lifted = aggregator(algorithm, aggregate, **options), monoid_of(aggregate), []
    for step, times in runs:
        if step == "/":
            window.bulk_evict(len(window) * times // 40)
        for one in "" if step == "/" else step.replace("~", "-+") * times:
            if one == "+":
                window.insert(37 * len(lifted) % 101)
                lifted.append(monoid.lift(37 * len(lifted) % 101))
            elif one == "-" and len(window) > 0:
                window.evict()
            elif one == "s":
                saved, window = window.snapshot(), aggregator(algorithm, aggregate, **options)
                window.restore(saved)
            elif one == "q":
                window.query()
            window.check_invariants(lifted)
    held = lifted[len(lifted) - len(window) :]
    total = functools.reduce(monoid.combine, held) if held else None
    assert window.query() == (monoid.lower(total) if monoid.lower and held else total)
    window.check_invariants(lifted)
