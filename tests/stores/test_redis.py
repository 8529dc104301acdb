import pickle
import traceback
from urllib.parse import quote

import pytest
import redis

import sash
from sash.errors import (
    DeclarationError,
    StoreAccessError,
    StoreError,
    StoreFullError,
    StoreReadOnlyError,
    StoreUnavailableError,
)
from sash.stores.redis import RedisStore
from sash.testing.store_suite import CHUNK, StoreSuite
from tests.stores.servers import can_make_certificates, certificate, encrypting, running

SECRET = "se/cr?e#t@1:%"
ESCAPED = quote(SECRET, "")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with running(tmp_path_factory.mktemp("server")) as started:
        yield started


@pytest.fixture(scope="module")
def locked_server(tmp_path_factory):
    with running(tmp_path_factory.mktemp("locked"), requirepass=SECRET) as started:
        yield started


class TestRedis(StoreSuite):
    @pytest.fixture
    def make_store(self, server):
        return lambda: sash.open_store(server.url(options="?prefix=suite[1]*:"))


def test_stores_with_other_prefixes_or_databases_do_not_see_each_other(server):
    with (
        sash.open_store(server.url()) as store,
        sash.open_store(server.url(options="?prefix=other:")) as other_prefix,
        sash.open_store(server.url(database=1)) as other_database,
    ):
        store.put_many({b"a": b"1"})
        assert other_prefix.get_many([b"a"]) == other_database.get_many([b"a"]) == [None]
        assert list(other_prefix.scan()) == list(other_database.scan()) == []
        store.delete_many([b"a"])


def test_the_keys_on_the_server_begin_with_the_prefix(server):
    with sash.open_store(server.url()) as store, redis.Redis(port=server.port) as client:
        store.put_many({b"a": b"1"})
        assert client.get("sash:a") == b"1"
        store.delete_many([b"a"])


def test_a_server_that_was_killed_is_said_and_comes_back_with_everything(tmp_path):
    with running(tmp_path, appendonly="yes", appendfsync="always") as server:
        store = sash.open_store(server.url(options="?retries=1"))
        store.put_many({b"a": b"1", b"b": b"1"})
        server.kill()
        for attempt in (lambda: store.put_many({b"a": b"2"}), lambda: store.get_many([b"a"]), lambda: store.scan()):
            with pytest.raises(
                StoreUnavailableError, match=r"redis://127.*: cannot .*cannot be reached.*Try again when"
            ):
                attempt()
        server.start()
        assert store.get_many([b"a", b"b"]) == [b"1", b"1"]
        store.write({b"a": b"2"}, [b"b"])
        server.kill()
        server.start()
        assert list(store.scan()) == [(b"a", b"2")]
        store.close()


def test_a_write_is_tried_again_when_the_server_comes_back_in_time(tmp_path):
    with running(tmp_path) as server:
        store = sash.open_store(server.url(options="?retries=20"))
        retry, attempts = store._retry.call_with_retry, []

        def call_with_retry(do, fail, is_retryable):
            return retry(do, revive, is_retryable)

        def revive(error):
            attempts.append(error)
            if len(attempts) == 2:
                server.start()

        store._retry.call_with_retry = call_with_retry
        server.kill()
        store.put_many({b"a": b"1"})
        assert len(attempts) == 2
        assert store.get_many([b"a"]) == [b"1"]
        store.close()


def test_a_server_that_is_not_there_is_said_at_once(server):
    url = server.url(options="?retries=0").replace(f":{server.port}", ":1")
    with pytest.raises(StoreUnavailableError, match=r"127\.0\.0\.1:1/0.*cannot open: the server cannot be reached"):
        sash.open_store(url)


def test_a_server_that_does_not_answer_is_said(server):
    with sash.open_store(server.url(options="?retries=0&timeout=0.05")) as store:
        store.get_many([b"a"])
        with server.stopped(), pytest.raises(StoreUnavailableError, match=r"did not answer in time.*longer \?timeout="):
            store.get_many([b"a"])
        assert store.get_many([b"a"]) == [None]


