"""What a shard asks of the place where its state is kept, and what it says of each micro-batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Protocol

HASH = "__sash_hash"  # of the keys of a row: its shard and its page follow from it
REVISION, IS_LATE, FAILURE = "revision", "is_late", "failure"  # columns that a stream adds to the answers, when asked
CHUNK = "chunk"  # the kind of block that holds rows of a large key


class Blocks(Protocol):
    """Numbered blocks of bytes of a few kinds; what is written is seen by the next micro-batch, all of it or none."""

    def get(self, kind: str, number: int) -> bytes | None:
        """Read a block, or None if there is none."""

    def get_many(self, kind: str, numbers: Sequence[int]) -> list[bytes | None]:
        """Read some blocks of a kind, which takes less than to read one after the other."""

    def put(self, kind: str, number: int, data: bytes) -> None:
        """Write a block."""

    def delete(self, kind: str, number: int) -> None:
        """Remove a block; nothing happens if there is none."""


@dataclass
class Counts:
    """What a shard did in a micro-batch."""

    rows: int = 0  # that came
    late: int = 0  # behind the watermark
    without_time: int = 0
    far: int = 0  # too far ahead
    failed: int = 0  # which an aggregate could not take
    keys: int = 0  # whose windows were looked at
    answers: int = 0  # given out, revisions included
    revisions: int = 0  # of answers given out before
    unmatched: int = 0  # deletions of rows that are not there
    waiting: int = 0  # rows not answered yet, at the end
    pages: int = 0  # of window data, at the end
    large: int = 0  # keys with chunks of their own, at the end
    blocks_read: int = 0
    blocks_written: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    chunks_read: int = 0  # of large keys; they are among the blocks
    chunks_written: int = 0
    engine_us: int = 0  # spent in the engine

    def as_dict(self) -> dict[str, int]:
        """By name."""
        return asdict(self)


COUNTED = tuple(field.name for field in fields(Counts))
AT_THE_END = ("waiting", "pages", "large")  # of the shards that were called; all others are sums


class Counting:
    """Blocks that count what is read and written."""

    def __init__(self, blocks: Blocks, counts: Counts) -> None:
        self._blocks, self._counts = blocks, counts

    def get(self, kind: str, number: int) -> bytes | None:  # noqa: D102
        return self.get_many(kind, [number])[0]

    def get_many(self, kind: str, numbers: Sequence[int]) -> list[bytes | None]:  # noqa: D102
        found = self._blocks.get_many(kind, numbers)
        self._counts.blocks_read += len(found)
        self._counts.chunks_read += len(found) if kind == CHUNK else 0
        self._counts.bytes_read += sum(len(data) for data in found if data is not None)
        return found

    def put(self, kind: str, number: int, data: bytes) -> None:  # noqa: D102
        self._counts.blocks_written += 1
        self._counts.chunks_written += kind == CHUNK
        self._counts.bytes_written += len(data)
        self._blocks.put(kind, number, data)

    def delete(self, kind: str, number: int) -> None:  # noqa: D102
        self._counts.blocks_written += 1
        self._blocks.delete(kind, number)
