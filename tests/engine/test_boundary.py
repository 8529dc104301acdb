"""SBA and PBA an event at a time: the figures of paper 003, its theorems, costs and both kinds of window."""

from __future__ import annotations

import itertools
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sash
from sash.aggregators import find
from sash.aggregators.sba import PREFIX, RING, chunk_by_count, chunk_by_time
from sash.algebra.monoid import Monoid
from sash.algebra.state import Object
from sash.engine.boundary import BoundaryAggregator, Sliding

BOTH = ("sba", "pba")
STREAM = [2, 5, 1, 3, 4, 4, 0, 6, 2, 2, 7, 1, 9, 3, 3, 8, 5, 5, 1, 0]


def counting_by_thread():
    """Concatenation that counts calls of combine, separately for every thread."""
    calls: dict[int, int] = {}

    def combine(older, newer):
        thread = threading.get_ident()
        calls[thread] = calls.get(thread, 0) + 1
        return older + newer

    return Monoid("concat", Object(), lift=lambda x: x, combine=combine), calls


def due_by_count(data, range_, slide):
    ends = [end for end in range(1, len(data) + 1) if end % slide == range_ % slide]
    return [(end, "".join(data[max(0, end - range_) : end])) for end in ends]


@pytest.mark.parametrize("algorithm", BOTH)
def test_figure_2_a_window_of_ten_sliding_by_two_in_chunks_of_five_slices(algorithm):
    """W[10, 2]: window i is the greater of lcs_0[i] and csa_1[i - 1]."""
    window = sash.aggregator(algorithm, sash.max(), range=10, slide=2, chunk=5)
    answers = [due for value in STREAM for due in window.insert(value)]
    slices = [max(pair) for pair in zip(STREAM[::2], STREAM[1::2], strict=True)]
    suffixes = [max(slices[i:5]) for i in range(5)]
    prefixes = list(itertools.accumulate(slices[5:], max))
    window.check_invariants(STREAM)
    pool = window._state.pool
    assert [pool[RING + i] for i in range(5)] == suffixes
    assert pool[PREFIX] == prefixes[-1] == 9
    for i in range(1, 5):
        assert answers[4 + i] == (10 + 2 * i, max(suffixes[i], prefixes[i - 1]))
    window.close()


@pytest.mark.parametrize("algorithm", BOTH)
def test_figure_3_a_window_over_five_chunks(algorithm):
    """W[16, 1] in chunks of four: w_1 = lcs_0[1] + ca_1 + ca_2 + ca_3 + csa_4[0]."""
    monoid, calls = counting_by_thread()
    window = BoundaryAggregator(find(algorithm), monoid, Sliding(16, 1, chunk=4), None, is_compiled=False)
    letters = "abcdefghijklmnopq"
    for letter in letters[:16]:
        window.insert(letter)
    before = calls.get(threading.get_ident(), 0)
    assert window.insert("q") == [(17, letters[1:])]
    assert calls[threading.get_ident()] - before == 4  # five parts of the window; the new row begins a chunk
    window.close()


def test_theorem_1_gives_the_chunk_lengths_of_the_paper():
    assert chunk_by_count(10, 2) == 4  # (2 * 6 + 1) // 3; figure 2 uses 5 to keep the drawing simple
    assert chunk_by_count(2**20, 1) == 524289
    for rows in range(2, 200):
        assert chunk_by_count(rows, 1) == (rows + 2) // 2 or rows <= 2


@given(range_=st.integers(1, 300), slide=st.integers(1, 300))
def test_with_the_chunk_of_theorem_1_a_window_covers_one_whole_chunk(range_, slide):
    if range_ >= slide:
        chunk = chunk_by_count(range_, slide)
        assert 1 <= chunk <= range_ // slide
        assert range_ // slide // chunk == 1


@given(span=st.integers(1, 1000), slide=st.integers(1, 100), unit=st.sampled_from([0.001, 0.1, 1.0, 5.0]))
def test_theorem_2_gives_a_chunk_that_fits_the_window(span, slide, unit):
    if span >= slide:
        assert 1 <= chunk_by_time(span, slide, unit) <= span // slide


@pytest.mark.parametrize("algorithm", BOTH)
@pytest.mark.parametrize(
    ("range_", "slide", "chunk"),
    [(10, 2, None), (16, 1, 4), (10, 3, None), (7, 7, None), (1, 1, None), (20, 3, 2), (64, 1, None)],
)
def test_windows_by_count_hold_the_rows_they_should(algorithm, range_, slide, chunk):
    window = sash.aggregator(algorithm, sash.concat(), range=range_, slide=slide, chunk=chunk)
    data = "abcdefghijklmnopqrstuvwxyz" * 6
    found, lifted = [], []
    for letter in data:
        found += window.insert(letter)
        lifted.append(letter)
        window.check_invariants(lifted)
    assert found == due_by_count(data, range_, slide)
    window.close()


