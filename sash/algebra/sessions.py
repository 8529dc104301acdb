"""The session that rows end with: since the last silence of more than a span.

    times   1  2  4 ........... 31  33 ..... 50  51  52
            `-----'             `----'       `--------'   the last session begins at 50

A partial keeps its first and last time and where its last session begins; a silence between two
parts begins a session with the newer one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from sash.algebra.aggregate import Aggregate, AggregateCard, Dtype, declare
from sash.algebra.inputs import require_kind
from sash.algebra.monoid import Function, Monoid
from sash.algebra.state import Record

INT64 = np.dtype("i8")
FIELDS = ("first", "last", "begin", "is_cut")
OUTPUTS = ("begin", "end", "is_cut")
CARD = AggregateCard(
    "last_session",
    answer="begin and end of the last session, and whether something came before it",
    state="first and last time, where the last session begins",
    commutative=False,
)


def last_session(span: float, time: str | None = None) -> Aggregate:
    """Find the last session: the rows since the last silence of more than a span."""
    return declare(CARD, _binder(span), time, span=span)


@lru_cache(maxsize=64)
def _binder(span: float) -> Callable[[Dtype], Monoid]:
    def bind(dtype: Dtype) -> Monoid:
        kept = require_kind(CARD.name, dtype)
        return _monoid(span, np.dtype("f8") if kept is None or kept.kind == "f" else INT64)

    return bind


@lru_cache(maxsize=64)
def _monoid(span: float, time: np.dtype[Any]) -> Monoid:
    return Monoid(
        CARD.name,
        Record(FIELDS, (time, time, time, INT64)),
        lift=_lift,
        combine=_combine(span),
        identity=(0,) * len(FIELDS),
        lower=_lower,
        graded=True,
        outputs=OUTPUTS,
    )


def _lift(time: Any) -> Any:
    return (time, time, time, 0)


def _combine(span: float) -> Function:
    def combine(older: Any, newer: Any, n_older: float, n_newer: float) -> Any:
        begin, is_cut = newer[2], newer[3]
        if is_cut == 0:
            if newer[0] - older[1] > span:
                begin, is_cut = newer[0], 1
            else:
                begin, is_cut = older[2], older[3]
        return (older[0], newer[1], begin, is_cut)

    return combine


def _lower(partial: Any, n: float) -> Any:
    return (partial[2], partial[1], partial[3])
