"""Large keys: those with so many rows in reach that they get chunks of their own (chunks).

A key begins in a page, with others. When more of its rows are in reach than a page should hold, they move; they stay
by themselves until nothing is left of them. The head of the shard lists large keys by their hashes; rows
of another key with the same hash go to their page as ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from sash.errors import FormatError
from sash.frames import buffers
from sash.frames.keys import joint_codes
from sash.streams.bridges import Bridge, is_bridgeable
from sash.streams.chunks import NEW, ROWS, Chunks, in_order
from sash.streams.contract import HASH, Blocks
from sash.streams.plans import Plan

if TYPE_CHECKING:
    from sash.streams.held import Held

LARGE = 4 * ROWS  # rows in reach


@dataclass
class LargeKeys:
    """The large keys of a shard."""

    plan: Plan
    blocks: Blocks
    hashes: dict[int, int]  # by number
    next_number: int

    @cached_property
    def bridges(self) -> list[Bridge]:
        """The specs over one key; none if partials cannot stand for rows."""
        if is_bridgeable(self.plan):
            return [Bridge(self.plan, k) for k in range(len(self.plan.specs))]
        if self.hashes:
            raise FormatError(_unreadable(len(self.hashes)))
        return []

    def take_out(self, rows: Any) -> tuple[Any, list[tuple[Chunks, Any]]]:
        """Rows of other keys, and those of each large key that has some, in order."""
        if not self.hashes or rows.num_rows == 0:
            return rows, []
        hashes = rows.column(HASH).to_numpy()
        is_small = np.ones(len(hashes), np.bool_)
        found = []
        for number, own in self.hashes.items():
            places = np.flatnonzero(hashes == own)
            if len(places) == 0:
                continue
            chunks = self._chunks(number)
            places = places[self._is_key(chunks.key, rows, places)]
            if len(places):  # else all are of another key with that hash
                is_small[places] = False
                found.append((chunks, in_order(self.plan, rows.take(pa.array(places)))))
        return rows.filter(pa.array(is_small)) if found else rows, found

    def _chunks(self, number: int) -> Chunks:
        chunks = Chunks(self.plan, self.blocks, number, self.bridges)
        chunks.load()
        return chunks

    def _is_key(self, key: Any, rows: Any, places: Any) -> Any:
        """Which rows have a key, and not only its hash."""
        by = list(self.plan.window.by)
        if not by:
            return np.ones(len(places), np.bool_)
        both = pa.concat_tables([key, rows.select(by).take(pa.array(places))])
        codes = joint_codes([buffers.single(both.column(name)) for name in by], both.num_rows).codes
        return codes[1:] == codes[0]

    def promote(self, held: Held) -> Any:
        """Give keys with too many rows in reach chunks of their own; the rows in reach of all others.

        Of rows in pages that are written anew, that is: the others stay where they are.
        """
        mask = held.reach & held.now.pages.is_written(held.rows)
        if mask.sum() <= LARGE or not self.bridges:
            return held.in_reach(mask)
        starts = np.flatnonzero(held.begins)
        large = np.flatnonzero(np.add.reduceat(mask, starts, dtype=np.int64) > LARGE)
        for key in large.tolist():
            own = mask & (held.keys == key)
            mask = mask & ~own
            self._promote(held.rows.filter(pa.array(own)).combine_chunks())
        return held.in_reach(mask)

    def _promote(self, rows: Any) -> None:
        chunks = Chunks(self.plan, self.blocks, self.next_number, self.bridges)
        chunks.key = rows.select(list(self.plan.window.by)).slice(0, 1).combine_chunks()
        chunks.replace(0, 0, rows.append_column(NEW, pa.array(np.full(rows.num_rows, -1))))
        chunks.save()
        self.hashes[self.next_number] = rows.column(HASH)[0].as_py()
        self.next_number += 1

    def keep(self, chunks: Chunks, watermark: int) -> None:
        """Write what is left of a key."""
        chunks.forget(watermark)
        chunks.save()
        if chunks.is_empty:
            del self.hashes[chunks.number]

    def sweep(self, turn: int, watermark: int) -> None:
        """Look at one key, in turn, so that those which have fallen silent are forgotten too."""
        if self.hashes:
            number = sorted(self.hashes)[turn % len(self.hashes)]
            self.keep(self._chunks(number), watermark)


def _unreadable(n: int) -> str:
    """Of the options that may change, only idle= asks for rows, to see where a key was silent."""
    return (
        f"this checkpoint has {n} keys with so many rows that they are in chunks, of which partials are kept, and "
        "partials do not tell where a key was silent, which idle= asks for. Go on without idle=, or begin anew with "
        "another checkpointLocation"
    )
