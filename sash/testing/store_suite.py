"""The conformance suite of stores: every guarantee of `sash.stores.contract`, tested.

A store is tested by a class with one fixture, which gives a function that opens the store:

    class TestMine(StoreSuite):
        @pytest.fixture
        def make_store(self, tmp_path):
            return lambda: MyStore(tmp_path / "data")

Called again after a close, the function must open the same data, unless `durable = False`. Two stores
that are open at once need not see each other. The suite deletes every key it finds.
"""

# ruff: noqa: D102 - the name of a test is its documentation

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from sash.errors import DataError, StoreUnavailableError
from sash.stores.contract import KEY_LENGTH_MAX, PAGE, Store, Value
from sash.testing import strategies

# Hypothesis is there, or the import of `strategies` has said how to install it.
from hypothesis import settings  # isort: skip
from hypothesis import strategies as st  # isort: skip
from hypothesis.stateful import (  # isort: skip
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

__all__ = ["MakeStore", "StoreMachine", "StoreSuite", "store_machine", "strategies"]

MakeStore = Callable[[], Store]

LONGEST = b"k" * KEY_LENGTH_MAX
CHUNK = bytes(range(255)) * 16  # 4,080 bytes
PATIENCE_S = 60  # for a thread to end; reached only by a store that hangs

# Few letters, so that keys are prefixes of each other; those that a pattern or a text would trip over.
KEYS = st.lists(st.sampled_from([b"\0", b"a", b"b", b"*", b"[", b"\\", b"\xff", b"/"]), min_size=1, max_size=4).map(
    b"".join
)
VALUES = st.binary(max_size=8) | st.just(CHUNK)
PAIRS = st.dictionaries(KEYS, VALUES, max_size=5)


class StoreMachine(RuleBasedStateMachine):
    """A store and a dict beside it; `store_machine` says how to open the store."""

    open: MakeStore
    durable: bool

    @initialize()
    def begin(self) -> None:
        """Open the store, and empty it of what the last run left."""
        self.store = type(self).open()
        self.store.delete_many([key for key, _ in self.store.scan()])
        self.model: dict[bytes, bytes] = {}

    @rule(pairs=PAIRS)
    def put_many(self, pairs: dict[bytes, bytes]) -> None:
        """Put pairs."""
        self.store.put_many(pairs)
        self.model.update(pairs)

    @rule(keys=st.lists(KEYS, max_size=5))
    def delete_many(self, keys: list[bytes]) -> None:
        """Delete keys that are there or not."""
        self.store.delete_many(keys)
        for key in keys:
            self.model.pop(key, None)

    @rule(pairs=PAIRS, keys=st.lists(KEYS, max_size=5))
    def write(self, pairs: dict[bytes, bytes], keys: list[bytes]) -> None:
        """Write a batch: deletes, then puts."""
        self.store.write(pairs, keys)
        self.model = {key: value for key, value in self.model.items() if key not in keys} | pairs

    @rule(keys=st.lists(KEYS, max_size=8))
    def get_many(self, keys: list[bytes]) -> None:
        """Get keys in any order, some of them twice."""
        assert self.store.get_many(keys) == [self.model.get(key) for key in keys]

    @rule(prefix=KEYS)
    def scan(self, prefix: bytes) -> None:
        """Scan a prefix."""
        wanted = sorted(pair for pair in self.model.items() if pair[0].startswith(prefix))
        assert list(self.store.scan(prefix)) == wanted

    @precondition(lambda self: self.durable)
    @rule()
    def close_and_reopen(self) -> None:
        """Go on with what a store finds that is opened anew."""
        self.store.close()
        self.store = type(self).open()

    @invariant()
    def agrees(self) -> None:
        """Require that the store holds what the dict holds, in order."""
        assert list(self.store.scan()) == sorted(self.model.items())

    def teardown(self) -> None:
        """Close the store."""
        self.store.close()


def store_machine(open_store: MakeStore, *, durable: bool = True) -> type[StoreMachine]:
    """Make the machine that tests a store against a dict."""
    parts = {"open": staticmethod(open_store), "durable": durable}
    return type("StoreMachine", (StoreMachine,), parts)


class StoreSuite:
    """What any store must do; subclass it and say how to open yours."""

    durable = True
    profile: settings | None = None

    @pytest.fixture
    def make_store(self) -> MakeStore:
        """How to open the store under test."""
        raise NotImplementedError(f"{type(self).__name__} needs a fixture make_store: a function that opens the store")

    @pytest.fixture
    def store(self, make_store: MakeStore) -> Iterator[Store]:
        """The store under test, empty."""
        with make_store() as opened:
            opened.delete_many([key for key, _ in opened.scan()])
            yield opened

    def test_it_does_what_a_dict_does(self, make_store: MakeStore) -> None:
        run_state_machine_as_test(store_machine(make_store, durable=self.durable), settings=self.profile)

    def test_it_is_a_store_and_shows_where_it_is(self, store: Store) -> None:
        assert isinstance(store, Store)
        assert store.url in repr(store)

    def test_what_was_never_put_is_none(self, store: Store) -> None:
        assert store.get_many([b"never", b"ever"]) == [None, None]
        assert store.get_many([]) == []

    def test_values_come_in_the_order_of_the_keys_asked_for(self, store: Store) -> None:
        store.put_many([(b"a", b"1"), (b"b", b"2")])
        assert store.get_many([b"b", b"x", b"a", b"b"]) == [b"2", None, b"1", b"2"]

    def test_values_may_be_empty_or_large(self, store: Store) -> None:
        large = CHUNK * 64
        store.put_many({b"empty": b"", b"large": large})
        assert store.get_many([b"empty", b"large"]) == [b"", large]

    def test_putting_again_replaces(self, store: Store) -> None:
        store.put_many({b"a": CHUNK})
        store.put_many({b"a": b"2"})
        assert list(store.scan()) == [(b"a", b"2")]

    def test_a_batch_deletes_first_and_then_puts(self, store: Store) -> None:
        store.put_many({b"a": b"1", b"b": b"1"})
        store.write({b"a": b"2", b"c": b"2"}, [b"a", b"b", b"absent"])
        assert list(store.scan()) == [(b"a", b"2"), (b"c", b"2")]

    def test_an_empty_batch_changes_nothing(self, store: Store) -> None:
        store.put_many({b"a": b"1"})
        store.write()
        assert list(store.scan()) == [(b"a", b"1")]

    def test_a_scan_is_in_order_of_bytes_over_many_pages(self, store: Store) -> None:
        keys = [b"p/%d" % number for number in range(2 * PAGE + 1)]
        store.put_many({key: key for key in keys} | {b"p": b"", b"p0": b"", b"o/9": b""})
        assert list(store.scan(b"p/")) == [(key, key) for key in sorted(keys)]

    def test_a_scan_of_exactly_one_page_ends(self, store: Store) -> None:
        store.put_many({b"p/%04d" % number: b"" for number in range(PAGE)})
        assert len(list(store.scan(b"p/"))) == PAGE

    @pytest.mark.parametrize("prefix", [b"a*", b"a?", b"a[bc]", b"a\\", b"a\xff", b"a\0", b"a^", b"a-"])
    def test_a_prefix_is_no_pattern(self, store: Store, prefix: bytes) -> None:
        store.put_many({prefix: b"1", prefix + b"z": b"2", b"ab": b"3", b"abz": b"4", b"a": b"5"})
        assert list(store.scan(prefix)) == [(prefix, b"1"), (prefix + b"z", b"2")]

    def test_a_store_may_be_written_while_it_is_scanned(self, store: Store) -> None:
        keys = [b"%04d" % number for number in range(PAGE + 10)]
        store.put_many(dict.fromkeys(keys, b""))
        seen = []
        for key, _ in store.scan():
            seen.append(key)
            store.delete_many([key])
        assert seen == keys
        assert list(store.scan()) == []

    def test_the_buffers_of_the_caller_are_not_kept(self, store: Store) -> None:
        buffer = bytearray(b"before")
        pairs: dict[bytes, Value] = {b"a": buffer, b"b": memoryview(buffer)}
        store.put_many(pairs)
        buffer[:] = b"after!"
        assert store.get_many([b"a", b"b"]) == [b"before", b"before"]
        assert all(type(value) is bytes for value in store.get_many([b"a", b"b"]))

    def test_the_longest_key_is_good_and_a_longer_one_is_refused(self, store: Store) -> None:
        store.put_many({LONGEST: b"1"})
        assert list(store.scan(LONGEST)) == [(LONGEST, b"1")]
        with pytest.raises(DataError, match="at most 511 bytes, got 512"):
            store.put_many({LONGEST + b"k": b"2"})

    @pytest.mark.parametrize("key", [b"", "text", None])
    def test_what_cannot_be_a_key_is_refused_and_nothing_is_written(self, store: Store, key: bytes) -> None:
        for attempt in (
            lambda: store.put_many({b"good": b"1", key: b"2"}),
            lambda: store.write({b"good": b"1"}, [key]),
            lambda: store.get_many([key]),
        ):
            with pytest.raises(DataError, match="a key of a store"):
                attempt()
        assert list(store.scan()) == []

    def test_what_is_not_bytes_is_refused_and_nothing_is_written(self, store: Store) -> None:
        with pytest.raises(DataError, match="a store holds bytes"):
            store.put_many([(b"good", b"1"), (b"bad", "text")])  # type: ignore[list-item]
        assert list(store.scan()) == []

    def test_a_closed_store_says_so_and_may_be_closed_again(self, make_store: MakeStore) -> None:
        store = make_store()
        store.close()
        store.close()
        for attempt in (
            lambda: store.get_many([b"a"]),
            lambda: store.put_many({b"a": b""}),
            lambda: store.delete_many([b"a"]),
            store.scan,
        ):
            with pytest.raises(StoreUnavailableError, match=r"it is closed\. Open it again"):
                attempt()

    def test_what_was_written_is_there_when_it_is_opened_again(self, make_store: MakeStore, store: Store) -> None:
        if not self.durable:
            with make_store() as another:
                assert list(another.scan()) == []
            return
        store.put_many({b"a": CHUNK})
        store.close()
        with make_store() as again:
            assert again.get_many([b"a"]) == [CHUNK]

    def test_a_reader_beside_a_writer_sees_all_of_a_batch_or_nothing(self, store: Store) -> None:
        keys, n_batches = [b"w/%d" % number for number in range(8)], 40
        store.put_many(dict.fromkeys(keys, b"0"))

        def write() -> None:
            for number in range(1, n_batches):
                store.put_many(dict.fromkeys(keys, b"%d" % number))

        writer = _Thread(write)
        while writer.is_alive():
            assert len(set(store.get_many(keys))) == 1
        writer.finish()
        assert store.get_many(keys) == [b"%d" % (n_batches - 1)] * len(keys)

    def test_many_threads_may_write_and_scan_at_once(self, store: Store) -> None:
        def work(name: int) -> None:
            for number in range(20):
                store.put_many({b"t/%d/%02d" % (name, number): CHUNK})
                assert len(list(store.scan(b"t/%d/" % name))) == number + 1

        threads = [_Thread(lambda name=name: work(name)) for name in range(4)]  # type: ignore[misc]
        for thread in threads:
            thread.finish()
        assert len(list(store.scan(b"t/"))) == 80


class _Thread(threading.Thread):
    """A thread that has begun, and whose failure is not lost."""

    def __init__(self, work: Callable[[], object]) -> None:
        super().__init__(daemon=True)
        self._work = work
        self._error: BaseException | None = None
        self.start()

    def run(self) -> None:
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001 - raised again by finish()
            self._error = error

    def finish(self) -> None:
        """Wait for the end, and raise what was raised."""
        self.join(PATIENCE_S)
        assert not self.is_alive(), "a thread hangs"
        if self._error is not None:
            raise self._error
