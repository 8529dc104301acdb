"""Bounds: how far back a window reaches, in numbers of the unit of the order column.

A declared window speaks of "1 hour"; once the type of its order column is known, that is a number, and
the window is one of these. What lies in it is the rows of the same key, in order, that satisfy all that is set:

    field     a row is in the window of this row if
    (none)    it is not after this one: everything so far
    rows      it is among the last `rows` rows; windows then end with this row, whatever `ties` says
    span      its order value is within `span` of this one's; `closed` says which ends belong to the window
    lag       (with span) the window is the one that ended `lag` before this row
    gap       no silence of more than `gap` lies between it and this one: a session
    delta     as span, but of the mark column, which must not fall within a key
    since     no row after it, up to this one, has a true mark: everything since, that row included
    policy    the policy has not evicted it

`ties` says what becomes of the rows that order cannot tell from this one: all are in its window ("peers", as
Spark's RANGE) or only those not after it ("upto"). Windows by `rows`, `since` and `policy` always end with this row.
`closed` is spoken of span and delta; see windows/frames for its table.

Answers come at every row, at every n-th row of a key (`EveryRows`), or at the instants of a grid (`Every`);
windows/grids says which instants those are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sash.errors import DeclarationError, UnsupportedError
from sash.windows.frames import CLOSED, TIES
from sash.windows.policies import Policy

Number = int | float
FARTHEST = 2**63 - 1  # no distance between two int64 that is looked at is longer


@dataclass(frozen=True)
class Every:
    """A grid in time: the instants origin + k step, for all whole k."""

    step: Number
    origin: Number = 0

    def __post_init__(self) -> None:
        _require_number("every", self.step)
        _require_number("origin", self.origin, smallest=None)
        if not self.step > 0:
            raise DeclarationError(f"every must be positive, got {self.step!r}")

    def __str__(self) -> str:
        shifted = f", shifted by {self.origin}" if self.origin else ""
        return f"every {self.step}{shifted}"


@dataclass(frozen=True)
class EveryRows:
    """A grid in rows: the n-th, 2n-th, 3n-th ... row of each key."""

    rows: int

    def __post_init__(self) -> None:
        _require_count("every rows", self.rows, smallest=1)

    def __str__(self) -> str:
        return f"every {self.rows} rows"


@dataclass(frozen=True)
class Bounds:
    """A window in numbers; the header of this file says what each field means."""

    rows: int | None = None
    span: Number | None = None
    closed: str = "both"
    ties: str = "peers"
    lag: Number = 0
    min_rows: int = 0
    gap: Number | None = None
    delta: Number | None = None
    since: bool = False
    policy: Policy | None = None
    every: Every | EveryRows | None = None

    def __post_init__(self) -> None:
        """Refuse what makes no sense, alone or together."""
        self._require_values()
        self._require_one_kind()
        if isinstance(self.every, Every) and self.kind not in ("span", "rows", "everything"):
            raise UnsupportedError(
                f"a window by {self.kind} is told by rows and has no meaning at an instant between them; "
                "use every(rows=n), or a range window on the grid"
            )

    def _require_values(self) -> None:
        if self.rows is not None:
            _require_count("rows", self.rows, smallest=1)
        _require_count("min_rows", self.min_rows, smallest=0)
        for name in ("span", "lag", "gap", "delta"):
            if getattr(self, name) is not None:
                _require_number(name, getattr(self, name))
        if self.closed not in CLOSED:
            raise DeclarationError(f"closed must be one of {', '.join(CLOSED)}, got {self.closed!r}")
        if self.ties not in TIES:
            raise DeclarationError(f"ties must be one of {', '.join(TIES)}, got {self.ties!r}")
        if self.span is not None and self.span + self.lag > FARTHEST and isinstance(self.span + self.lag, int):
            raise DeclarationError(
                f"span + lag must be below 2**63 units, got {self.span + self.lag}; coarsen the unit"
            )

    def _require_one_kind(self) -> None:
        chosen = self._kinds
        if len(chosen) > 1:
            raise DeclarationError(f"a window has one kind, got {' and '.join(chosen)}; only rows goes with another")
        if self.policy is not None and self.rows is not None:
            raise DeclarationError("a policy decides alone; to bound its rows too, use either(policy, at_most(n))")
        if self.lag and self.span is None:
            raise DeclarationError(f"lag={self.lag!r} needs a span: the window that ended before this row")
        if self.closed != "both" and self.span is None and self.delta is None:
            raise DeclarationError(f"closed={self.closed!r} needs a span: other windows have no ends to close")

    @property
    def _kinds(self) -> list[str]:
        given = (("span", self.span), ("gap", self.gap), ("delta", self.delta), ("policy", self.policy))
        return [name for name, value in given if value is not None] + ["since"] * self.since

    @property
    def kind(self) -> str:
        """What decides how far back: span, gap, delta, since, policy, or else rows or everything."""
        decided = self._kinds
        return decided[0] if decided else "rows" if self.rows is not None else "everything"

    @property
    def is_grid(self) -> bool:
        """Whether answers come at instants, and not at rows."""
        return isinstance(self.every, Every)

    @property
    def needs_mark(self) -> bool:
        """Whether a second column decides: distances for delta, truth for since."""
        return self.kind in ("delta", "since")

    @property
    def ends_with_row(self) -> bool:
        """Whether no row after this one can be in its window."""
        return self.ties == "upto" or self.rows is not None or self.kind in ("since", "policy")

    @property
    def may_be_empty(self) -> bool:
        """Whether a window can hold no row at all, not even the one that it is answered for."""
        keeps_row = self.closed == "both" or (self.closed == "right" and (self.span or self.delta or 0) > 0)
        return self.is_grid or bool(self.lag) or self.policy is not None or not keeps_row

    def __str__(self) -> str:
        """Say it in words, lengths in units of the order column."""
        if self.every is None:
            return self._in_words
        return f"{self._in_words}, answered {self.every}"

    @property
    def _in_words(self) -> str:
        last = f"the last {self.rows} rows" if self.rows is not None else ""
        words = {
            "everything": "everything so far",
            "rows": f"{last}, this one included",
            "span": f"rows within {self.span} of this one, closed {self.closed}, ties {self.ties}",
            "gap": f"rows since the last silence of more than {self.gap}",
            "delta": f"rows whose mark is within {self.delta} of this one's, closed {self.closed}",
            "since": "rows since the last one that is marked, that one included",
            "policy": f"rows that {self.policy!r} has not evicted",
        }[self.kind]
        if last and self.kind != "rows":
            words += f", at most {last}"
        if self.lag:
            words += f", as of {self.lag} ago"
        return words + (f", null below {self.min_rows} rows" if self.min_rows else "")


def _require_count(name: str, value: object, *, smallest: int) -> None:
    is_count = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not is_count or value < smallest:  # type: ignore[operator]
        wanted = "a positive integer" if smallest else "an integer, 0 or more"
        raise DeclarationError(f"{name} must be {wanted}, got {value!r}")


def _require_number(name: str, value: object, *, smallest: int | None = 0) -> None:
    is_number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not is_number or value != value:  # noqa: PLR0124 - NaN
        raise DeclarationError(f"{name} must be a number of the unit of the order column, got {value!r}")
    if smallest is not None and value < smallest:  # type: ignore[operator]
        raise DeclarationError(f"{name} must not be negative, got {value!r}")
