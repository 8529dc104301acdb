import builtins
import importlib
import sys

import pytest

import sash
from sash.errors import DeclarationError, UnknownNameError
from sash.stores.opening import SCHEMES


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("redsi://host", "unknown kind of store 'redsi'. Did you mean 'redis'?"),
        ("lmbd:///x", "Did you mean 'lmdb'?"),
        ("rocksdb:///x", "Known: lmdb, memory, redis, rediss, sqlite."),
    ],
)
def test_an_unknown_kind_gets_the_nearest_name(url, said):
    with pytest.raises(UnknownNameError) as refused:
        sash.open_store(url)
    assert said in str(refused.value)


@pytest.mark.parametrize("url", ["", "/some/path", "//host", "user:hunter2@host:1", "hunter2@host"])
def test_what_is_no_address_is_refused_and_not_shown(url):
    with pytest.raises(DeclarationError) as refused:
        sash.open_store(url)
    assert "hunter2" not in str(refused.value)


def test_a_kind_may_be_written_in_capitals(tmp_path):
    with sash.open_store(f"SQLite://{tmp_path}/s") as store:
        assert store.url == f"sqlite://{tmp_path}/s"


def test_an_option_nobody_knows_is_refused():
    with pytest.raises(UnknownNameError, match="unknown option of a memory store 'size'"):
        sash.open_store("memory:", size=1)


def test_an_option_given_by_name_comes_before_one_in_the_address(tmp_path):
    with pytest.raises(DeclarationError, match="map_size=2097152 is more than max_size=1048576"):
        sash.open_store(f"lmdb://{tmp_path}?map_size=4K&max_size=1M", map_size="2M")


@pytest.mark.parametrize("scheme", [scheme for scheme, kind in SCHEMES.items() if kind.extra])
def test_a_missing_client_is_said_with_what_to_install(scheme, monkeypatch):
    module, extra = SCHEMES[scheme]
    monkeypatch.delitem(sys.modules, module, raising=False)
    for name in [name for name in sys.modules if name.split(".")[0] == extra]:
        monkeypatch.delitem(sys.modules, name)
    real = builtins.__import__

    def without(name, *rest):
        if name.split(".")[0] == extra:
            raise ModuleNotFoundError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(DeclarationError, match=rf"the {extra} package is missing.*pip install 'sash\[{extra}\]'"):
        sash.open_store(f"{scheme}:///x")


def test_every_kind_has_an_opener():
    assert all(callable(importlib.import_module(module).open_url) for module, _ in SCHEMES.values())
