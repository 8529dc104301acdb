"""The state of a stream in a store of one's own: versioned by query and batch, written by one run at a time.

    stream/<name>/owner                     which run may write: its epoch, and a token of its own
    stream/<name>/query                     checkpoint, number of shards, newest time after each of the last two batches
    stream/<name>/<shard>/record            epoch and batch of the last commit, which pages there are, if rows are hot
    stream/<name>/<shard>/undo              what the blocks that this commit wrote were before
    stream/<name>/<shard>/<kind>/<number>   a block, behind a checksum of its key and bytes

What a shard does in a batch is one atomic write: blocks, record and undo.

    S1  the blocks of a shard are its state after the batch that its record names
    S2  with undo put over them, they are its state one batch before
    S3  a block that was written and not deleted is there: pages and hot rows by the record, others as blocks list them

A batch may be done again at any time until the next begins: by a task that is tried again, by two tasks at once, by a
sink that reads answers twice, by a run that was killed. By S2 it begins from the same state; so the same rows give the
same answers and leave the same bytes. A record at any other batch than the one to do or the one before means
that the store has lost what it acknowledged, or is not the store of this checkpoint.

Fences. A run takes over when its first batch begins, and writes its epoch into each record. Before each write, owner
and record are read again. A store has no compare-and-set, so between this look and the write a run that has been
replaced may still write, once; its record, of another epoch or batch, then stops the run that replaced it in its next
batch.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, field, fields
from typing import Any, NamedTuple

import xxhash

from sash.engine import snapshot
from sash.errors import DeclarationError, FormatError, StoreAccessError, StoreError
from sash.stores.contract import Store
from sash.streams.contract import AT_THE_END, Counts
from sash.streams.pages import HOT, PAGE
from sash.streams.plans import Plan
from sash.streams.shard import HEAD, Outcome, take
from sash.streams.timing import watermark_after

NAME_MAX = 200  # bytes of a name in a key; the digest of a longer one stands for it
TRIES = 8  # while another task works on the same shard
CHECKSUM = 8  # bytes before each block
MAY_LACK = (HEAD, PAGE, HOT)  # kinds that are asked for without knowing whether there are any
OTHERWISE = "Restore the store as it was, or begin anew with another checkpoint and another name."


class Turn(NamedTuple):
    """A micro-batch of a run, as its shards need to know it."""

    name: str
    epoch: int
    token: str
    first: int  # batch of this run
    batch: int
    watermark: int | None  # before the batch, in microseconds: rows behind it are late
    until: int | None  # and after it: rows behind it are due


@dataclass
class Record:
    """The last commit of a shard."""

    epoch: int = 0
    batch: int = -1
    there: dict[str, int] = field(default_factory=lambda: dict.fromkeys(MAY_LACK, 0))  # bits by number of a block

    def dump(self) -> bytes:
        """As bytes."""
        return snapshot.seal(list(astuple(self)))

    @classmethod
    def load(cls, data: bytes | None) -> Record:
        """Read what `dump` wrote; nothing is the record of a shard that has not begun."""
        return cls() if data is None else cls(*snapshot.unseal(data, n_parts=len(fields(cls))))


class StoreBlocks:
    """The blocks of a shard for one micro-batch, as they were before it; what is written waits for `commit`."""

    def __init__(self, store: Store, turn: Turn, shard: int) -> None:
        self._store, self._turn = store, turn
        self._prefix = _prefix(turn.name) + b"%d/" % shard
        (self._data,) = store.get_many([self._prefix + b"record"])
        self._before = Record.load(self._data)
        self._require_in_step(shard)
        self._old: dict[bytes, bytes | None] = {}  # before this batch
        self._new: dict[bytes, bytes | None] = {}
        if self._before.batch == turn.batch:
            self._undo()
        self._undone = frozenset(self._old)
        self._there = dict.fromkeys(MAY_LACK, 0) | self._before.there

    def get(self, kind: str, number: int) -> bytes | None:  # noqa: D102
        return self.get_many(kind, [number])[0]

    def get_many(self, kind: str, numbers: Sequence[int]) -> list[bytes | None]:  # noqa: D102
        keys = [_block(kind, number) for number in numbers]
        unknown = [key for key in keys if key not in self._new and key not in self._old]
        if unknown:
            self._read(unknown)
        return [self._found(kind, number, key) for number, key in zip(numbers, keys, strict=True)]

    def _found(self, kind: str, number: int, key: bytes) -> bytes | None:
        value = self._new[key] if key in self._new else self._old[key]
        if value is not None:
            return self._opened(key, value)
        if kind not in MAY_LACK or self._there[kind] >> number & 1:
            raise self._refused(f"the block {key.decode()} is gone, though it was acknowledged", OTHERWISE)
        return None

    def put(self, kind: str, number: int, data: bytes) -> None:  # noqa: D102
        key = _block(kind, number)
        self._new[key] = _checksum(self._prefix + key, data) + data
        if kind in MAY_LACK:
            self._there[kind] |= 1 << number

    def delete(self, kind: str, number: int) -> None:  # noqa: D102
        self._new[_block(kind, number)] = None
        if kind in MAY_LACK:
            self._there[kind] &= ~(1 << number)

    def commit(self) -> bool:
        """Write everything at once; False, and nothing is written, if the shard was written meanwhile."""
        self._read(key for key in self._new if key not in self._old)
        changed = {key: value for key, value in sorted(self._new.items()) if value != self._old[key]}
        undo = [[key, self._old[key]] for key in changed]
        after = {key: self._old[key] for key in self._undone} | changed
        puts = {self._prefix + key: value for key, value in after.items() if value is not None}
        puts[self._prefix + b"undo"] = snapshot.seal([self._turn.batch, self._before.there, undo])
        puts[self._prefix + b"record"] = Record(self._turn.epoch, self._turn.batch, self._there).dump()
        if not self.is_current():
            return False
        self._store.write(puts, [self._prefix + key for key, value in after.items() if value is None])
        return True

    def is_current(self) -> bool:
        """Whether the shard is as it was at the beginning; an error if another run has taken over."""
        owner, data = self._store.get_many([_prefix(self._turn.name) + b"owner", self._prefix + b"record"])
        _require_owner(self._store, self._turn, owner)
        return data == self._data

    def _undo(self) -> None:
        """Go back to before the batch: it is done again."""
        (data,) = self._store.get_many([self._prefix + b"undo"])
        if data is None:
            raise self._refused("what undoes the last batch is gone, though it was acknowledged", OTHERWISE)
        batch, there, pairs = snapshot.unseal(data, n_parts=3)
        if batch == self._turn.batch:  # else another task is at it: `commit` will see
            self._before = Record(self._before.epoch, batch - 1, there)
            self._old = dict(pairs)

    def _read(self, keys: Iterable[bytes]) -> None:
        wanted = list(keys)
        values = self._store.get_many([self._prefix + key for key in wanted])
        self._old.update(zip(wanted, values, strict=True))

    def _opened(self, key: bytes, value: bytes) -> bytes:
        data = value[CHECKSUM:]
        if _checksum(self._prefix + key, data) != value[:CHECKSUM]:
            raise FormatError(f"{self._store.url}: the block {(self._prefix + key).decode()} is damaged. {OTHERWISE}")
        return data

    def _require_in_step(self, shard: int) -> None:
        turn, found = self._turn, self._before
        if found.epoch > turn.epoch:
            raise _taken_over(self._store, turn.name)
        if found.batch not in (turn.batch - 1, turn.batch):
            raise _out_of_step(self._store, turn.name, f"shard {shard}", found.batch, turn.batch)
        if found.epoch != turn.epoch and turn.batch != turn.first:
            raise self._refused(
                f"batch {found.batch} of shard {shard} was written by another run, of epoch {found.epoch}, while this "
                f"one, of epoch {turn.epoch}, was running",
                "Have one run of a query at a time; " + OTHERWISE[0].lower() + OTHERWISE[1:],
            )

    def _refused(self, found: str, remedy: str) -> StoreError:
        doing = f"do batch {self._turn.batch} of {self._turn.name!r}"
        return StoreError.refused(self._store.url, doing, found=found, remedy=remedy)


def take_stored(plan: Plan, store: Store, turn: Turn, shard: int, rows: Any) -> Outcome:
    """Give a shard the rows of a micro-batch (None: there are none), over the state it has in a store."""
    for _ in range(TRIES):
        blocks = StoreBlocks(store, turn, shard)
        try:
            outcome = _taken(plan, blocks, turn, rows)
        except Exception:  # blocks of two states, if another task wrote while this one read, may lead to anything
            if blocks.is_current():
                raise
            continue
        if blocks.commit():
            return outcome
    raise StoreError.refused(
        store.url,
        f"do batch {turn.batch} of {turn.name!r}",
        found=f"shard {shard} was written by others {TRIES} times meanwhile",
        remedy="Have one run of a query at a time.",
    )


def _taken(plan: Plan, blocks: StoreBlocks, turn: Turn, rows: Any) -> Outcome:
    """Take the rows of a batch, and then what has become due by them: no later batch has to come for it."""
    outcome = take(plan, blocks, rows, turn.watermark)
    if outcome.next_due is None or turn.until is None or outcome.next_due > turn.until:
        return outcome
    last = take(plan, blocks, None, turn.until)
    counts = {name: n + outcome.counts.as_dict()[name] for name, n in last.counts.as_dict().items()}
    counts |= {name: n for name, n in last.counts.as_dict().items() if name in AT_THE_END}
    return Outcome(outcome.tables + last.tables, Counts(**counts), last.next_due, outcome.was_due)


class Query:
    """A run of a query, where its batches begin and end: who may write, and the watermark."""

    def __init__(self, name: str, plan: Plan) -> None:
        self._name, self._plan = require_name(name), plan
        self._prefix = _prefix(name)
        self._mine: tuple[int, str, int] | None = None  # epoch, token and first batch of this run
        self._after: dict[bytes, bytes] = {}

    def begin(self, store: Store, batch: int, checkpoint: str, newest: int | None) -> Turn:
        """Begin a batch of a checkpoint, of which the newest time is known; the first takes over from any other run."""
        known = self._read(store, batch, checkpoint)
        if self._mine is None:
            self._mine = (*self._take_over(store, checkpoint, known), batch)
        before = known[batch - 1]
        after = max((each for each in (before, newest) if each is not None), default=None)
        self._after = self._record(checkpoint, {batch - 1: before, batch: after})
        turn = Turn(self._name, *self._mine, batch, self._watermark(before), self._watermark(after))
        self._require_mine(store, turn)
        return turn

    def end(self, store: Store, turn: Turn) -> None:
        """Note that all shards have done a batch; an error if another run has taken over."""
        self._require_mine(store, turn)
        store.put_many(self._after)

    def _require_mine(self, store: Store, turn: Turn) -> None:
        _require_owner(store, turn, store.get_many([self._prefix + b"owner"])[0])

    def _read(self, store: Store, batch: int, checkpoint: str) -> dict[int, int | None]:
        """The newest time after each of the last batches, the one before this batch among them."""
        (data,) = store.get_many([self._prefix + b"query"])
        if data is None:
            data = snapshot.seal([checkpoint, self._plan.n_shards, {-1: None}])
        found, n_shards, newest = snapshot.unseal(data, n_parts=3)
        if found != checkpoint:
            raise StoreError.refused(
                store.url,
                f"go on with {self._name!r}",
                found=f"what is there belongs to the checkpoint of query {found}, and this is query {checkpoint}",
                remedy="Start with the checkpoint it was made with, or give this query another name.",
            )
        if n_shards != self._plan.n_shards:
            raise FormatError(
                f"the state of {self._name!r} is in {n_shards} shards, but this run began with {self._plan.n_shards}: "
                "another one has made it meanwhile. Start again"
            )
        if batch - 1 not in newest:
            raise _out_of_step(store, self._name, "the query", max(newest), batch)
        return dict(newest)

    def _take_over(self, store: Store, checkpoint: str, newest: dict[int, int | None]) -> tuple[int, str]:
        (data,) = store.get_many([self._prefix + b"owner"])
        epoch = 1 if data is None else snapshot.unseal(data, n_parts=2)[0] + 1
        token = uuid.uuid4().hex  # two runs that start at the same moment have the same epoch
        owner = {self._prefix + b"owner": snapshot.seal([epoch, token])}
        store.put_many(owner | self._record(checkpoint, newest))
        return epoch, token

    def _record(self, checkpoint: str, newest: dict[int, int | None]) -> dict[bytes, bytes]:
        return {self._prefix + b"query": snapshot.seal([checkpoint, self._plan.n_shards, newest])}

    def _watermark(self, newest: int | None) -> int | None:
        return None if newest is None else watermark_after(self._plan, newest)


def recorded_shards(store: Store, name: str) -> int | None:
    """Into how many shards the state of a query is divided; None if there is none yet."""
    (data,) = store.get_many([_prefix(require_name(name)) + b"query"])
    return None if data is None else int(snapshot.unseal(data, n_parts=3)[1])


def require_name(name: Any) -> str:
    """Refuse a name that cannot be a part of a key."""
    if not isinstance(name, str) or not name or "/" in name or "\0" in name:
        raise DeclarationError(f"the name of a query is a text without / and NUL, as in name='rides', got {name!r}")
    return name


def _prefix(name: str) -> bytes:
    part = name.encode()
    if len(part) > NAME_MAX:
        part = hashlib.blake2b(part, digest_size=32).hexdigest().encode()
    return b"stream/" + part + b"/"


def _block(kind: str, number: int) -> bytes:
    return b"%s/%d" % (kind.encode(), number)


def _checksum(key: bytes, data: bytes) -> bytes:
    digest = xxhash.xxh3_64(key)
    digest.update(data)
    return digest.digest()


def _require_owner(store: Store, turn: Turn, data: bytes | None) -> None:
    if data is None:
        raise _out_of_step(store, turn.name, "the query", -1, turn.batch)
    if snapshot.unseal(data, n_parts=2) != [turn.epoch, turn.token]:
        raise _taken_over(store, turn.name)


def _taken_over(store: Store, name: str) -> StoreError:
    return StoreAccessError.refused(
        store.url,
        f"write the state of {name!r}",
        found="another run of this query has taken over",
        remedy="Leave it to that one, or stop it and start this one again.",
    )


def _out_of_step(store: Store, name: str, what: str, found: int, wanted: int) -> StoreError:
    there = "holds nothing" if found < 0 else f"is at batch {found}"
    return StoreError.refused(
        store.url,
        f"do batch {wanted} of {name!r}",
        found=f"{what} {there} in the store, but the checkpoint is at batch {wanted}: the store has lost what it "
        "acknowledged, or belongs to another checkpoint",
        remedy=OTHERWISE,
    )
