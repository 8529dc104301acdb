"""Rows shared out among threads."""

from __future__ import annotations

import threading

import pytest

from sash.engine.parallel import each_part


def test_every_part_is_done_and_threads_are_used_again():
    done, names = [], set()

    def work(begin, end):
        done.append((begin, end))
        names.add(threading.current_thread().name)

    for _ in range(20):
        each_part([(0, 1), (1, 2)], work)
    assert sorted(done) == [(0, 1)] * 20 + [(1, 2)] * 20
    assert len(names) == 2


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
