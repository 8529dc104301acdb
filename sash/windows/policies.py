"""Slide policies: when the oldest part of a window must go, said in terms of its aggregates.

A policy is a function of two records, the aggregates of the whole window and those of its oldest part:

    def at_most_a_hundred(total, old):
        return total.n - old.n >= 100

True means that at least that part must go: here, if a hundred values are left without it. What must not
stay is therefore the youngest element of the old part, and a bound on a sum asks what that one begins:

    def at_most_ten(total, old):                     # total=sash.sum("x"), last=sash.last("x")
        return total.total - old.total + old.last > 10

A policy must be *monotone*: if a part goes, every shorter one goes. It is compiled like an aggregate:
numbers, comparisons, `and`, `or`, functions of math. A null answer reaches it as NaN, or as 0 where it is
compiled and the answers are integers.

The policies made here bring their own aggregates; they may stand beside any others in a window. A row
without a value goes with the one before it; if there is none, with all that is known to be too old.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from numbers import Integral, Real
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
    if isinstance(n, bool) or not isinstance(n, Integral) or n < 1:
        raise DeclarationError(f"at_most needs a positive number of values, got {n!r}")
    return Policy(f"at_most({n})", _at_most(int(n)), _named(n=count()))


def within(span: float, column: str, *, closed: str = "both") -> Policy:
    """Keep what is within a span of the newest time; `closed="right"` gives up what is exactly as old.

    Times must not fall.
    """
    _require_not_negative("within", span)
    if closed not in ("both", "right"):
        raise DeclarationError(f'within takes closed="both" or "right", got {closed!r}')
    needed = _named(time=last(column), n_times=count(column))
    return Policy(f"within({span!r}, {column!r})", _within(span, closed == "both"), needed)


def sum_at_most(limit: float, column: str) -> Policy:
    """Keep the newest values that add up to at most the limit; values must be finite and not negative."""
    if not _is_number(limit):
        raise DeclarationError(f"sum_at_most needs a number for its limit, got {limit!r}")
    return Policy(
        f"sum_at_most({limit!r}, {column!r})", _sum_at_most(limit), _named(sum=sum(column), last=last(column))
    )


def since_maximum(column: str) -> Policy:
    """Keep what follows the maximum, the earliest if there are several, and that row itself."""
    return Policy(f"since_maximum({column!r})", _since_maximum, _named(max=max(column), n_values=count(column)))


def since_longest_run(time: str, value: str) -> Policy:
    """Keep the longest run of rising values, the earliest if there are several, and what follows it.

    Times must rise.
    """
    needed = _named(run=longest_increasing_run(time, value), time=last(time), n_times=count(time))
    return Policy(f"since_longest_run({time!r}, {value!r})", _since_longest_run, needed)


def since_gap(span: float, column: str) -> Policy:
    """Keep what follows the last silence of more than a span: a session. Times must not fall."""
    _require_not_negative("since_gap", span)
    needed = _named(session=last_session(span, column), n_times=count(column))
    return Policy(f"since_gap({span!r}, {column!r})", _since_gap, needed)


def either(*policies: Policy) -> Policy:
    """Give up what any of several policies gives up: all their bounds hold at once."""
    if len(policies) < 2 or not all(isinstance(policy, Policy) for policy in policies):
        raise DeclarationError(
            f"either takes two policies of sash.policies or more, got {policies!r}; functions are joined by `or` in "
            "a function of your own"
        )
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
    rule = _either_rule(first.rule, second.rule)
    return Policy(f"either({first.name}, {second.name})", rule, tuple(needed.items()))


@lru_cache(maxsize=64)
def _either_rule(first: Rule, second: Rule) -> Rule:
    def rule(total: Any, old: Any) -> bool:
        return first(total, old) or second(total, old)

    return rule


def _named(**aggregates: Aggregate) -> tuple[tuple[str, Aggregate], ...]:
    return tuple(aggregates.items())


def _is_number(given: Any) -> bool:
    return isinstance(given, Real) and given == given  # noqa: PLR0124 - NaN is none


def _require_not_negative(name: str, span: float) -> None:
    if not _is_number(span) or span < 0:
        raise DeclarationError(f"{name} needs a span in the numbers of its column, not negative, got {span!r}")


@lru_cache(maxsize=64)
def _at_most(n: int) -> Rule:
    def rule(total: Any, old: Any) -> bool:
        return bool(total.n - old.n >= n)

    return rule


@lru_cache(maxsize=64)
def _within(span: float, keeps_bound: bool) -> Rule:
    def rule(total: Any, old: Any) -> bool:
        if old.n_times == 0:
            return bool(total.n_times > 0)
        age = total.time - old.time
        return bool(age > span or (age == span and not keeps_bound))

    return rule


@lru_cache(maxsize=64)
def _sum_at_most(limit: float) -> Rule:
    def rule(total: Any, old: Any) -> bool:
        if old.sum != old.sum:  # null: nothing to subtract
            return bool(total.sum > limit)
        return bool((total.sum - old.sum) + old.last > limit)  # what the youngest of the old begins is too much

    return rule


def _since_maximum(total: Any, old: Any) -> bool:
    if old.n_values == 0:
        return bool(total.n_values > 0)
    if total.max != total.max:
        return bool(old.max == old.max)
    return bool(old.max < total.max)


def _since_longest_run(total: Any, old: Any) -> bool:
    if total.run.length > 0:
        return bool(old.n_times == 0 or old.time < total.run.start)
    return False


def _since_gap(total: Any, old: Any) -> bool:
    if total.n_times > 0 and total.session.is_cut:
        return bool(old.n_times == 0 or old.session.end < total.session.begin)
    return False
