"""A walk that every in-order algorithm is taken on: runs of steps, with all that must hold after each of them."""

from __future__ import annotations

import functools

from hypothesis import strategies as st

from sash.algebra.declaring import aggregate, monoid_of
from sash.engine.aggregator import aggregator
from sash.testing.monoids import Affine

RUNS = st.lists(st.tuples(st.sampled_from("+-~s"), st.integers(1, 20)), max_size=10)


@aggregate(state={"slope": "i8", "offset": "i8"})
class Poisoned:
    """Affine maps with an identity that is none: whoever combines with it spoils the answer."""

    identity = (0, 0)
    lift, combine, lower = Affine.lift, Affine.combine, Affine.lower


def follow(algorithm, runs, aggregate, **options):
    """Insert (+), evict (-), slide (~), save and restore (s) in runs; after each step all must hold."""
    window, monoid, lifted = aggregator(algorithm, aggregate, **options), monoid_of(aggregate), []
    for step in "".join(step.replace("~", "-+") * times for step, times in runs):
        if step == "+":
            window.insert(37 * len(lifted) % 101)
            lifted.append(monoid.lift(37 * len(lifted) % 101))
        elif step == "-" and len(window) > 0:
            window.evict()
        elif step == "s":
            saved, window = window.snapshot(), aggregator(algorithm, aggregate, **options)
            window.restore(saved)
        window.check_invariants(lifted)
        held = lifted[len(lifted) - len(window) :]
        total = functools.reduce(monoid.combine, held) if held else None
        assert window.query() == (monoid.lower(total) if monoid.lower and held else total)
