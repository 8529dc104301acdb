"""Bounds: windows in numbers, as values; what makes no sense is refused where it is said."""

from __future__ import annotations

import pytest

from sash.errors import DeclarationError, UnsupportedError
from sash.windows.bounds import Bounds, Every, EveryRows


def test_equal_windows_are_equal_values():
    assert Bounds(span=3, closed="left") == Bounds(span=3, closed="left") != Bounds(span=3)
    assert len({Bounds(rows=2), Bounds(rows=2), Bounds(), Bounds(every=Every(2))}) == 3


@pytest.mark.parametrize(
    ("bounds", "kind", "words"),
    [
        (Bounds(), "everything", "everything so far"),
        (Bounds(rows=3), "rows", "the last 3 rows, this one included"),
        (Bounds(span=5, rows=3, min_rows=2), "span", "at most the last 3 rows, null below 2 rows"),
        (Bounds(span=5, lag=2), "span", "as of 2 ago"),
        (Bounds(gap=5), "gap", "rows since the last silence of more than 5"),
        (Bounds(delta=5), "delta", "rows whose mark is within 5 of this one's"),
        (Bounds(since=True), "since", "rows since the last one that is marked"),
        (Bounds(span=5, every=Every(2, 1)), "span", "answered every 2, shifted by 1"),
        (Bounds(gap=5, every=EveryRows(10)), "gap", "answered every 10 rows"),
    ],
)
def test_a_window_says_its_kind_and_itself_in_words(bounds, kind, words):
    assert bounds.kind == kind
    assert words in str(bounds)


def test_windows_that_end_with_their_row_know_it():
    assert Bounds(span=5, ties="upto").ends_with_row
    assert Bounds(span=5, rows=2).ends_with_row
    assert Bounds(since=True).ends_with_row
    assert not Bounds(span=5).ends_with_row
    assert not Bounds().ends_with_row


def test_windows_that_may_hold_no_row_know_it():
    assert Bounds(span=5, closed="left").may_be_empty
    assert Bounds(span=0, closed="right").may_be_empty
    assert Bounds(span=5, lag=1).may_be_empty
    assert Bounds(span=5, every=Every(2)).may_be_empty
    assert not Bounds(span=5, closed="right").may_be_empty
    assert not Bounds(rows=1).may_be_empty


@pytest.mark.parametrize(
    ("fields", "error", "message"),
    [
        ({"rows": 0}, DeclarationError, "rows must be a positive integer, got 0"),
        ({"rows": True}, DeclarationError, "rows must be a positive integer, got True"),
        ({"rows": 2.0}, DeclarationError, "got 2.0"),
        ({"min_rows": -1}, DeclarationError, "min_rows must be an integer, 0 or more, got -1"),
        ({"span": -1}, DeclarationError, "span must not be negative, got -1"),
        ({"span": float("nan")}, DeclarationError, "span must be a number of the unit"),
        ({"gap": "1 hour"}, DeclarationError, "gap must be a number of the unit of the order column, got '1 hour'"),
        ({"span": 1, "closed": "inner"}, DeclarationError, "closed must be one of"),
        ({"span": 1, "ties": "all"}, DeclarationError, "ties must be one of"),
        ({"span": 1, "gap": 1}, DeclarationError, "a window has one kind, got span and gap"),
        ({"lag": 1}, DeclarationError, "lag=1 needs a span"),
        ({"rows": 3, "closed": "left"}, DeclarationError, "closed='left' needs a span"),
        ({"span": 2**63 - 1, "lag": 1}, DeclarationError, "span + lag must be below 2**63"),
        ({"gap": 1, "every": Every(1)}, UnsupportedError, "use every(rows=n), or a range window on the grid"),
        ({"since": True, "every": Every(1)}, UnsupportedError, "a window by since"),
    ],
)
def test_what_makes_no_sense_is_refused(fields, error, message):
    with pytest.raises(error) as raised:
        Bounds(**fields)
    assert message in str(raised.value)


def test_a_grid_of_nothing_is_refused():
    with pytest.raises(DeclarationError, match="every must be positive, got 0"):
        Every(0)
    with pytest.raises(DeclarationError, match="every must not be negative, got -5"):
        Every(-5)
    with pytest.raises(DeclarationError, match="every rows must be a positive integer, got 0"):
        EveryRows(0)
