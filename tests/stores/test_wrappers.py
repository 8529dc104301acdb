import threading

import pytest

import sash
from sash.errors import StoreFullError, StoreUnavailableError
from sash.testing.store_suite import StoreSuite
from sash.testing.stores import Accesses, CountingStore, DelayingStore, FailingStore


class TestWrapped(StoreSuite):
    durable = False

    @pytest.fixture
    def make_store(self):
        return lambda: DelayingStore(FailingStore(CountingStore(sash.open_store("memory:"))), 0)


def test_accesses_are_counted_with_keys_and_bytes():
    store = CountingStore(sash.open_store("memory:"))
    store.put_many({b"a": b"1", b"b": bytearray(b"22")})
    store.write({b"c": b"333"}, [b"a", b"absent"])
    store.get_many([b"b", b"absent"])
    assert len(list(store.scan(b"b"))) == 1
    wanted = Accesses(1, 2, 2, 1, 1, 2, 2, 3, 6, 2)
    assert store.take() == wanted
    assert store.accesses == Accesses()


def test_the_nth_operation_fails_and_has_not_happened():
    store = FailingStore(sash.open_store("memory:"), nth=2, operations={"write"}, error=StoreFullError)
    store.put_many({b"a": b"1"})
    store.get_many([b"a"])
    with pytest.raises(StoreFullError, match=r"memory:: cannot write: it fails on purpose"):
        store.put_many({b"a": b"2"})
    assert store.get_many([b"a"]) == [b"1"]
    store.put_many({b"a": b"3"})
    assert store.get_many([b"a"]) == [b"3"]


def test_a_store_fails_as_long_as_it_is_told_to():
    store = FailingStore(sash.open_store("memory:"))
    store.failing = True
    for attempt in (lambda: store.put_many({b"a": b"1"}), lambda: store.get_many([b"a"]), lambda: store.scan()):
        with pytest.raises(StoreUnavailableError):
            attempt()
    store.failing = False
    assert list(store.scan()) == []


def test_a_write_may_happen_and_its_answer_get_lost():
    store = FailingStore(sash.open_store("memory:"), nth=1, after=True)
    with pytest.raises(StoreUnavailableError):
        store.put_many({b"a": b"1"})
    assert store.get_many([b"a"]) == [b"1"]


def test_a_delay_can_hold_a_write_until_it_is_let_go():
    begun, go = threading.Event(), threading.Event()

    def wait(operation):
        if operation == "write":
            begun.set()
            assert go.wait(60)

    store = DelayingStore(sash.open_store("memory:"), wait)
    writer = threading.Thread(target=store.put_many, args=({b"a": b"1"},))
    writer.start()
    assert begun.wait(60)
    assert store.get_many([b"a"]) == [None]
    go.set()
    writer.join(60)
    assert store.get_many([b"a"]) == [b"1"]
