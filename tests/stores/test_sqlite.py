import sqlite3
import tempfile
from pathlib import Path

import pytest

import sash
from sash.errors import StoreError, StoreFullError, StoreReadOnlyError, StoreUnavailableError
from sash.testing.store_suite import CHUNK, StoreSuite
from tests.stores.test_lmdb import chunks, without_privileges


class TestSqlite(StoreSuite):
    @pytest.fixture
    def make_store(self, tmp_path):
        return lambda: sash.open_store(f"sqlite://{tmp_path}/data/store.db")


def test_a_full_file_is_said_and_leaves_what_was_there(tmp_path):
    with sash.open_store(f"sqlite://{tmp_path}/s?max_size=512K") as store:
        store.put_many(chunks(0, 20))
        with pytest.raises(StoreFullError, match=r"cannot write: .*larger \?max_size="):
            store.write(chunks(100, 300), [b"000000"])
        assert dict(store.scan()) == chunks(0, 20)
    with sash.open_store(f"sqlite://{tmp_path}/s") as store:
        store.put_many(chunks(100, 300))
        assert sum(1 for _ in store.scan()) == 220


def test_a_file_that_cannot_be_written_is_said():
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o555)
        with without_privileges(), pytest.raises(StoreReadOnlyError, match=r"cannot open: .*Allow this user"):
            sash.open_store(f"sqlite://{name}/s")
        Path(name).chmod(0o755)


def test_a_file_that_is_no_database_is_said(tmp_path):
    (tmp_path / "s").write_bytes(b"something else" * 1000)
    with pytest.raises(StoreError, match="no SQLite database, or a damaged one"):
        sash.open_store(f"sqlite://{tmp_path}/s")


def test_another_process_that_writes_for_too_long_is_said(tmp_path):
    with sash.open_store(f"sqlite://{tmp_path}/s?timeout=0") as store:
        store.put_many({b"a": CHUNK})
        other = sqlite3.connect(tmp_path / "s", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailableError, match=r"another process is writing .*longer \?timeout="):
            store.put_many({b"a": b""})
        assert store.get_many([b"a"]) == [CHUNK]
        other.execute("ROLLBACK")
        other.close()
        store.put_many({b"a": b"2"})
        assert store.get_many([b"a"]) == [b"2"]
