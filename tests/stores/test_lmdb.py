import os
import resource
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

import sash
from sash.errors import DeclarationError, StoreError, StoreFullError, StoreReadOnlyError
from sash.testing.store_suite import CHUNK, StoreSuite

NOBODY = 65534


class TestLmdb(StoreSuite):
    @pytest.fixture
    def make_store(self, tmp_path):
        return lambda: sash.open_store(f"lmdb://{tmp_path}/data")


class TestLmdbThatGrowsAllTheTime(StoreSuite):
    """A map so small that threads, scans and batches meet its growth, and that is made anew at every read."""

    @pytest.fixture
    def make_store(self, tmp_path, monkeypatch):
        monkeypatch.setattr("sash.stores.lmdb.KEYS_PER_MAP", 1)
        return lambda: sash.open_store(f"lmdb://{tmp_path}/data?map_size=32K")


def chunks(first, last):
    return {b"%06d" % number: CHUNK for number in range(first, last)}


@contextmanager
def largest_file(n_bytes):
    """As if the disk ended there: a process may not make a file grow beyond it."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def without_privileges():
    """Not as root, who may write anywhere."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(before)


def test_a_chunk_takes_one_page(tmp_path):
    with sash.open_store(f"lmdb://{tmp_path}") as store:
        store.put_many(chunks(0, 1000))
        file = tmp_path / "data.mdb"
        assert file.stat().st_blocks * 512 < 1.1 * 1000 * 4096


def test_the_map_grows_by_itself_and_stays_so(tmp_path):
    url = f"lmdb://{tmp_path}?map_size=64K&max_size=64M"
    with sash.open_store(url) as store:
        store.put_many(chunks(0, 2000))
    with sash.open_store(url) as store:
        assert sum(1 for _ in store.scan()) == 2000


def test_a_scan_survives_the_growth_of_the_map(tmp_path):
    with sash.open_store(f"lmdb://{tmp_path}?map_size=4M") as store:
        store.put_many(chunks(0, 600))
        pairs = store.scan()
        seen = [next(pairs)]
        store.put_many(chunks(1000, 3000))
        seen += [pair for pair in pairs if pair[0] < b"001000"]
        assert seen == sorted(chunks(0, 600).items())


def test_a_full_map_is_said_and_leaves_what_was_there(tmp_path):
    with sash.open_store(f"lmdb://{tmp_path}?map_size=64K&max_size=256K") as store:
        store.put_many(chunks(0, 20))
        with pytest.raises(StoreFullError, match=r"lmdb://.*: cannot write: .*max_size=262,144.*larger \?max_size="):
            store.write(chunks(100, 200), [b"000000"])
        assert dict(store.scan()) == chunks(0, 20)
        store.write(chunks(30, 31), [b"000001"])
        assert store.get_many([b"000001", b"000030"]) == [None, CHUNK]
    with sash.open_store(f"lmdb://{tmp_path}", max_size="64M") as store:
        store.put_many(chunks(100, 200))
        assert sum(1 for _ in store.scan()) == 120


def test_a_full_disk_is_said_and_leaves_what_was_there(tmp_path):
    with sash.open_store(f"lmdb://{tmp_path}") as store:
        store.put_many(chunks(0, 20))
        with largest_file(256 * 1024), pytest.raises(StoreFullError, match=r"the disk is full.*Make room"):
            store.put_many(chunks(100, 1000))
        assert dict(store.scan()) == chunks(0, 20)
        store.put_many(chunks(100, 1000))
        assert sum(1 for _ in store.scan()) == 920
    with sash.open_store(f"lmdb://{tmp_path}") as store:
        assert sum(1 for _ in store.scan()) == 920


def test_a_directory_that_cannot_be_written_is_said():
    with tempfile.TemporaryDirectory() as name:
        sash.open_store(f"lmdb://{name}").close()
        for path in (*Path(name).iterdir(), Path(name)):
            path.chmod(0o555 if path.is_dir() else 0o444)
        with without_privileges(), pytest.raises(StoreReadOnlyError, match=rf"{name}: cannot open: .*Allow this user"):
            sash.open_store(f"lmdb://{name}")
        with without_privileges(), pytest.raises(StoreReadOnlyError, match="cannot open"):
            sash.open_store(f"lmdb://{name}/new")
        Path(name).chmod(0o755)


