"""Sash: exact sliding-window aggregation.

    import numpy as np, sash
    sash.slide(np.arange(10.0), sash.max(), rows=3)

Importing this package loads neither Numba nor Spark; they come with the first window that runs.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from sash._version import __version__
from sash.algebra.aggregate import Aggregate
from sash.algebra.arithmetic import count, geomean, mean, product, sum
from sash.algebra.collecting import collect, concat, distinct, mode
from sash.algebra.datasketching import kll, tdigest, theta
from sash.algebra.declaring import agg, aggregate, codec
from sash.algebra.laws import check_laws
from sash.algebra.logic import all, any, bit_and, bit_or, bit_xor
from sash.algebra.moment_sketch import moment_sketch
from sash.algebra.moments import corr, cov, std, trend, var
from sash.algebra.ordering import (
    argmax,
    argmin,
    first,
    last,
    m4,
    max,
    max_count,
    min,
    min_count,
    nth_youngest,
    range,
    top_k,
)  # fmt: skip
from sash.algebra.quantiles import median, quantile
from sash.algebra.runs import longest_increasing_run
from sash.algebra.sketching import bloom, bloom_contains, count_min, count_min_estimate, histogram, hyperloglog
from sash.errors import (
    DataError,
    DeclarationError,
    EmptyWindowError,
    FormatError,
    SashError,
    StoreAccessError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnavailableError,
    SumOverflowError,
    UnknownNameError,
    UnsupportedError,
)  # fmt: skip

if TYPE_CHECKING:
    from sash.engine.aggregator import aggregator
    from sash.engine.cards import algorithms
    from sash.engine.sliding import slide
    from sash.frames.spec import together
    from sash.frames.window import window
    from sash.stores.opening import open_store
    from sash.windows import policies

_LAZY = {  # what needs Numba or is seldom needed, and where it is
    "aggregator": "sash.engine.aggregator",
    "algorithms": "sash.engine.cards",
    "open_store": "sash.stores.opening",
    "slide": "sash.engine.sliding",
    "together": "sash.frames.spec",
    "window": "sash.frames.window",
}
_MODULES = {"policies": "sash.windows.policies", "spark": "sash.spark"}

__all__ = [
    "Aggregate", "DataError", "DeclarationError", "EmptyWindowError", "FormatError", "SashError",
    "StoreAccessError", "StoreError", "StoreFullError", "StoreReadOnlyError", "StoreUnavailableError",
    "SumOverflowError", "UnknownNameError", "UnsupportedError", "__version__", "agg", "aggregate",
    "aggregator", "algorithms", "all", "any", "argmax", "argmin", "bit_and", "bit_or", "bit_xor",
    "bloom", "bloom_contains", "check_laws", "codec", "collect", "concat", "corr", "count", "count_min",
    "count_min_estimate", "cov", "distinct", "first", "geomean", "histogram", "hyperloglog", "kll", "last",
    "longest_increasing_run", "m4", "max", "max_count", "mean", "median", "min", "min_count", "mode",
    "moment_sketch", "nth_youngest", "open_store", "policies", "product", "quantile", "range", "slide", "std",
    "sum", "tdigest", "theta", "together", "top_k", "trend", "var", "window",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    """Load on first use what is not always needed; for a name nobody knows, name the nearest."""
    if name in _LAZY:
        return getattr(importlib.import_module(_LAZY[name]), name)
    if name in _MODULES:
        return importlib.import_module(_MODULES[name])
    if name.startswith("_"):
        raise AttributeError(name)
    raise AttributeError(str(UnknownNameError.among("aggregate or function", name, __all__)))


def __dir__() -> list[str]:
    return sorted(__all__)
