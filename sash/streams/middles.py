"""Middles: the partial of a stretch of chunks, without combining all of them each time.

Two stacks, of chunks instead of rows:

    chunk:      a   b   c   d  |  e   f   g   h  |  i
    suffixes:   ad  bd  cd  d  |  `---- back ----'
    the middle from b to h = suffix of b + back

    M1  suffixes[c] is the partial of the chunks from c to the last of the front part, for each c of it
    M2  back is the partial of the chunks that follow the front part, as listed

When the middle begins behind the front part, that part is made anew of the chunks that are there. Each chunk is
combined about twice in its life. A chunk that is changed makes what it is in void.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from sash.algebra import codec
from sash.streams.bridges import Bridge

if TYPE_CHECKING:
    from sash.streams.chunks import Chunk

NONE = -1


class Middles:
    """What is combined of the chunks of a key, for one spec; partials are bytes until they are needed."""

    def __init__(self, dumped: Sequence[Any] = ((), (), b"", ())) -> None:
        numbers, suffixes, self._back, back_numbers = dumped
        self._suffixes: dict[int, bytes] = dict(zip(numbers, suffixes, strict=True))  # the last chunk first
        self._back_numbers = list(back_numbers)

    def dump(self) -> list[Any]:
        """As plain data."""
        return [list(self._suffixes), list(self._suffixes.values()), self._back, self._back_numbers]

    def of(self, bridge: Bridge, chunks: Sequence[Chunk], partial: Callable[[Chunk], Any]) -> list[Any]:
        """Partials that together are those of some chunks that follow one another, the oldest first."""
        places = {each.number: place for place, each in enumerate(chunks)}
        upto = next(iter(self._suffixes), NONE)
        if chunks[0].number not in self._suffixes or upto not in places:
            self._begin(bridge, chunks, partial)
            upto = chunks[-1].number
        found = [codec.decode(self._suffixes[chunks[0].number])]
        rest = chunks[places[upto] + 1 :]
        return [*found, self._backs(bridge, rest, partial)] if rest else found

    def _begin(self, bridge: Bridge, chunks: Sequence[Chunk], partial: Callable[[Chunk], Any]) -> None:
        """Make the front part of all that is there (M1)."""
        self._suffixes, self._back_numbers = {}, []
        combined: Any = None
        for each in reversed(chunks):
            combined = partial(each) if combined is None else bridge.joined(partial(each), combined)
            self._suffixes[each.number] = codec.encode(combined)

    def _backs(self, bridge: Bridge, rest: Sequence[Chunk], partial: Callable[[Chunk], Any]) -> Any:
        """The partial of what is behind the front part (M2)."""
        numbers, n_there = [each.number for each in rest], len(self._back_numbers)
        if not n_there or numbers[:n_there] != self._back_numbers:
            n_there = 0
        combined = codec.decode(self._back) if n_there else None
        for each in rest[n_there:]:
            combined = partial(each) if combined is None else bridge.joined(combined, partial(each))
        if n_there < len(rest):
            self._back, self._back_numbers = codec.encode(combined), numbers
        return combined

    def forget(self, number: int) -> None:
        """A chunk has gone from the front."""
        self._suffixes.pop(number, None)

    def change(self, numbers: Iterable[int]) -> None:
        """Some chunks are other ones now: what they are in is void."""
        if any(number in self._suffixes or number in self._back_numbers for number in numbers):
            self._suffixes, self._back_numbers = {}, []
