"""Durations: every form gives the same nanoseconds, and mistakes are answered with what to write."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sash.errors import DeclarationError, UnknownNameError
from sash.windows.durations import NANOSECONDS, Duration, read_duration, read_length

HOUR = 3_600_000_000_000


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("1 hour", HOUR),
        ("1 hour 30 minutes", HOUR + HOUR // 2),
        ("1 hour, 30 minutes and 2 seconds", HOUR + HOUR // 2 + 2_000_000_000),
        ("1h30m", HOUR + HOUR // 2),
        ("1.5 hours", HOUR + HOUR // 2),
        ("INTERVAL 2 DAYS", 48 * HOUR),
        ("1 week", 7 * 24 * HOUR),
        ("250 ms", 250_000_000),
        ("3µs", 3_000),
        ("7 ns", 7),
        ("1_000 secs", 1_000_000_000_000),
        ("90 min", HOUR + HOUR // 2),
        ("2 hrs", 2 * HOUR),
    ],
)
def test_a_text_is_read_exactly(text, nanoseconds):
    assert read_length(text, "span") == Duration(nanoseconds)


@pytest.mark.parametrize(
    "given",
    [timedelta(hours=1), np.timedelta64(1, "h"), np.timedelta64(3_600_000_000, "us"), Duration(HOUR), "60 minutes"],
)
def test_every_form_of_an_hour_is_the_same(given):
    assert read_length(given, "span") == Duration(HOUR)


def test_nanoseconds_of_a_pandas_timedelta_are_kept():
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    assert read_length(pandas.Timedelta("1us 1ns"), "span") == Duration(1001)


@given(st.integers(1, 10**20))
def test_what_is_printed_can_be_read_again(nanoseconds):
    assert read_duration(str(Duration(nanoseconds))) == Duration(nanoseconds)


@given(st.timedeltas(min_value=timedelta(microseconds=1)))
def test_a_timedelta_loses_nothing(value):
    assert read_duration(value).nanoseconds == value // timedelta(microseconds=1) * NANOSECONDS["microsecond"]


@pytest.mark.parametrize(("given", "wanted"), [(5, 5), (2.5, 2.5), (np.int32(7), 7), (3.0, 3), (Decimal("0.5"),) * 2])
def test_a_number_stays_a_number(given, wanted):
    assert read_length(given, "span") == wanted


@pytest.mark.parametrize("given", ["1 month", "2 years", "1M", "1 quarter", np.timedelta64(1, "M"), np.timedelta64(3)])
def test_what_has_no_fixed_length_is_refused(given):
    with pytest.raises(DeclarationError, match="no fixed length"):
        read_length(given, "span")


@pytest.mark.parametrize("given", [0, -1, "0 seconds", "-1 hour", timedelta(0), -timedelta(1), np.timedelta64(0, "s")])
def test_zero_and_less_are_refused(given):
    with pytest.raises(DeclarationError, match="span must be more than zero"):
        read_length(given, "span")


def test_zero_may_be_allowed():
    assert read_length("0 seconds", "lag", zero=True) == Duration(0)
    with pytest.raises(DeclarationError, match="lag must be zero or more"):
        read_length(-1, "lag", zero=True)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("60", "'60' has no unit. Write '60 seconds'"),
        ("hour", "cannot read span 'hour'"),
        ("", "span is empty"),
        ("1 hour!", "from '!' on"),
        ("0.1 ns", "no whole number of nanoseconds"),
        (True, "must be a duration such as '1 hour'"),
        (None, "must be a duration such as '1 hour'"),
        (float("nan"), "must be finite"),
        (float("inf"), "use everything()"),
        (np.timedelta64("NaT"), "NaT"),
        ([1], "a number in the unit of its column"),
    ],
)
def test_what_cannot_be_read_is_told_apart(given, told):
    with pytest.raises(DeclarationError) as caught:
        read_length(given, "span")
    assert told in str(caught.value)


def test_a_misspelt_unit_is_answered_with_the_nearest():
    with pytest.raises(UnknownNameError, match="Did you mean 'minutes'"):
        read_length("5 minuts", "span")
