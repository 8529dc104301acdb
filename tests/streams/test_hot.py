"""The parity law for rows that wait beside their pages: with pages so small that each key has its own."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sash
from sash.streams import pages
from sash.streams.blocks import read_rows
from sash.streams.plans import Plan
from tests.streams.rows import SCHEMA, arrivals, as_table
from tests.streams.simulating import Stream, announced, specs_of
from tests.streams.test_parity import EAGER, GRIDS, WINDOWS, aggregates, check_eager, check_final, check_revise, spec_of

pytestmark = pytest.mark.usefixtures("interpreted", "small_pages")

FEW = settings(max_examples=max(settings.default.max_examples // 5, 1))
cuts = st.lists(st.integers(0, 3), max_size=20)
W = sash.window(by="k", order_by="ts")


@pytest.fixture(scope="module", params=[(4, 100), (1000, 6)], ids=["few for a page", "many in all"])
def small_pages(request):
    few, most = request.param
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"SIZE": 32, "LARGE": 1, "FEW_HOT": few, "MOST_HOT": most}.items():
            patch.setattr(pages, name, value)
        yield


@pytest.mark.parametrize("name", [*WINDOWS, *GRIDS])
@FEW
@given(table=arrivals(max_size=40), sizes=cuts, names=aggregates)
def test_final_answers_are_those_of_batch(name, table, sizes, names):
    check_final(spec_of((WINDOWS | GRIDS)[name], names, "final"), table, sizes, 1)


@pytest.mark.parametrize("name", [*WINDOWS, *EAGER])
@FEW
@given(table=arrivals(max_size=40), sizes=cuts, names=aggregates)
def test_eager_answers_are_over_all_rows_that_have_come(name, table, sizes, names):
    check_eager(spec_of((WINDOWS | EAGER)[name], names, "eager"), table, sizes, 1)


@pytest.mark.parametrize("name", WINDOWS)
@FEW
@given(table=arrivals(max_size=40), sizes=cuts, names=aggregates)
def test_revisions_do_not_wait(name, table, sizes, names):
    check_revise(spec_of(WINDOWS[name], names, "revise"), table, sizes, 1)


def test_few_rows_are_kept_aside_until_there_are_enough_for_their_page():
    keys = [f"key {k}" for k in range(40)]
    rows = [{"id": n, "k": k, "ts": n, "q": 0, "i": n} for n, k in enumerate(keys * 4)]
    stream = streaming(W.range("1 hour"))
    stream.push(as_table(rows))
    n_hot, n_written = [], []
    for number in range(30):
        step = stream.push(as_table([{"id": 1_000 + number, "k": keys[7], "ts": 1_000 + number, "q": 0, "i": 0}]))
        assert [each["n"] for each in step.rows()] == [5 + number]
        n_hot.append(rows_aside(stream))
        n_written.append(step.counts["blocks_written"])
    assert max(n_hot) > 3
    assert min(n_hot[3:]) == 0, "their page is written when there are enough"
    assert np.median(n_written) <= 5, "the head, hot rows, a page or two, and one that is divided"


def test_state_grows_no_further_than_windows_reach():
    random, stream = np.random.default_rng(3), streaming(W.rows(2))
    n_bytes = []
    for number in range(400):
        key = f"key {random.integers(20)}"
        stream.push(as_table([{"id": number, "k": key, "ts": 100 * number, "q": 0, "i": 0}]))
        assert rows_aside(stream) <= pages.MOST_HOT + 1
        n_bytes.append(stream.n_bytes)
    assert max(n_bytes[300:]) <= 1.3 * max(n_bytes[100:200])


def streaming(window):
    spec = spec_of(window, ["n"], "eager")
    return Stream(spec, SCHEMA, announced(spec, as_table([{"id": 0, "k": "a", "ts": 0, "q": 0, "i": 0}])), 1)


def rows_aside(stream):
    data = stream.shards[0].get(pages.HOT, 0)
    (spec,) = specs_of(stream.spec)
    return 0 if data is None else read_rows(data, Plan((spec,), stream.schema, stream.types).kept_schema).num_rows
