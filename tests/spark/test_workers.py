"""Between two tasks a worker's collector does not look at what was loaded, and garbage goes all the same."""

from __future__ import annotations

import gc
import weakref
from itertools import count

import pytest

pytest.importorskip("pyspark")

from sash.spark import workers


class Knot:
    """Refers to itself, so that only the collector can let it go."""

    def __init__(self):
        self.own = self


@pytest.fixture(autouse=True)
def thawed(monkeypatch):
    monkeypatch.setattr(workers, "_tasks", count(1))
    yield
    gc.unfreeze()


def test_what_is_alive_is_taken_out_of_sight_after_the_first_second_and_fourth_task():
    hidden = []
    for _ in range(5):
        alive = Knot()
        workers.end_task()
        hidden.append(not any(each is alive for each in gc.get_objects()))
    assert hidden == [True, True, False, True, False]


def test_garbage_goes_before_and_does_not_stay_for_good():
    knot = weakref.ref(Knot())
    workers.end_task()
    assert knot() is None