def test_a_file_that_is_no_database_is_said(tmp_path):
    (tmp_path / "data.mdb").write_bytes(b"something else" * 1000)
    with pytest.raises(StoreError, match="no LMDB database, or a damaged one"):
        sash.open_store(f"lmdb://{tmp_path}")


def test_a_path_through_a_file_is_said(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreError, match="cannot open"):
        sash.open_store(f"lmdb://{tmp_path}/file/data")


def test_two_stores_of_one_process_share_a_directory(tmp_path):
    first, second = sash.open_store(f"lmdb://{tmp_path}?map_size=64K"), sash.open_store(f"lmdb://{tmp_path}/.")
    first.put_many(chunks(0, 100))
    assert second.get_many([b"000099"]) == [CHUNK]
    first.close()
    second.put_many({b"a": b"1"})
    assert second.get_many([b"a"]) == [b"1"]
    second.close()
    with sash.open_store(f"lmdb://{tmp_path}") as third:
        assert third.get_many([b"a"]) == [b"1"]


def test_the_growth_of_a_map_in_another_process_is_followed(tmp_path):
    url = f"lmdb://{tmp_path}?map_size=64K"
    code = f"""
import sash
with sash.open_store({url!r}) as store:
    store.put_many({{b"%06d" % number: bytes(4080) for number in range(500)}})
"""
    with sash.open_store(url) as store:
        store.put_many({b"mine": b"1"})
        subprocess.run([sys.executable, "-c", code], check=True, timeout=60, cwd=Path(sash.__file__).parents[1])
        assert store.get_many([b"000499", b"mine"]) == [bytes(4080), b"1"]
        store.put_many({b"mine": b"2"})
        assert sum(1 for _ in store.scan()) == 501


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="only Linux says what is mapped")
def test_what_is_written_again_and_again_does_not_stay_in_memory(tmp_path):
    with sash.open_store(f"lmdb://{tmp_path}") as store:
        for _ in range(2):  # the second time each write reads what it replaces
            for first in range(0, 4000, 100):
                store.put_many(chunks(first, first + 100))
        assert mapped_kb("data.mdb") < 4_000  # of 16,000


def mapped_kb(name):
    """How much of a file is in the memory of this process."""
    lines = Path("/proc/self/smaps").read_text().splitlines()
    maps = [number for number, line in enumerate(lines) if line.endswith(name)]
    assert maps
    return sum(int(next(line for line in lines[number:] if line.startswith("Rss:")).split()[1]) for number in maps)


def test_a_process_killed_while_it_writes_leaves_whole_batches(tmp_path):
    code = f"""
import sash
store = sash.open_store("lmdb://{tmp_path}")
for number in range(10**9):
    store.put_many({{b"%d" % key: b"%d" % number for key in range(100)}})
    print(number, flush=True)
"""
    writer = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=Path(sash.__file__).parents[1])
    said = [int(writer.stdout.readline()) for _ in range(5)]
    writer.kill()
    said += [int(line) for line in writer.stdout.read().split()]
    writer.wait(timeout=30)
    writer.stdout.close()
    with sash.open_store(f"lmdb://{tmp_path}") as store:
        values = set(store.get_many([b"%d" % key for key in range(100)]))
        assert len(values) == 1
        assert int(values.pop()) >= said[-1]


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("lmdb://host/path", "needs a path, and no host: lmdb:///absolute/path"),
        ("lmdb:", "needs a path"),
        ("lmdb:///x?map_size=2M&max_size=1M", "map_size=2097152 is more than max_size=1048576"),
        ("lmdb:///x?map_size=much", "map_size is a number of bytes such as 65536, 64M or 1G, got 'much'"),
        ("lmdb:///x?mapsize=1M", "unknown option of a lmdb store 'mapsize'. Did you mean 'map_size'?"),
    ],
)
def test_an_address_that_makes_no_sense_is_refused(url, said):
    with pytest.raises(DeclarationError) as refused:
        sash.open_store(url)
    assert said in str(refused.value)


def test_a_path_may_be_relative_and_escaped(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with sash.open_store("lmdb:some%20where") as store:
        assert store.url == f"lmdb://{tmp_path}/some where"
    assert (tmp_path / "some where").is_dir()
