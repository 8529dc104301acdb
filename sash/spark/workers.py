"""Workers of Spark between two tasks: they collect garbage, which is to take no longer than there is garbage.

Spark's worker calls Python's collector after every task, and that looks at every object there is: with NumPy, Arrow,
Numba and Sash loaded a tenth of a second, as long as a micro-batch of some thousand rows. What is loaded will
never be garbage, so it is taken out of the collector's sight.
"""

from __future__ import annotations

import gc
from itertools import count

_tasks = count(1)


def end_task() -> None:
    """Say that a task has ended: after the first, second, fourth and so on, what is alive is taken out of sight.

    Garbage goes before, so that none of it stays for good; each time, less can be alive that was not alive before.
    """
    n = next(_tasks)
    if n & (n - 1) == 0:
        gc.collect()
        gc.freeze()
