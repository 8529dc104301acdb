"""Windows in a store: right in every store and with every size of buffer, durable, and told apart from any other."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal

import numpy as np
import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

import sash
from sash.compiling.jit import is_enabled
from sash.engine.aggregator import aggregator
from sash.testing.monoids import Affine, Concat, Max, Sum
from sash.testing.stored_suite import stored_machine
from sash.testing.stores import CountingStore, FailingStore
from tests.stores.servers import running

TREES = ["amta", "log_mta"]
NUMBERS = pytest.mark.skipif(not is_enabled(), reason="interpreted, every node is a chunk of its own")
FEW = settings(max_examples=8, stateful_step_count=30, deadline=None)
FEWER = settings(max_examples=3, stateful_step_count=25, deadline=None)


def memory():
    return sash.open_store("memory:")


def window(algorithm, store, aggregate=Sum, **options):
    return aggregator(algorithm, aggregate, dtype="i8", store=store, name="w", **options)


# --- the suite of the foundation, over stores ------------------------------------------------------


@pytest.mark.parametrize(("buffer", "cache"), [(1, 1), (2, 5), (4, 2), (512, 512)])
@pytest.mark.parametrize("aggregate", [Affine, Concat], ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("algorithm", TREES)
def test_agrees_with_recalculation_with_buffers_of_any_size(algorithm, aggregate, buffer, cache):
    run_state_machine_as_test(stored_machine(algorithm, aggregate, memory, buffer=buffer, cache=cache), settings=FEW)


@pytest.mark.parametrize("algorithm", TREES)
def test_agrees_over_lmdb(algorithm, tmp_path):
    numbers = iter(range(10_000))
    make = lambda: sash.open_store(f"lmdb://{tmp_path}/{next(numbers)}")  # noqa: E731
    run_state_machine_as_test(stored_machine(algorithm, Affine, make, buffer=2, cache=2), settings=FEWER)


def test_agrees_over_sqlite(tmp_path):
    numbers = iter(range(10_000))
    make = lambda: sash.open_store(f"sqlite://{tmp_path}/{next(numbers)}.db")  # noqa: E731
    run_state_machine_as_test(stored_machine("amta", Affine, make, buffer=2, cache=2), settings=FEWER)


def test_agrees_over_a_redis_server(tmp_path):
    numbers = iter(range(10_000))
    with running(tmp_path) as server:
        make = lambda: sash.open_store(f"redis://127.0.0.1:{server.port}/0?prefix={next(numbers)}:")  # noqa: E731
        run_state_machine_as_test(stored_machine("amta", Affine, make, buffer=2, cache=2), settings=FEWER)


def test_rows_live_in_a_store_too():
    store = memory()
    with window("amta", store, sash.bloom(bits=2**10), buffer=2, cache=2) as subject:
        subject.bulk_insert(np.arange(100))
        subject.bulk_evict(90)
        reference = aggregator("recalc", sash.bloom(bits=2**10))
        reference.bulk_insert(range(90, 100))
        assert (subject.query() == reference.query()).all()


# --- costs -----------------------------------------------------------------------------------------


@NUMBERS
@pytest.mark.parametrize("algorithm", TREES)
def test_an_insertion_writes_a_small_part_of_a_chunk(algorithm):
    store = CountingStore(memory())
    subject = window(algorithm, store)
    store.take()
    n = 100_000
    subject.bulk_insert(np.arange(n))
    subject.flush()
    taken = store.take()
    assert taken.keys_put <= 2 * n / 128 + 100  # chunks of 256 elements of 16 bytes, and as many nodes above them
    assert taken.writes <= n / 200
    assert taken.keys_got <= 60


@NUMBERS
@pytest.mark.parametrize("algorithm", TREES)
def test_a_bulk_eviction_reads_two_chunks_a_level_at_most(algorithm):
    store = CountingStore(memory())
    subject = window(algorithm, store)
    n = 1 << 17
    subject.bulk_insert(np.arange(n))
    subject.flush()
    for count in (n // 2, n // 5, 10_000, 1_000):
        store.take()
        subject.bulk_evict(count)
        subject._background.waiting()
        taken = store.take()
        assert taken.keys_got <= 6 * 18, "two chunks a level, and the next ones ahead"
        assert subject.query() == sum(range(n - len(subject), n))


@NUMBERS
def test_rounds_read_and_write_a_chunk_now_and_then():
    store = CountingStore(memory())
    subject = window("amta", store)
    subject.bulk_insert(np.arange(20_000))
    subject.flush()
    store.take()
    for value in range(5_000):
        subject.insert(value)
        subject.evict()
    subject._background.waiting()
    taken = store.take()
    assert taken.keys_got <= 5_000 / 64
    assert taken.keys_put <= 5_000 / 64


# --- policies --------------------------------------------------------------------------------------


def test_a_policy_slides_a_window_in_a_store_as_it_does_in_memory():
    values = np.random.default_rng(5).integers(0, 50, 2_000).tolist()
    policy = sash.policies.either(sash.policies.at_most(300), sash.policies.sum_at_most(5_000, "x"))
    stored = aggregator("amta", sash.max("x"), dtype="i8", store=memory(), name="w", policy=policy, buffer=4, cache=4)
    in_memory = aggregator("amta", sash.max("x"), dtype="i8", policy=policy)
    for value in values:
        stored.insert(value)
        in_memory.insert(value)
        assert (stored.query(), len(stored)) == (in_memory.query(), len(in_memory))


@NUMBERS
def test_evicting_by_a_policy_reads_a_chunk_a_level():
    store = CountingStore(memory())
    subject = aggregator("amta", {"n": sash.count(), "s": sash.sum("x")}, dtype="i8", store=store, name="w")
    subject.bulk_insert({"x": np.ones(1 << 16, "i8")})
    subject.flush()
    store.take()
    subject.bulk_evict_while(lambda total, old: total.n - old.n >= 1_000)
    subject._background.waiting()
    assert len(subject) == 1_000
    assert store.take().keys_got <= 8 * 17


# --- durability ------------------------------------------------------------------------------------


def _insert_for_ever(url, algorithm, ready):
    subject = aggregator(algorithm, Sum, dtype="i8", store=url, name="w", buffer=8, cache=8)
    subject.bulk_insert(np.arange(1_000))
    subject.evict()
    subject.flush()
    ready.set()
    while True:
        subject.bulk_insert(np.arange(100))
        subject.bulk_evict(50)


@pytest.mark.parametrize("scheme", ["lmdb", "sqlite"])
@pytest.mark.parametrize("algorithm", TREES)
def test_a_process_killed_after_a_flush_loses_nothing_of_what_was_flushed(algorithm, scheme, tmp_path):
    url = f"{scheme}://{tmp_path}/store"
    context = multiprocessing.get_context("spawn")
    ready = context.Event()
    process = context.Process(target=_insert_for_ever, args=(url, algorithm, ready))
    process.start()
    assert ready.wait(120)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    with window(algorithm, url, buffer=8, cache=8) as subject:
        assert len(subject) == 999
        assert subject.query() == sum(range(1_000))
        subject.bulk_insert(np.arange(5_000))
        subject.bulk_evict(999)
        assert subject.query() == sum(range(5_000))


def test_a_server_killed_and_started_again_is_survived(tmp_path):
    with running(tmp_path, appendonly="yes", appendfsync="always") as server:
        subject = window("amta", f"redis://127.0.0.1:{server.port}/0", buffer=8, cache=8)
        subject.bulk_insert(np.arange(1_000))
        subject.flush()
        server.kill()
        subject.bulk_insert(np.arange(100))
        with pytest.raises(sash.StoreError, match=r"cannot \w+"):
            subject.flush()
        server.start()
        subject.flush()
        subject.bulk_evict(1_000)
        assert subject.query() == sum(range(100))
        subject.close()


def test_a_full_store_leaves_the_window_usable_and_the_durable_state_as_it_was():
    store = FailingStore(memory(), operations=("write",))
    subject = window("amta", store, buffer=4, cache=4)
    subject.bulk_insert(np.arange(500))
    subject.flush()
    store.failing = True
    subject.bulk_insert(np.arange(500))
    assert subject.query() == 2 * sum(range(500))
    with pytest.raises(sash.StoreError):
        subject.flush()
    other = window("amta", store.store, buffer=4, cache=4)
    assert other.query() == sum(range(500))
    store.failing = False
    with pytest.raises(sash.StoreAccessError, match="another process has opened it"):
        subject.flush()


def test_what_failed_to_be_written_is_written_at_the_next_flush():
    store = FailingStore(memory(), operations=("write",))
    subject = window("amta", store, buffer=4, cache=4)
    store.failing = True
    subject.bulk_insert(np.arange(500))
    store.failing = False
    subject.close()
    with window("amta", store, buffer=4, cache=4) as again:
        assert again.query() == sum(range(500))
        again.bulk_evict(250)
        assert again.query() == sum(range(250, 500))


def test_evicted_chunks_are_gone_after_close():
    store = memory()
    subject = window("amta", store, buffer=4, cache=4)
    subject.bulk_insert(np.arange(10_000))
    subject.flush()
    n_before = len(list(store.scan(b"")))
    subject.bulk_evict(9_990)
    subject.close()
    assert len(list(store.scan(b""))) < n_before / 50


# --- what is not ours ------------------------------------------------------------------------------


def _damaged(store, change):
    """A window of which one chunk in the middle of level 0 is changed in the store."""
    subject = window("amta", store, buffer=4, cache=4)
    subject.bulk_insert(np.arange(1_000))
    subject.close()
    key = b"sash/w/" + bytes([0]) + (100).to_bytes(8, "big")
    store.put_many(change(key, store.get_many([key])[0]))
    return window("amta", store, buffer=4, cache=4)


CHANGES = {
    "truncated": (lambda key, data: {key: data[:-3]}, "truncated"),
    "bit": (lambda key, data: {key: data[:-1] + bytes([data[-1] ^ 1])}, "damaged"),
    "swapped": (lambda key, data: {key: data, key[:-1] + b"\x65": data}, "another key"),
    "pickle": (lambda key, data: {key: pickle.dumps(os.system)}, "no chunk"),
    "version": (lambda key, data: {key: data[:4] + b"\x09" + data[5:]}, "version 9"),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_chunk_that_is_not_what_was_written_is_named(what):
    change, said = CHANGES[what]
    subject = _damaged(memory(), change)
    place = 101 if what == "swapped" else 100
    with pytest.raises(sash.FormatError, match=said):
        subject.bulk_evict(place * subject._packing.n_items)


def test_a_chunk_of_an_earlier_life_of_the_window_is_stale():
    store = memory()
    subject = window("amta", store, buffer=4, cache=4)
    subject.bulk_insert(np.arange(400))
    subject.flush()
    subject.bulk_insert(np.arange(600))
    subject._background.waiting()
    key = b"sash/w/" + bytes([0]) + (800 // subject._packing.n_items).to_bytes(8, "big")
    lost = store.get_many([key])[0]
    again = window("amta", store, buffer=4, cache=4)
    again.bulk_insert(np.arange(600))
    again.close()
    store.put_many({key: lost})
    third = window("amta", store, buffer=4, cache=4)
    with pytest.raises(sash.FormatError, match="epoch"):
        third.bulk_evict(800)


def test_a_missing_chunk_is_named():
    store = memory()
    subject = _damaged(store, lambda key, data: {key: data})
    store.delete_many([b"sash/w/" + bytes([0]) + (100).to_bytes(8, "big")])
    with pytest.raises(sash.FormatError, match=r"missing from memory:"):
        subject.bulk_evict(100 * subject._packing.n_items)


def test_a_window_of_other_aggregates_is_refused():
    store = memory()
    window("amta", store).close()
    with pytest.raises(sash.FormatError, match=r"is of .*Sum"):
        window("amta", store, Max)


def test_two_windows_share_a_store():
    store = memory()
    first = aggregator("amta", Sum, dtype="i8", store=store, name="a", buffer=2, cache=2)
    second = aggregator("log_mta", Max, dtype="i8", store=store, name="a/b", buffer=2, cache=2)
    first.bulk_insert(np.arange(100))
    second.bulk_insert(np.arange(200))
    first.bulk_evict(50)
    second.bulk_evict(50)
    first.close()
    second.close()
    assert aggregator("amta", Sum, dtype="i8", store=store, name="a", buffer=2, cache=2).query() == sum(range(50, 100))
    assert aggregator("log_mta", Max, dtype="i8", store=store, name="a/b", buffer=2, cache=2).query() == 199


# --- bad input -------------------------------------------------------------------------------------


class _Opaque:
    pass


@sash.aggregate(state=object)
class Opaque:
    def lift(x):
        return _Opaque()

    def combine(older, newer):
        return newer


def test_objects_that_plain_data_cannot_express_need_a_codec():
    subject = aggregator("amta", Opaque, store=memory(), name="w")
    with pytest.raises(sash.UnsupportedError, match="codec"):
        subject.insert(1)


def test_only_the_monoid_trees_live_in_stores():
    with pytest.raises(sash.UnsupportedError, match="amta and log_mta"):
        aggregator("daba_lite", Sum, store=memory(), name="w")
    with pytest.raises(sash.UnsupportedError, match="amta and log_mta"):
        aggregator("amta", Sum, name="w")


def test_an_unknown_option_is_named():
    with pytest.raises(sash.UnknownNameError, match=r"option of daba_lite.*'inexat'"):
        aggregator("daba_lite", Sum, inexat=True)


@pytest.mark.parametrize("name", ["", "x" * 300, 3])
def test_a_window_in_a_store_needs_a_name(name):
    with pytest.raises(sash.DeclarationError, match="needs a name"):
        aggregator("amta", Sum, store=memory(), name=name)


@pytest.mark.parametrize("sizes", [{"buffer": 0}, {"cache": 0}])
def test_buffers_need_room(sizes):
    with pytest.raises(sash.DeclarationError, match="room for an element"):
        window("amta", memory(), **sizes)


def test_eviction_from_nothing_is_refused():
    subject = window("amta", memory())
    with pytest.raises(sash.EmptyWindowError):
        subject.evict()
    with pytest.raises(sash.EmptyWindowError, match="cannot evict 3 of 0"):
        subject.bulk_evict(3)
    with pytest.raises(sash.UnsupportedError, match="flush"):
        subject.snapshot()


def test_a_policy_that_is_not_monotone_is_refused():
    policy = sash.policies.sum_at_most(10, "x")
    subject = aggregator("amta", sash.max("x"), dtype="i8", store=memory(), name="w", policy=policy)
    with pytest.raises(sash.DataError, match="not monotone on these values"):
        subject.bulk_insert([3, -20, 15])