@pytest.mark.parametrize("algorithm", BOTH)
def test_compiled_windows_by_count(algorithm):
    window = sash.aggregator(algorithm, sash.max(), range=50, slide=1, compiled=True)
    values = np.random.default_rng(0).random(400)
    found = [answer for value in values for _, answer in window.insert(value)]
    assert found == [values[max(0, i - 49) : i + 1].max() for i in range(400)]
    window.close()


@pytest.mark.parametrize("algorithm", BOTH)
@given(
    gaps=st.lists(st.sampled_from([0, 0, 1, 1, 2, 5, 40]), min_size=1, max_size=40),
    window_of=st.sampled_from([(10, 2), (10, 3), (6, 1), (7, 7), (100, 30)]),
)
def test_windows_by_time_hold_the_rows_they_should(algorithm, gaps, window_of):
    range_, slide = window_of
    times = [int(total) for total in np.cumsum(gaps)]
    events = list(zip(times, "abcdefghijklmnopqrstuvwxyz" * 2, strict=False))
    window = sash.aggregator(algorithm, sash.concat(), range=range_, slide=slide, by="time")
    found = [due for event in events for due in window.insert(*event)]
    wanted = []
    for start in range(-(range_ // slide + 2) * slide, times[-1] + 1, slide):
        held = "".join(letter for time, letter in events if start <= time < start + range_)
        if held and start + range_ <= times[-1]:
            wanted.append((start + range_, held))
    assert found == wanted
    window.close()


@pytest.mark.parametrize("algorithm", BOTH)
@pytest.mark.parametrize("by", ["count", "time"])
def test_a_window_comes_back_from_its_bytes(algorithm, by):
    events = [(time,) if by == "count" else (time // 3, time) for time in range(100)]
    make = lambda: sash.aggregator(algorithm, sash.collect(), range=10, slide=3, by=by)  # noqa: E731
    whole, first, second = make(), make(), make()
    wanted = [due for event in events for due in whole.insert(*event)]
    found = [due for event in events[:47] for due in first.insert(*event)]
    second.restore(first.snapshot())
    found += [due for event in events[47:] for due in second.insert(*event)]
    assert found == wanted
    other = sash.aggregator(algorithm, sash.collect(), range=9, slide=3, by=by)
    with pytest.raises(sash.FormatError, match="is of"):
        other.restore(first.snapshot())
    with pytest.raises(sash.FormatError):
        other.restore(b"SASH")
    for window in (whole, first, second, other):
        window.close()


@given(range_=st.integers(2, 80), n=st.integers(1, 400))
def test_pba_combines_at_most_three_times_a_row_on_the_thread_of_the_caller(range_, n):
    monoid, calls = counting_by_thread()
    window = BoundaryAggregator(find("pba"), monoid, Sliding(range_, 1), None, is_compiled=False)
    me, before = threading.get_ident(), 0
    for _ in range(n):
        window.insert("x")
        assert calls.get(me, 0) - before <= 3
        before = calls.get(me, 0)
    window.close()


def test_sba_combines_less_than_four_times_a_row_on_average():
    monoid, calls = counting_by_thread()
    window = BoundaryAggregator(find("sba"), monoid, Sliding(100, 1), None, is_compiled=False)
    for _ in range(2000):
        window.insert("x")
    assert sum(calls.values()) <= 4 * 2000


@pytest.mark.parametrize("algorithm", BOTH)
def test_what_a_fixed_window_cannot_do_is_refused(algorithm):
    window = sash.aggregator(algorithm, sash.max(), range=3)
    with pytest.raises(sash.UnsupportedError, match="two_stacks_lite"):
        window.evict()
    with pytest.raises(sash.DataError, match="takes 1 value"):
        window.insert(1, 2)
    assert window.query() is None
    window.close()
    timed = sash.aggregator(algorithm, sash.max(), range=3, slide=1, by="time")
    timed.insert(5, 1.0)
    with pytest.raises(sash.DataError, match="in order of time"):
        timed.insert(4, 1.0)
    with pytest.raises(sash.DataError, match="without a time"):
        timed.insert(float("nan"), 1.0)
    timed.close()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"range": 0}, "range must be at least the slide"),
        ({"range": 3, "slide": 0}, "slide must be positive"),
        ({"range": 3, "slide": -1}, "slide must be positive"),
        ({"range": 3, "by": "size"}, "by must be"),
        ({"range": 3, "chunk": 9}, "chunk must be between 1 and the 3 slices"),
        ({"rows": 3}, "takes range="),
    ],
)
def test_ranges_and_slides_that_make_no_window_are_refused(options, message):
    with pytest.raises(sash.DeclarationError, match=message):
        sash.aggregator("sba", sash.max(), **options)
