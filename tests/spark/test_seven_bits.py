"""Bytes as text of seven bits a letter."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sash.spark.seven_bits import from_texts, to_text


@given(st.lists(st.binary(max_size=300), max_size=5))
def test_bytes_come_back_as_they_were(several):
    assert [bytes(found) for found in from_texts([to_text(data) for data in several])] == several


@given(st.binary(max_size=300))
def test_no_letter_is_above_127_and_an_eighth_more_is_written(data):
    text = to_text(data)
    assert all(ord(letter) < 128 for letter in text)
    assert len(text) == 1 + 8 * -(-len(data) // 7)
