"""Aggregates of the user's own: `@sash.aggregate`, and PySpark's Aggregator by its shape."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from sash.algebra.aggregate import Aggregate, AggregateCard, declare
from sash.algebra.monoid import Codec, Monoid
from sash.algebra.state import Object, Record, Row, State, parse_state
from sash.errors import DeclarationError

MONOID = "__sash_monoid__"
OPTIONAL = ("invert", "codec")
FLAGS = ("commutative", "selective", "answers_empty", "exact")
SPARK_PARTS = ("zero", "reduce", "merge", "finish")


def aggregate(*, state: object) -> Callable[[type], type]:
    """Declare a class of plain functions as an aggregate.

    The class has `lift` (from the values of one row), `combine(older, newer)`, `identity` unless
    the state is `object`, and, if the partial is not itself the answer, `lower(partial)`. It may
    also have `invert(whole, older)`, and claim `commutative`, `selective`, `answers_empty` or
    `exact` as true or false; an inverse of floats is inexact unless claimed otherwise. For a row
    state, `lift(x, out)` and `combine(older, newer, out)` write their result; `out` may be the
    memory of an argument.

    >>> @aggregate(state={"n": "i8", "total": "f8"})
    ... class Mean:
    ...     identity = (0, 0.0)
    ...     def lift(x): return (1, x)
    ...     def combine(older, newer): return (older[0] + newer[0], older[1] + newer[1])
    ...     def lower(s): return s[1] / s[0] if s[0] else None
    """
    parsed = parse_state(state)

    def decorate(cls: type) -> type:
        setattr(cls, MONOID, _monoid_of(cls, parsed))
        return cls

    return decorate


def agg(definition: Any, *columns: str) -> Aggregate:
    """Use an aggregate of one's own, or an instance of PySpark's Aggregator, on columns."""
    monoid = monoid_of(definition)
    card = AggregateCard(
        monoid.name,
        answer=(inspect.getdoc(definition) or "declared by the user").splitlines()[0],
        state=str(monoid.state),
        invertible=monoid.invert is not None,
        commutative=monoid.commutative,
        selective=monoid.selective,
    )
    unnamed: tuple[str | None, ...] = (None,) * monoid.n_inputs
    return declare(card, lambda *dtypes: monoid, *(columns or unnamed), n_inputs=monoid.n_inputs)


def monoid_of(definition: Any) -> Monoid:
    """Find the monoid behind whatever a user may hand over as an aggregate."""
    declared = getattr(definition, MONOID, None)
    if isinstance(declared, Monoid):
        return declared
    if all(hasattr(definition, part) for part in SPARK_PARTS):
        return _monoid_of_spark(definition)
    raise DeclarationError(
        f"{definition!r} is no aggregate. Decorate its class with @sash.aggregate(state=...), or give it "
        "the zero, reduce, merge and finish of a PySpark Aggregator"
    )


def _monoid_of(cls: type, state: State) -> Monoid:
    parts = vars(cls)
    for part in ("lift", "combine"):
        if not callable(_plain(parts.get(part))):
            raise DeclarationError(f"aggregate {cls.__name__} has no {part} function")
    if "identity" not in parts and not isinstance(state, Object):
        raise DeclarationError(
            f"aggregate {cls.__name__} has no identity; a state of fixed width needs the partial of no rows"
        )
    flags: dict[str, Any] = {"exact": _exactness(state)}
    flags |= {name: bool(parts[name]) for name in FLAGS if name in parts}
    lift, lower = _plain(parts["lift"]), _plain(parts.get("lower"))
    return Monoid(
        cls.__name__,
        state,
        lift=lift,
        combine=_plain(parts["combine"]),
        identity=parts.get("identity"),
        lower=lower,
        n_inputs=_count_inputs(lift, state),
        **{name: _plain(parts[name]) for name in OPTIONAL if name in parts},
        **flags,
    )


def _exactness(state: State) -> bool | None:
    """Whether an inverse, if there is one, undoes combine exactly, as long as nobody claims anything."""
    if isinstance(state, Object):
        return None
    dtypes = state.dtypes if isinstance(state, Record) else (state.dtype,)
    return all(dtype.kind != "f" for dtype in dtypes)


def _count_inputs(lift: Callable[..., Any], state: State) -> int:
    try:
        names = inspect.signature(lift).parameters
    except ValueError:  # a built-in such as int or math.log does not say
        return 1
    return len(names) - (isinstance(state, Row) and "out" in names)


def _plain(part: Any) -> Any:
    return part.__func__ if isinstance(part, (staticmethod, classmethod)) else part


def _monoid_of_spark(definition: Any) -> Monoid:
    """Adapt PySpark's Aggregator: lift is reduce from zero; merge is combine; finish is lower.

    `merge` and `reduce` may work in place there, so each gets a fresh zero or a copy to work on.
    """
    spark: Any = definition() if inspect.isclass(definition) else definition

    def zero() -> Any:
        return spark.zero() if callable(spark.zero) else spark.zero

    def lift(x: Any) -> Any:
        return spark.reduce(zero(), x)

    def combine(older: Any, newer: Any) -> Any:
        return spark.merge(spark.merge(zero(), older), newer)

    return Monoid(type(spark).__name__, Object(), lift=lift, combine=combine, lower=spark.finish)


def codec(encode: Callable[[Any], bytes], decode: Callable[[bytes], Any]) -> Codec:
    """Declare how an object state becomes bytes, so that its windows can be saved."""
    return Codec(encode, decode)
