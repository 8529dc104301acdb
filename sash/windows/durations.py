"""Durations: "1 hour 30 minutes", "250 ms", "1h30m", timedelta, numpy.timedelta64; exact, in nanoseconds.

A day has 24 hours and a week seven days, always. A month or a year has no fixed length, so a window
cannot be one long; they are refused. What is no duration may be a number: a length in the unit of
whatever it is measured on, which only that column knows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from sash.errors import DeclarationError, UnknownNameError

NANOSECONDS = {
    "week": 604_800_000_000_000,
    "day": 86_400_000_000_000,
    "hour": 3_600_000_000_000,
    "minute": 60_000_000_000,
    "second": 1_000_000_000,
    "millisecond": 1_000_000,
    "microsecond": 1_000,
    "nanosecond": 1,
}
SHORT = {
    "w": "week", "wk": "week",
    "d": "day",
    "h": "hour", "hr": "hour",
    "m": "minute", "min": "minute",
    "s": "second", "sec": "second",
    "ms": "millisecond", "milli": "millisecond", "msec": "millisecond",
    "us": "microsecond", "µs": "microsecond", "μs": "microsecond", "micro": "microsecond", "usec": "microsecond",
    "ns": "nanosecond", "nano": "nanosecond", "nsec": "nanosecond",
}  # fmt: skip
UNFIXED = {"M", "mo", "mon", "month", "q", "quarter", "y", "yr", "year", "decade", "century"}
NUMPY_UNITS = {
    "W": "week", "D": "day", "h": "hour", "m": "minute", "s": "second",
    "ms": "millisecond", "us": "microsecond", "ns": "nanosecond",
}  # fmt: skip

PART = re.compile(r"\s*([+-]?\d[\d_]*(?:\.\d+)?)\s*([^\W\d_]+)\s*(?:,|\band\b)?")
EXAMPLES = "'1 hour', '1 hour 30 minutes', '250 ms' or a timedelta"


@dataclass(frozen=True, order=True)
class Duration:
    """A length of time."""

    nanoseconds: int

    def __str__(self) -> str:
        words, rest = [], abs(self.nanoseconds)
        for unit, size in NANOSECONDS.items():
            count, rest = divmod(rest, size)
            if count:
                words.append(f"{count} {unit}" + ("s" if count > 1 else ""))
        sign = "-" if self.nanoseconds < 0 else ""
        return sign + (" ".join(words) or "0 seconds")

    def __repr__(self) -> str:
        return repr(str(self))


Number = int | float | Decimal
Length = Duration | Number


def read_length(given: Any, what: str, *, zero: bool = False) -> Length:
    """Read a duration or a number; it must be positive, or at least not negative if `zero` may be."""
    length = read_duration(given, what) if _is_duration(given) else _read_number(given, what)
    amount = length.nanoseconds if isinstance(length, Duration) else length
    if amount > 0 or (zero and amount == 0):
        return length
    raise DeclarationError(f"{what} must be {'zero or more' if zero else 'more than zero'}, got {given!r}")


def read_duration(given: Any, what: str = "a duration") -> Duration:
    """Read a duration of any form and sign."""
    if isinstance(given, Duration):
        return given
    if isinstance(given, str):
        return Duration(_parse(given, what))
    if hasattr(given, "to_timedelta64"):  # pandas: a timedelta that keeps nanoseconds beside its own fields
        given = given.to_timedelta64()
    if isinstance(given, np.timedelta64):
        return Duration(_of_numpy(given, what))
    if isinstance(given, timedelta):
        seconds = given.days * 86_400 + given.seconds
        return Duration((seconds * 1_000_000 + given.microseconds) * 1_000)
    raise DeclarationError(f"{what} must be a duration such as {EXAMPLES}, got {given!r}")


def _is_duration(given: Any) -> bool:
    return isinstance(given, (Duration, str, timedelta, np.timedelta64))


def _read_number(given: Any, what: str) -> Number:
    value = given.item() if isinstance(given, np.generic) else given
    if isinstance(value, bool) or not isinstance(value, (int, float, Decimal)):
        raise DeclarationError(
            f"{what} must be a duration such as {EXAMPLES}, or a number in the unit of its column, got {given!r}"
        )
    if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124 - only NaN differs from itself
        raise DeclarationError(f"{what} must be finite, got {given!r}. For all rows before, use everything()")
    return int(value) if value == int(value) else value


def _parse(text: str, what: str) -> int:
    """Add up pairs of number and unit."""
    given = re.sub(r"^\s*interval\b", "", text, flags=re.IGNORECASE).strip()
    if re.fullmatch(r"[+-]?[\d_.]+", given):
        raise DeclarationError(
            f"{what} {text!r} has no unit. Write '{given} seconds', or the number {given} if order_by is a number"
        )
    total, position = Fraction(0), 0
    while position < len(given):
        part = PART.match(given, position)
        if part is None:
            raise DeclarationError(f"cannot read {what} {text!r} from {given[position:]!r} on. Write {EXAMPLES}")
        total += Fraction(part[1].replace("_", "")) * NANOSECONDS[_unit(part[2], text, what)]
        position = part.end()
    if not given:
        raise DeclarationError(f"{what} is empty. Write {EXAMPLES}")
    if total.denominator != 1:
        raise DeclarationError(f"{what} {text!r} is no whole number of nanoseconds, the finest unit there is")
    return int(total)


def _unit(word: str, text: str, what: str) -> str:
    """The full name of a unit, from any of its spellings."""
    lower = word.lower()
    singular = lower[:-1] if lower.endswith("s") and len(lower) > 2 else lower
    if word == "M" or singular in UNFIXED:
        raise DeclarationError(
            f"{what} {text!r} has no fixed length: months and years differ. Say it in days, as in '30 days'"
        )
    for name in (lower, singular):
        if name in SHORT or name in NANOSECONDS:
            return SHORT.get(name, name)
    raise UnknownNameError.among("unit of time", word, [*NANOSECONDS, *(f"{unit}s" for unit in NANOSECONDS)])


def _of_numpy(given: np.timedelta64, what: str) -> int:
    """Python's integers do not overflow where NumPy's conversion would."""
    if np.isnat(given):
        raise DeclarationError(f"{what} is NaT, which is no duration. Write {EXAMPLES}")
    unit, count = np.datetime_data(given.dtype)
    if unit not in NUMPY_UNITS:
        raise DeclarationError(f"{what} {given!r} has no fixed length in whole nanoseconds. Write {EXAMPLES}")
    return int(given.astype(np.int64)) * count * NANOSECONDS[NUMPY_UNITS[unit]]
