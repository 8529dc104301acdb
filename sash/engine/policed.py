"""A window that slides by a policy: after each event, what the policy gives up leaves.

log_mta and amta find it in their levels. Other algorithms forget their elements; beside them stands
a queue that keeps each one, and it is asked about one element at a time.

A policy must be monotone, and whether it is depends on the values too: sums of negative numbers are
not. On the 1st, 2nd, 4th, 8th ... event the window is searched both ways, which costs nothing in the
long run; where the ways differ, the policy is refused.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from sash.aggregators import find
from sash.aggregators.contract import OLDEST
from sash.aggregators.levels import N_LEVELS
from sash.aggregators.policy_search import N_ROWS, N_SCRATCH
from sash.algebra import codec
from sash.algebra.monoid import Monoid
from sash.compiling.jit import compiled, entry, explaining, interpreted
from sash.engine.binding import Bound
from sash.engine.building import Built, build
from sash.engine.in_order import InOrderAggregator
from sash.engine.policing import searcher
from sash.errors import DataError, FormatError
from sash.windows.policies import Policy, as_policy


class PolicedAggregator(InOrderAggregator):
    """A window over events in order of arrival, whose oldest events leave by a policy."""

    __slots__ = ("_answers", "_kept", "_n_events", "_policy", "_scratch", "_visible")

    def __init__(self, built: Built, bound: Bound, policy: Policy | None, visible: tuple[str | None, ...]) -> None:
        super().__init__(built, bound)
        self._policy = policy
        self._visible = visible
        self._scratch = built.cells.allocate(N_SCRATCH)
        self._answers = built.cells.results(N_ROWS)
        self._kept = None if built.algorithm.levels else _keeper(built, bound)
        self._n_events = 0

    def insert(self, *values: Any, **named: Any) -> None:
        """Append one event; then the oldest leave, as far as the policy says."""
        super().insert(*values, **named)
        if self._kept is not None:
            self._kept.insert(*values, **named)
        if self._policy is None:
            return
        self._n_events += 1
        is_sample = self._n_events & (self._n_events - 1) == 0
        self._enforce(self._policy, checked=is_sample)

    def bulk_insert(self, values: Any) -> None:
        """Append many events, sliding after each."""
        if self._policy is None:
            super().bulk_insert(values)
            return
        for value in values:
            self.insert(*value) if isinstance(value, tuple) else self.insert(value)

    def bulk_evict_while(self, policy: Any) -> None:
        """Remove at once what another policy gives up, over the same aggregates."""
        self._enforce(as_policy(policy), checked=False)

    def _enforce(self, policy: Policy, *, checked: bool) -> None:
        if len(self) == 0:
            return
        stays = self._search(policy, N_LEVELS)
        if checked and self._kept is None:
            self._require_monotone(policy, stays, self._search(policy, 0))
        self._evict_to(stays)

    def _search(self, policy: Policy, highest: int) -> int:
        """The first element that stays, looking at levels up to the highest."""
        kept = self if self._kept is None else self._kept
        search = _search_of(kept._built, self._bound.monoids, self._visible, policy)  # noqa: SLF001 - of its kind
        total = self._built.fifo.query(self._state)
        with explaining([policy.name]):
            return int(
                search(kept._state, self._state.pool, total, self._scratch, self._answers, highest)  # noqa: SLF001
            )

    def _require_monotone(self, policy: Policy, fast: int, slow: int) -> None:
        if fast != slow:
            oldest = int(self._state.at[OLDEST])
            raise DataError(
                f"{policy.name} is not monotone on these values: it keeps the oldest part of {slow - oldest + 1} "
                f"and gives up that of {fast - oldest}. If a part goes, every shorter one must go; or use "
                "two_stacks_lite, which asks about one element at a time and stops at the first to stay"
            )

    def _evict_to(self, element: int) -> None:
        if self._kept is not None:
            self._kept._evict_to(element)  # noqa: SLF001 - of its kind
        super()._evict_to(element)

    def snapshot(self) -> bytes:
        """Write the whole window to bytes."""
        kept = b"" if self._kept is None else self._kept.snapshot()
        return codec.encode([self._n_events, super().snapshot(), kept])

    def restore(self, data: bytes) -> None:
        """Replace this window by one written by `snapshot` for the same algorithm, aggregates and policy."""
        parts = codec.decode(data)
        if not isinstance(parts, list) or len(parts) != 3 or bool(parts[2]) != (self._kept is not None):
            raise FormatError("not a snapshot of a window that slides by a policy")
        super().restore(parts[1])
        if self._kept is not None:
            self._kept.restore(parts[2])
        self._n_events = parts[0]


def _keeper(built: Built, bound: Bound) -> InOrderAggregator:
    return InOrderAggregator(build(find("recalc"), bound.monoids, built.is_compiled, ()), bound)


@lru_cache(maxsize=256)
def _search_of(built: Built, monoids: tuple[Monoid, ...], visible: tuple[str | None, ...], policy: Policy) -> Any:
    """The search for one policy over one kind of window, as Python calls it."""
    levels, jit = built.algorithm.levels, compiled if built.is_compiled else interpreted
    assert levels is not None
    named = list(zip(visible, monoids, strict=True))
    search = searcher(levels(jit), built.cells, named, policy, jit)
    return entry(search) if built.is_compiled else search
