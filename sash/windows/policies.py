"""Slide policies: when the oldest part of a window must go, said in terms of its aggregates.

A policy is a function of two records, the aggregates of the whole window and those of its oldest part:

    def at_most_a_hundred(total, old):
        return total.n - old.n >= 100

True means that at least that part must go: here, if a hundred values are left without it. What must not
stay is therefore the youngest element of the old part, and a bound on a sum asks what that one begins:

    def at_most_ten(total, old):                     # total=sash.sum("x"), last=sash.last("x")
        return total.total - old.total + old.last > 10

A policy must be *monotone*: if a part goes, every shorter one goes. It is compiled like an aggregate:
numbers, comparisons, `and`, `or`, functions of math. A null answer reaches it as NaN among floats and as
0 among integers.

The policies made here bring their own aggregates; they may stand beside any others in a window.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from sash.algebra.aggregate import Aggregate
from sash.algebra.arithmetic import count, sum
from sash.algebra.ordering import last, max
from sash.algebra.runs import longest_increasing_run
from sash.algebra.sessions import last_session
from sash.errors import DeclarationError

Rule = Callable[[Any, Any], bool]


@dataclass(frozen=True)
class Policy:
    """A rule, and the aggregates of its own that it looks at."""

    name: str
    rule: Rule
    aggregates: tuple[tuple[str, Aggregate], ...] = ()

    def __repr__(self) -> str:
        return f"<policy {self.name}>"


def as_policy(given: Any, aggregates: Mapping[str, Aggregate] | None = None) -> Policy:
    """Read a policy, or a function that is one over named aggregates."""
    if isinstance(given, Policy):
        return given
    if not callable(given):
        raise DeclarationError(f"a policy is a function of (total, old), got {given!r}")
    return Policy(getattr(given, "__name__", "policy"), given, tuple((aggregates or {}).items()))


def at_most(n: int) -> Policy:
    """Keep the last n values."""
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise DeclarationError(f"at_most needs a positive number of values, got {n!r}")
    return Policy(f"at_most({n})", _at_most(n), _named(n=count()))


def within(span: float, column: str, *, closed: str = "both") -> Policy:
    """Keep what is within a span of the newest time; `closed="right"` gives up what is exactly as old."""
    _require_not_negative("within", span)
    if closed not in ("both", "right"):
        raise DeclarationError(f'within takes closed="both" or "right", got {closed!r}')
    return Policy(f"within({span!r}, {column!r})", _within(span, closed == "both"), _named(time=last(column)))


def sum_at_most(limit: float, column: str) -> Policy:
    """Keep the newest values that add up to at most the limit; values must not be negative."""
    return Policy(
        f"sum_at_most({limit!r}, {column!r})", _sum_at_most(limit), _named(sum=sum(column), last=last(column))
    )


def since_maximum(column: str) -> Policy:
    """Keep what follows the maximum, the earliest if there are several, and that row itself."""
    return Policy(f"since_maximum({column!r})", _since_maximum, _named(max=max(column)))


def since_longest_run(time: str, value: str) -> Policy:
    """Keep what follows the beginning of the longest run of rising values."""
    run = longest_increasing_run(time, value)
    return Policy(f"since_longest_run({time!r}, {value!r})", _since_longest_run, _named(run=run, time=last(time)))


def since_gap(span: float, column: str) -> Policy:
    """Keep what follows the last silence of more than a span: a session."""
    _require_not_negative("since_gap", span)
    return Policy(f"since_gap({span!r}, {column!r})", _since_gap, _named(session=last_session(span, column)))


def either(*policies: Policy) -> Policy:
    """Give up what any of several policies gives up: all their bounds hold at once."""
    if len(policies) < 2:
        raise DeclarationError("either takes two policies or more")
    first, *others = policies
    for other in others:
        first = _either(first, other)
    return first


def _either(first: Policy, second: Policy) -> Policy:
    needed = dict(first.aggregates)
    for name, wanted in second.aggregates:
        if needed.setdefault(name, wanted) != wanted:
            raise DeclarationError(
                f"{first.name} and {second.name} both call an aggregate {name!r}, and mean different ones; "
                "write one function of (total, old) over aggregates with names of your own"
            )
    rule_1, rule_2 = first.rule, second.rule

    def rule(total: Any, old: Any) -> bool:
        return rule_1(total, old) or rule_2(total, old)

    return Policy(f"either({first.name}, {second.name})", rule, tuple(needed.items()))


def _named(**aggregates: Aggregate) -> tuple[tuple[str, Aggregate], ...]:
    return tuple(aggregates.items())


def _require_not_negative(name: str, span: float) -> None:
    if not span >= 0:
        raise DeclarationError(f"{name} needs a span that is not negative, got {span!r}")


@lru_cache(maxsize=64)
def _at_most(n: int) -> Rule:
    def rule(total: Any, old: Any) -> bool:
        return bool(total.n - old.n >= n)

    return rule


@lru_cache(maxsize=64)
def _within(span: float, keeps_bound: bool) -> Rule:
    def rule(total: Any, old: Any) -> bool:
        age = total.time - old.time
        return bool(age > span or (age == span and not keeps_bound))

    return rule


@lru_cache(maxsize=64)
def _sum_at_most(limit: float) -> Rule:
    def rule(total: Any, old: Any) -> bool:
        return bool((total.sum - old.sum) + old.last > limit)  # what the youngest of the old begins is too much

    return rule


def _since_maximum(total: Any, old: Any) -> bool:
    if total.max != total.max:
        return bool(old.max == old.max)
    return bool(old.max < total.max)


def _since_longest_run(total: Any, old: Any) -> bool:
    return bool(old.time < total.run.start)


def _since_gap(total: Any, old: Any) -> bool:
    return bool(total.session.is_cut and old.session.end < total.session.begin)