def test_a_full_server_is_said_and_leaves_what_was_there(tmp_path):
    with running(tmp_path) as server, sash.open_store(server.url()) as store:
        store.put_many({b"a": b"1"})
        with redis.Redis(port=server.port) as other:
            other.config_set("maxmemory", 1)
            with pytest.raises(StoreFullError, match=r"cannot write: .*reached its maxmemory.*nothing was changed"):
                store.write({b"b": CHUNK}, [b"a"])
            assert list(store.scan()) == [(b"a", b"1")]
            other.config_set("maxmemory", 0)
        store.write({b"b": CHUNK}, [b"a"])
        assert list(store.scan()) == [(b"b", CHUNK)]


def test_a_read_only_replica_is_said(tmp_path):
    with running(tmp_path, replicaof="127.0.0.1 1") as server, sash.open_store(server.url()) as store:
        with pytest.raises(StoreReadOnlyError, match=r"cannot write: .*read-only replica.*Connect to its primary"):
            store.put_many({b"a": b"1"})
        assert store.get_many([b"a"]) == [None]


@pytest.mark.parametrize("policy", ["allkeys-lru", "allkeys-lfu", "allkeys-random"])
def test_a_server_that_may_evict_windows_is_refused_unless_that_is_accepted(server, policy):
    with redis.Redis(port=server.port) as other:
        other.config_set("maxmemory-policy", policy)
        try:
            with pytest.raises(StoreError, match=rf"maxmemory-policy is {policy}.*Set it to noeviction"):
                sash.open_store(server.url())
            sash.open_store(server.url(options="?accept_eviction=yes")).close()
            other.config_set("maxmemory-policy", "volatile-lru")
            sash.open_store(server.url()).close()
        finally:
            other.config_set("maxmemory-policy", "noeviction")


def test_a_user_with_the_right_password_gets_in(locked_server):
    with sash.open_store(locked_server.url(user=f":{ESCAPED}@")) as store:
        store.put_many({b"a": b"1"})
    with sash.open_store(locked_server.url(user="default@"), password=SECRET) as store:
        assert store.get_many([b"a"]) == [b"1"]


def test_a_user_may_be_limited_to_the_prefix(locked_server):
    with redis.Redis(port=locked_server.port, password=SECRET) as admin:
        commands = ["+mget", "+mset", "+del", "+scan", "+multi", "+exec", "+info"]
        admin.execute_command("ACL", "SETUSER", "ann", "on", ">pw", "~sash:*", *commands)
        admin.execute_command("ACL", "SETUSER", "bob", "on", ">pw", "~sash:*", "+mget", "+scan")
    with sash.open_store(locked_server.url(user="ann:pw@")) as store:
        store.write({b"acl": b"1"}, [b"none"])
        assert list(store.scan(b"acl")) == [(b"acl", b"1")]
    with pytest.warns(UserWarning, match="does not tell its maxmemory-policy"):
        store = sash.open_store(locked_server.url(user="bob:pw@"))
    with store, pytest.raises(StoreAccessError, match=r"does not permit it to this user.*An ACL for it"):
        store.put_many({b"acl": b"2"})
    with pytest.raises(StoreAccessError, match="does not permit"):
        sash.open_store(locked_server.url(user="ann:pw@", options="?prefix=other:")).get_many([b"a"])


@pytest.mark.parametrize("user", ["", "default:wrong-word@", "nobody:wrong-word@"])
def test_a_wrong_password_is_said_and_not_shown(locked_server, user):
    with pytest.raises(StoreAccessError, match=r"cannot open: .*does not accept this user and password") as refused:
        sash.open_store(locked_server.url(user=user))
    assert "wrong-word" not in "".join(traceback.format_exception(refused.value))


