"""Every in-order algorithm on every kind of aggregate, interpreted and compiled, in step with recalc."""

from __future__ import annotations

import pytest

from sash.aggregators import ALGORITHMS
from sash.compiling.jit import is_enabled
from sash.testing.fifo_suite import excuse, run_conformance
from sash.testing.monoids import Affine, ArgMax, Bloom, Concat, Max, Mean, Sum

AGGREGATES = [Sum, Max, Mean, Concat, Affine, ArgMax, Bloom]
FORMS = ["interpreted", "compiled"] if is_enabled() else ["interpreted"]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("aggregate", AGGREGATES, ids=lambda aggregate: aggregate.__name__)
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_agrees_with_recalculation_or_refuses(algorithm, aggregate, form):
    if excuse(ALGORITHMS[algorithm].card):
        pytest.skip(excuse(ALGORITHMS[algorithm].card))
    run_conformance(algorithm, aggregate, form == "compiled")
