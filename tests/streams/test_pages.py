"""Pages after every step: all rows of a key in one of them, in order (I1), and no block without rows (I2)."""

from __future__ import annotations

from collections import defaultdict
from itertools import groupby

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sash.streams import pages as module
from sash.streams.contract import HASH
from sash.streams.pages import PAGE, Pages
from tests.streams.simulating import Memory, with_hash

SCHEMA = pa.schema([("k", pa.int64()), ("n", pa.int64()), (HASH, pa.int64())])
steps = st.lists(
    st.tuples(st.lists(st.integers(0, 30), max_size=8), st.lists(st.integers(0, 30), max_size=4)), max_size=8
)


@pytest.fixture(scope="module", autouse=True)
def small_pages():
    """So small that a few rows are many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "SIZE", 2_000)
        patch.setattr(module, "LARGE", 1)
        yield


def rows_of(keys, numbers):
    rows = [{"k": key, "n": number} for key, number in zip(keys, numbers, strict=True)]
    return with_hash(pa.Table.from_pylist(rows, pa.schema(list(SCHEMA)[:2])), ["k"])


def by_key(rows):
    return rows.take(pa.array(np.argsort(rows.column("k").to_numpy(), kind="stable"))).combine_chunks()


def check(pages, blocks, model):
    found, places = defaultdict(list), defaultdict(set)
    for kind, number in blocks:
        assert kind == PAGE
        assert 0 <= number < pages.n_pages
        rows = Pages(blocks, SCHEMA, ["k"], pages.n_pages).load([number])
        assert rows.num_rows > 0, "I2"
        assert (pages.of(rows.column(HASH).to_numpy()) == number).all()
        assert len(list(groupby(rows.column("k").to_pylist()))) == len(set(rows.column("k").to_pylist())), "I1"
        for row in rows.to_pylist():
            found[row["k"]].append(row["n"])
            places[row["k"]].add(number)
    assert found == {key: numbers for key, numbers in model.items() if numbers}, "I1"
    assert all(len(each) == 1 for each in places.values()), "I1"
    assert pages.n_bytes == blocks.n_bytes


@given(steps)
def test_pages_hold_what_was_put_into_them(given_steps):
    blocks, model, count = Memory(), defaultdict(list), 0
    pages = Pages(blocks, SCHEMA, ["k"])
    for keys, gone in given_steps:
        new = rows_of(keys, range(count, count + len(keys)))
        touched = rows_of([*keys, *gone], [0] * (len(keys) + len(gone)))
        numbers = np.unique(pages.of(touched.column(HASH).to_numpy()))
        both = pa.concat_tables([pages.load(numbers.tolist()), new])
        left = ~np.isin(both.column("k").to_numpy(), gone)
        pages.save(numbers, by_key(both.filter(pa.array(left))))
        for key, number in zip(keys, range(count, count + len(keys)), strict=True):
            model[key].append(number)
        model |= {key: [] for key in gone}
        count += len(keys)
        check(pages, blocks, model)
        pages = Pages(blocks, SCHEMA, ["k"], pages.n_pages, pages.n_bytes)


def test_pages_divide_as_rows_come_and_stay_small():
    blocks = Memory()
    pages = Pages(blocks, SCHEMA, ["k"])
    for key in range(400):
        new = rows_of([key] * 3, range(3))
        numbers = np.unique(pages.of(new.column(HASH).to_numpy()))
        pages.save(numbers, by_key(pa.concat_tables([pages.load(numbers.tolist()), new])))
        assert pages.n_bytes <= 2_000 * pages.n_pages
    assert pages.n_pages > 8
    assert max(map(len, blocks.values())) < 8 * 2_000, "the largest is not far from the average"


def test_a_shard_has_few_large_pages_until_they_are_many(monkeypatch):
    monkeypatch.setattr(module, "LARGE", 8)
    monkeypatch.setattr(module, "FEW", 16)
    counts = [module.pages_for(n) for n in range(0, 2_000_000, 100)]
    assert counts == sorted(counts), "pages are divided, never put together"
    assert max(n / each for n, each in zip(range(0, 256_000, 100), counts, strict=False)) <= 8 * 2_000
    assert module.pages_for(256_000) == 17
    assert module.pages_for(512_000) == 257, "from twice as many bytes on pages are small"
    assert max(n / module.pages_for(n) for n in range(512_000, 2_000_000, 100)) <= 2_000


def test_a_page_that_loses_its_rows_loses_its_block():
    blocks = Memory()
    pages = Pages(blocks, SCHEMA, ["k"])
    pages.save(np.array([0]), rows_of([1, 2], [0, 0]))
    pages.load([0])
    pages.save(np.array([0]), SCHEMA.empty_table())
    assert not blocks
    assert pages.n_bytes == 0
