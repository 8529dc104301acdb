"""HOW: one file for each algorithm. `ALGORITHMS` is the catalogue, and the only one."""

from __future__ import annotations

from sash.aggregators import recalc, two_stacks_lite
from sash.aggregators.contract import Algorithm
from sash.errors import UnknownNameError

_MODULES = (recalc, two_stacks_lite)

ALGORITHMS: dict[str, Algorithm] = {module.ALGORITHM.card.name: module.ALGORITHM for module in _MODULES}


def find(name: str) -> Algorithm:
    """Look an algorithm up by its name."""
    if name not in ALGORITHMS:
        raise UnknownNameError.among("algorithm", name, ALGORITHMS)
    return ALGORITHMS[name]
