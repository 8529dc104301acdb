"""Rows that wait come out when they are due, once, in the order of their coming where times are the same."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sash.streams import waiting as module
from sash.streams.blocks import write_rows
from sash.streams.waiting import PIECE, Waiting
from tests.streams.simulating import Memory

SCHEMA = pa.schema([("n", pa.int64()), ("due", pa.int64())])
steps = st.lists(st.tuples(st.lists(st.integers(0, 20), max_size=12), st.integers(0, 5)), max_size=12)


@pytest.fixture(scope="module", autouse=True)
def small_pieces():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "ROWS", 4)
        patch.setattr(module, "JOINED", 0)
        yield


def due_of(rows):
    return rows.column("due").to_numpy()


def anew(blocks, waiting):
    """The same after a restart."""
    return Waiting(blocks, SCHEMA, [list(each) for each in waiting.pieces], waiting.next_number)


@pytest.mark.parametrize("n_joined", [0, 6])
@given(given_steps=steps)
def test_rows_come_out_when_they_are_due_in_the_order_of_their_coming(n_joined, given_steps):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "JOINED", n_joined)
        patch.setattr(module, "FEW", 2)
        check_order(given_steps)


def check_order(given_steps):
    blocks, watermark, model, count = Memory(), 0, [], 0
    waiting = Waiting(blocks, SCHEMA, [], 0)
    for ahead, ticks in given_steps:
        watermark += ticks
        before = dict(blocks)
        out = waiting.release(watermark, due_of).to_pylist()
        assert sorted(out, key=lambda row: (row["due"], row["n"])) == [row for row in model if row["due"] <= watermark]
        assert [row["n"] for row in sorted(out, key=lambda row: row["due"])] == [
            row["n"] for row in model if row["due"] <= watermark
        ], "W2"
        model = [row for row in model if row["due"] > watermark]
        new = [{"n": count + place, "due": watermark + 1 + each} for place, each in enumerate(ahead)]
        count += len(new)
        if new:
            waiting.add(pa.Table.from_pylist(new, SCHEMA), np.array([row["due"] for row in new]))
        model = sorted([*model, *new], key=lambda row: (row["due"], row["n"]))
        assert all(blocks[place] == data for place, data in before.items() if place in blocks), "W1"
        assert {number for kind, number in blocks} == {piece[0] for piece in waiting.pieces}
        assert all(kind == PIECE for kind, _ in blocks)
        assert waiting.n_rows == len(model)
        assert waiting.next_due == (model[0]["due"] if model else None)
        waiting = anew(blocks, waiting)


def test_rows_in_order_are_read_about_once():
    blocks = Memory()
    waiting, n_read = Waiting(blocks, SCHEMA, [], 0), 0
    get = blocks.get

    def counting(kind, number):
        nonlocal n_read
        n_read += 1
        return get(kind, number)

    blocks.get = counting
    for batch in range(50):
        waiting.release(8 * batch, due_of)
        due = np.arange(8 * batch, 8 * batch + 8) + 9
        waiting.add(pa.table({"n": due, "due": due}), due)
    assert n_read <= 2 * 50 * 2, "two pieces a batch, each read when its first rows are due, and when its last are"


@pytest.mark.parametrize("lateness", [1_000, 10**9])
def test_the_list_of_pieces_is_short_and_rows_are_read_and_written_a_few_times(lateness, monkeypatch):
    for name, value in (("ROWS", 8_192), ("JOINED", 256), ("FEW", 16)):
        monkeypatch.setattr(module, name, value)
    blocks, n_batches, moved, longest = Memory(), 3_000, 0, 0
    waiting = Waiting(blocks, SCHEMA, [], 0)
    put = blocks.put

    def counting(kind, number, data):
        nonlocal moved
        moved += len(data)
        put(kind, number, data)

    blocks.put = counting
    for batch in range(n_batches):  # a row each
        waiting.release(batch, due_of)
        waiting.add(pa.table({"n": [batch], "due": [batch + lateness]}), np.array([batch + lateness]))
        longest = max(longest, len(waiting.pieces))
    assert longest <= min(lateness, n_batches) / (256 - 16) + 16 + 2
    alone = len(write_rows(pa.table({"n": [0], "due": [0]}, SCHEMA)))
    assert moved <= 20 * n_batches * alone
