"""`sash.aggregator`: the algorithms themselves, each behind the face that suits it.

By default an algorithm runs interpreted, on any Python value, and begins at once. `compiled=True` makes machine code
first, which takes seconds where it is not in the cache yet; a round of single events then takes half of the time, and
bulk work a hundredth.
"""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

from sash.aggregators import find
from sash.aggregators.contract import Algorithm
from sash.engine.behind import NAME as BEHIND
from sash.engine.behind import behind_aggregator
from sash.engine.binding import Bound, bind
from sash.engine.boundary import BoundaryAggregator, Sliding
from sash.engine.building import build
from sash.engine.flat_fat import FlatFat
from sash.engine.in_order import InOrderAggregator
from sash.engine.policed import PolicedAggregator
from sash.engine.reactive import ReactiveAggregator
from sash.engine.residence import Sizes
from sash.engine.single_events import CompiledAggregator
from sash.engine.stored import StoredAggregator
from sash.engine.timed import timed_aggregator
from sash.engine.trees import TREES
from sash.errors import DeclarationError, UnknownNameError, UnsupportedError
from sash.stores.opening import open_store
from sash.windows.policies import Policy, as_policy

MONOID_TREES = ("log_mta", "amta")
STORED = {"store", "name", "buffer", "cache"}  # options of windows in a store


def aggregator(algorithm: str, aggregate: Any, *, dtype: Any = None, compiled: bool = False, **options: Any) -> Any:
    """Make a window over single events: insert(value), evict(), query().

    `aggregate` is one aggregate or a dict of them, which share the structure and are answered as a
    dict. `compiled=True` makes machine code for values of `dtype` (float64 unless said). Further
    options are those of the algorithm: `inexact=True` where floats would be subtracted, `cached` for
    daba, `values` or `capacity` for flat_fat, `range`, `slide`, `chunk` and `by` for sba and pba,
    `policy` to have an in-order window slide by itself (a function of (total, old), or one of
    `sash.policies`), `store` (an address or an open store) and `name` to keep the window of amta or
    log_mta in a store, `buffer` and `cache` for how much of it stays in memory.

    >>> import sash
    >>> window = sash.aggregator("two_stacks_lite", sash.max())
    >>> window.bulk_insert([3, 1, 2])
    >>> window.evict()
    >>> window.query()
    2
    """
    if options.get("policy") is None:
        options.pop("policy", None)
    else:
        _require_queue(algorithm)
    if STORED & set(options):
        _require_storable(algorithm, options)
    if algorithm in TREES:
        return timed_aggregator(algorithm, bind(aggregate, dtype, compiled=compiled), **options)
    if algorithm == BEHIND:
        return behind_aggregator(bind(aggregate, dtype, compiled=compiled), **options)
    found, bound = find(algorithm), bind(aggregate, dtype, compiled=compiled)
    if found.card.fixed:
        return _sliding_by_itself(found, bound, options)
    if algorithm == "flat_fat":
        return _with_locations(bound, **options)
    if "policy" in options or found.card.name in MONOID_TREES:
        return _by_policy(found, aggregate, Form(dtype, compiled), **options)
    built = build(found, bound.monoids, bound.is_compiled, _known(found, options))
    face = CompiledAggregator if built.is_compiled else InOrderAggregator
    return (ReactiveAggregator if algorithm == "reactive" else face)(built, bound, inexact=bool(options.get("inexact")))


def _require_queue(algorithm: str) -> None:
    card = find(algorithm).card
    if card.fixed or card.order != "in order":
        raise UnsupportedError(
            f"{algorithm} takes no policy: its elements do not leave the oldest first, one by one. "
            "Use amta, which finds what must leave in logarithmic time, or another in-order algorithm"
        )


def _require_storable(algorithm: str, options: dict[str, Any]) -> None:
    if algorithm not in MONOID_TREES or options.get("store") is None:
        raise UnsupportedError(
            f"{algorithm} keeps its window in memory; amta and log_mta keep theirs in a store: "
            'store="lmdb:///path", name="w"'
        )


def _known(algorithm: Algorithm, options: dict[str, Any]) -> tuple[tuple[str, Any], ...]:
    """The options of an algorithm, none of them unknown to it."""
    known = {"inexact", *inspect.signature(algorithm.build).parameters} - {"cells", "jit", "where", "selective"}
    for name in options:
        if name not in known:
            raise UnknownNameError.among(f"option of {algorithm.card.name}", name, known)
    return tuple(sorted(options.items()))


class Form(NamedTuple):
    """Of which type values are, and whether machine code is wanted."""

    dtype: Any
    compiled: bool


def _by_policy(algorithm: Algorithm, aggregate: Any, form: Form, *, policy: Any = None, **options: Any) -> Any:
    given = None if policy is None else as_policy(policy)
    own = dict(given.aggregates) if given else {}
    stored = {name: options.pop(name) for name in STORED & set(options)}
    bound = bind(aggregate, form.dtype, compiled=form.compiled or "store" in stored, hidden=tuple(own.values()))
    names = bound.names or tuple(monoid.name for monoid in bound.monoids[: len(bound.monoids) - len(own)])
    visible = (None,) * len(names) + tuple(own) if own else names
    if stored:
        return _in_store(algorithm.card.name, bound, given, visible, **stored)
    built = build(algorithm, bound.monoids, bound.is_compiled, _known(algorithm, options))
    return PolicedAggregator(built, bound, given, visible, inexact=bool(options.get("inexact")))


def _in_store(
    algorithm: str,
    bound: Bound,
    policy: Policy | None,
    visible: tuple[str | None, ...],
    *,
    store: Any,
    name: str = "",
    **sizes: int,
) -> StoredAggregator:
    found = open_store(store) if isinstance(store, str) else store
    bound = bound._replace(is_compiled=bound.is_compiled and all(monoid.is_compilable for monoid in bound.monoids))
    window = StoredAggregator(algorithm, bound, found, name, sizes=Sizes(**sizes), owns_store=isinstance(store, str))
    if policy is not None:
        window.slide_by(policy, visible)
    return window


def _sliding_by_itself(algorithm: Algorithm, bound: Bound, options: dict[str, Any]) -> BoundaryAggregator:
    if len(bound.monoids) != 1:
        raise UnsupportedError(f"{algorithm.card.name} takes one aggregate; two_stacks_lite takes several")
    try:
        sliding = Sliding(**{"slide": 1, **options})
    except TypeError:
        raise DeclarationError(
            f"{algorithm.card.name} takes range=, slide=, chunk=, by= and combine_time=, got {sorted(options)}"
        ) from None
    return BoundaryAggregator(algorithm, bound.monoids[0], sliding, bound.dtype, is_compiled=bound.is_compiled)


def _with_locations(bound: Bound, *, values: Any = None, capacity: int = 0) -> FlatFat:
    return FlatFat(bound, [None] * capacity if values is None else values)
