"""HOW: one file for each algorithm. `ALGORITHMS` is the catalogue, and the only one."""

from __future__ import annotations

from sash.aggregators import (
    aba,
    amta,
    btree,
    daba,
    daba_behind_fiba,
    daba_lite,
    fiba,
    flat_fat,
    flat_fit,
    log_mta,
    pba,
    reactive,
    recalc,
    sba,
    slick_deque,
    subtract_on_evict,
    two_stacks,
    two_stacks_lite,
)
from sash.aggregators.contract import Algorithm
from sash.errors import UnknownNameError

_MODULES = (
    recalc, subtract_on_evict, two_stacks, two_stacks_lite, aba, daba, daba_lite, flat_fat, reactive, flat_fit,
    slick_deque, sba, pba, log_mta, amta, btree, fiba,
    daba_behind_fiba,
)  # fmt: skip

ALGORITHMS: dict[str, Algorithm] = {module.ALGORITHM.card.name: module.ALGORITHM for module in _MODULES}


def find(name: str) -> Algorithm:
    """Look an algorithm up by its name."""
    if name not in ALGORITHMS:
        raise UnknownNameError.among("algorithm", name, ALGORITHMS)
    return ALGORITHMS[name]
