"""Slide policies on a stream: a window goes on from the rows that the policy had left.

What a policy has left depends on all rows before, but only through the window itself. So the rows in the window of the
last row answered are kept, and in the next pass they enter again *unasked*: the policy is as good as not there
until the first new row has come. An aggregate of the pass's own says where each window begins, and so what to keep.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sash.algebra.ordering import first, last
from sash.windows.policies import Policy, Rule, as_policy

if TYPE_CHECKING:
    from sash.frames.spec import Spec

PLACE = "__sash_place"  # of a row among those that are sorted
SETTLED = "__sash_settled"  # 1 for rows that were answered before, else 0
BEGIN = "__sash_begin"  # the answer that says which row a window begins with


def going_on(spec: Spec) -> Spec:
    """The same spec for rows some of which were answered before; it also answers where windows begin."""
    extent = spec.window.extent
    assert extent is not None
    if extent.policy is None:
        return spec
    policy = as_policy(extent.policy, dict(extent.aggregates))
    patient = Policy(policy.name, _patient(policy.rule), (*policy.aggregates, ("sash_settled", last(SETTLED))))
    window = replace(spec.window, extent=replace(extent, policy=patient, aggregates=()))
    return replace(spec, window=window, aggregates=(*spec.aggregates, (BEGIN, first(PLACE))))


@lru_cache(maxsize=64)
def _patient(rule: Rule) -> Rule:
    """The same rule, but nothing goes while the youngest row of the window is one that was answered before."""

    def patient(total: Any, old: Any) -> bool:
        return total.sash_settled == 0 and rule(total, old)

    return patient