def test_the_password_is_never_shown(locked_server):
    with sash.open_store(locked_server.url(user=f"default:{ESCAPED}@")) as store:
        shown = [repr(store), store.url]
    for attempt in (
        lambda: store.get_many([b"a"]),
        lambda: sash.open_store(f"redsi://u:{ESCAPED}@host"),
        lambda: sash.open_store(f"redis://u:{ESCAPED}@127.0.0.1:1?retries=0"),
        lambda: sash.open_store(f"redis://u:{ESCAPED}@127.0.0.1/x"),
        lambda: sash.open_store(f"redis://u:{ESCAPED}@127.0.0.1?pasword=hunter2"),
        lambda: sash.open_store("redis://127.0.0.1:1?retries=0", password=SECRET),
    ):
        with pytest.raises(sash.SashError) as refused:
            attempt()
        shown.append("".join(traceback.format_exception(refused.value)[1:]))
    for text in shown:
        said = "\n".join(line for line in text.splitlines() if "open_store(" not in line)
        assert SECRET not in said
        assert ESCAPED not in said
        assert "hunter2" not in said


@pytest.mark.parametrize(
    "secret", ["hunter/2", "12/hunter", "hunter?2", "12?hunter", "hunter#2", "12?h=hunter", "[hunter"]
)
def test_a_password_without_escapes_is_refused_and_no_piece_of_it_is_shown(secret):
    with pytest.raises(DeclarationError, match=r"cannot be read.*%-escapes") as refused:
        sash.open_store(f"redis://:{secret}@127.0.0.1:1")
    error = refused.value
    assert "hunter" not in str(error)
    assert error.__cause__ is None
    assert error.__suppress_context__ or error.__context__ is None


def test_a_password_on_a_network_without_encryption_gets_a_warning():
    with (
        pytest.warns(UserWarning, match="travels unencrypted; rediss:// encrypts"),
        pytest.raises(StoreUnavailableError, match="cannot be reached"),
    ):
        sash.open_store("redis://:word@sash.invalid?retries=0")


@pytest.mark.skipif(not can_make_certificates(), reason="needs the openssl command to make a certificate")
def test_tls_is_verified_always(server, tmp_path):
    made, key = certificate(tmp_path)
    with encrypting(server.port, made, key) as port:
        with sash.open_store(f"rediss://localhost:{port}?ca={made}") as store:
            store.put_many({b"tls": CHUNK})
            assert store.get_many([b"tls"]) == [CHUNK]
        with pytest.raises(StoreUnavailableError, match="certificate"):
            sash.open_store(f"rediss://localhost:{port}?retries=0")
        with pytest.raises(StoreUnavailableError, match="certificate"):
            sash.open_store(f"rediss://127.0.0.1:{port}?ca={made}&retries=0")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("redis://localhost/zero", "the number of a database, as in redis://localhost/0"),
        ("redis://localhost?ca=x", "write rediss:// instead of redis://"),
        ("redis://localhost?retries=-1", "retries is a number of at least 0, got '-1'"),
        ("redis://localhost?timeout=soon", "timeout is a number of at least 0.001, got 'soon'"),
        ("redis://localhost?accept_eviction=maybe", "accept_eviction is yes or no, got 'maybe'"),
        ("redis://localhost?prefx=x", "unknown option of a redis store 'prefx'. Did you mean 'prefix'?"),
    ],
)
def test_an_address_that_makes_no_sense_is_refused(url, said):
    with pytest.raises(DeclarationError) as refused:
        sash.open_store(url)
    assert said in str(refused.value)


def test_an_answer_nobody_expected_is_passed_on(server):
    with redis.Redis(port=server.port) as client:
        client.lpush("sash:list", "x")
        store = RedisStore(client, url="redis://here")
        assert store.get_many([b"list"]) == [None]
        client.delete("sash:list")


def test_values_are_bytes_even_if_they_are_a_pickle(server):
    planted = pickle.dumps({"a": 1})
    with sash.open_store(server.url()) as store:
        store.put_many({b"p": planted})
        assert store.get_many([b"p"]) == [planted]
        store.delete_many([b"p"])
