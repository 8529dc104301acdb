"""KLL, theta and t-digest, as the Apache DataSketches library makes them.

Partials are objects of that library, written to bytes in its own formats. It merges in place, so
every combine works on a copy. Install it with: pip install 'sash[sketches]'.

    sketch    merging                          error
    kll       associative up to its error;     of the rank: 1.3 % for k = 200
              tosses coins beyond k values
    tdigest   associative up to its error      of the rank: smallest at both ends, not bounded
    theta     associative, bit for bit         of the count: 1.6 % for lg_k = 12

So a quantile of kll or tdigest may depend, within its error, on how an algorithm brackets the rows,
and with kll differs from run to run. None of them has an inverse.
"""

from __future__ import annotations

import copy
import importlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from sash.algebra.aggregate import Aggregate, AggregateCard, Dtype, declare
from sash.algebra.hashing import hash_value
from sash.algebra.inputs import require_kind
from sash.algebra.monoid import Codec, Function, Monoid
from sash.algebra.state import Object
from sash.errors import DeclarationError, FormatError

Quantiles = float | tuple[float, ...]

KLL = AggregateCard(
    "kll",
    answer="estimated quantiles; its laws hold up to its error",
    state="a KLL sketch of the datasketches library",
    cost="O(k log(rows / k))",
)
TDIGEST = AggregateCard(
    "tdigest",
    answer="estimated quantiles, best at both ends; its laws hold up to its error",
    state="a t-digest of the datasketches library",
    cost="O(k)",
)
THETA = AggregateCard(
    "theta",
    answer="the estimated number of different values",
    state="a theta sketch of the datasketches library",
    cost="O(2^lg_k)",
)

CLASSES = {"kll": ("kll_doubles_sketch", 8), "tdigest": ("tdigest_double", 10)}  # and the least k
K_MAX = 65535


def kll(column: str | None = None, *, k: int = 200, quantiles: float | Sequence[float] = 0.5) -> Aggregate:
    """Estimate quantiles by a KLL sketch: one number, or a tuple of them; NaN is left out.

    The rank of an estimate is off by at most 1.3 % for k = 200, with 99 % confidence. Exact up to k
    rows; beyond, the sketch tosses coins, and two runs may answer differently. A combine copies the
    sketch, a few times k values.
    """
    return _declare_quantiles(KLL, column, k, quantiles)


def tdigest(column: str | None = None, *, k: int = 200, quantiles: float | Sequence[float] = 0.5) -> Aggregate:
    """Estimate quantiles by a t-digest: one number, or a tuple of them; NaN is left out.

    Best near 0 and 1, where the error of the rank shrinks with the distance from the end; there is no
    bound for the worst case. A combine copies the digest, at most 2 k centroids.
    """
    return _declare_quantiles(TDIGEST, column, k, quantiles)


def theta(column: str | None = None, *, lg_k: int = 12) -> Aggregate:
    """Estimate the number of different values by a theta sketch; 0.0 in an empty window.

    Exact up to 2^lg_k different values, then with a standard error of 1 / sqrt(2^lg_k), 1.6 % by
    default. A combine copies up to 2^lg_k hashes.
    """
    if not isinstance(lg_k, int) or not 5 <= lg_k <= 26:
        raise DeclarationError(f"theta needs lg_k from 5 to 26, got lg_k={lg_k!r}")
    return declare(THETA, _theta_binder(lg_k), column, lg_k=lg_k)


def _declare_quantiles(
    card: AggregateCard, column: str | None, k: int, quantiles: float | Sequence[float]
) -> Aggregate:
    sketch, least = CLASSES[card.name]
    if not isinstance(k, int) or not least <= k <= K_MAX:
        raise DeclarationError(f"{card.name} needs k from {least} to {K_MAX}, got k={k!r}")
    wanted = float(quantiles) if isinstance(quantiles, (int, float)) else tuple(quantiles)
    if not all(0 <= q <= 1 for q in _several(wanted)):
        raise DeclarationError(f"quantiles lie between 0 and 1, got quantiles={quantiles!r}")
    return declare(card, _quantile_binder(card.name, sketch, k, wanted), column, k=k, quantiles=wanted)


def _several(quantiles: Quantiles) -> tuple[float, ...]:
    return (quantiles,) if isinstance(quantiles, float) else quantiles


@lru_cache
def _quantile_binder(name: str, sketch: str, k: int, quantiles: Quantiles) -> Function:
    @lru_cache
    def bind(dtype: Dtype) -> Monoid:
        return make() if require_kind(name, dtype) is None else bind(None)

    def make() -> Monoid:
        return _quantile_monoid(f"{name}(k={k})", getattr(_library(name), sketch), k, quantiles)

    return bind


def _quantile_monoid(name: str, sketch: Any, k: int, quantiles: Quantiles) -> Monoid:
    """The monoid of a class of sketches that are updated, merged and asked alike.

    What a window answers must not depend on when it was asked or saved before. Asking a KLL sketch
    sorts it, so copies are asked; writing a t-digest empties its buffer, so every change does.
    """
    settle = getattr(sketch, "compress", _nothing)

    def lift(x: Any) -> Any:
        lifted = sketch(k)
        lifted.update(float(x))
        settle(lifted)
        return lifted

    def combine(older: Any, newer: Any) -> Any:
        joined = copy.copy(older)
        joined.merge(newer)
        settle(joined)
        return joined

    def lower(partial: Any) -> Any:
        if partial.is_empty():
            return None
        asked = copy.copy(partial)
        if isinstance(quantiles, float):
            return asked.get_quantile(quantiles)
        return tuple(asked.get_quantile(q) for q in quantiles)

    outputs = () if isinstance(quantiles, float) else tuple(f"q{q:g}" for q in quantiles)
    return Monoid(
        name, Object(), lift=lift, combine=combine, lower=lower, exact=False, outputs=outputs, codec=_codec(sketch)
    )


def _nothing(sketch: Any) -> None:
    pass


@lru_cache
def _theta_binder(lg_k: int) -> Function:
    @lru_cache
    def make() -> Monoid:
        library = _library("theta")

        def lift(x: Any) -> Any:
            high, low = hash_value(x)
            sketch = library.update_theta_sketch(lg_k)
            sketch.update((high - 2**31) * 2**32 + low)
            return sketch.compact()

        def combine(older: Any, newer: Any) -> Any:
            union = library.theta_union(lg_k)
            union.update(older)
            union.update(newer)
            return union.get_result()

        return Monoid(
            f"theta(lg_k={lg_k})",
            Object(),
            lift=lift,
            combine=combine,
            identity=library.update_theta_sketch(lg_k).compact(),
            lower=_estimate,
            commutative=True,
            answers_empty=True,
            codec=_codec(library.compact_theta_sketch),
        )

    return lambda dtype: make()


def _estimate(sketch: Any) -> float:
    return float(sketch.get_estimate())


def _codec(sketch: Any) -> Codec:
    def encode(partial: Any) -> bytes:
        return bytes(partial.serialize())

    def decode(data: bytes) -> Any:
        try:
            return sketch.deserialize(data)
        except Exception as error:
            raise FormatError(f"not a {sketch.__name__}: {error}") from error

    return Codec(encode, decode)


def _library(name: str) -> Any:
    try:
        return importlib.import_module("datasketches")
    except ImportError as error:
        raise DeclarationError(
            f"cannot make {name}: the datasketches package is missing. Install it with: pip install 'sash[sketches]'"
        ) from error
