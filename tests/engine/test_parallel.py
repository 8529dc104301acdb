"""Rows shared out among threads."""

from __future__ import annotations

import os
import threading

import pytest

from sash.engine import parallel
from sash.engine.parallel import each_part, parts


def test_every_part_is_done_and_threads_are_used_again():
    done, names = [], set()

    def work(begin, end):
        done.append((begin, end))
        names.add(threading.current_thread().name)

    for _ in range(20):
        each_part([(0, 1), (1, 2)], work)
    assert sorted(done) == [(0, 1)] * 20 + [(1, 2)] * 20
    assert len(names) == 2


@pytest.mark.parametrize("count", [2, 3, 8])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.6])
def test_parts_are_all_rows_and_have_a_window_before_them(count, share, monkeypatch):
    monkeypatch.setenv("SASH_THREADS", str(count))
    n = count * parallel.WORTHWHILE + 5
    rows = 1 + int(share * n / count)
    found = parts(n, rows)
    assert [begin for begin, _ in found] == [0, *(end for _, end in found[:-1])]
    assert found[-1][1] == n
    assert len(found) == count
    assert all(begin >= rows for begin, _ in found[1:])
    first, *others = [end - begin for begin, end in found]
    assert len(set(others)) == 1
    assert 0 <= first - others[0] - int(parallel.LEAD * rows) <= count


@pytest.mark.parametrize("faulty", [0, 1])
def test_an_error_in_one_part_is_raised_when_all_others_are_done(faulty):
    done = []

    def work(begin, end):
        if begin == faulty:
            raise ValueError(f"part {begin}")
        done.append(begin)

    with pytest.raises(ValueError, match=f"part {faulty}"):
        each_part([(0, 1), (1, 2), (2, 3)], work)
    assert sorted([*done, faulty]) == [0, 1, 2]


@pytest.mark.skipif(parallel._processor() is None, reason="threads cannot be kept off a processor here")
def test_threads_are_kept_off_the_processor_of_the_caller():
    allowed, masks = os.sched_getaffinity(0), []

    def work(begin, end):
        if begin:
            masks.append(os.sched_getaffinity(0))

    for _ in range(3):  # threads are known from the second time on
        each_part([(0, 1), (1, 2)], work)
    assert os.sched_getaffinity(0) == allowed, "the caller may run where it could before"
    assert all(mask <= allowed for mask in masks)
    if len(allowed) > 1:
        assert len(masks[-1]) == len(allowed) - 1


def test_threads_run_anywhere_where_processors_cannot_be_known(monkeypatch):
    monkeypatch.setattr(parallel, "_c_library", object)
    assert parallel._processor() is None
    assert done_twice() == [0, 0, 1, 1]


@pytest.mark.skipif(parallel._processor() is None, reason="threads cannot be kept off a processor here")
def test_threads_run_anywhere_where_they_must_not_be_kept_elsewhere(monkeypatch):
    asked = []

    def refused(thread, processors):
        asked.append(thread)
        raise PermissionError(1, "not allowed")

    monkeypatch.setattr(os, "sched_setaffinity", refused)
    assert done_twice() == [0, 0, 1, 1]
    assert asked or len(os.sched_getaffinity(0)) == 1


def done_twice():
    """What was done when threads are made, and when they are there."""
    done = []
    for _ in range(2):
        each_part([(0, 1), (1, 2)], lambda begin, end: done.append(begin))
    return sorted(done)
