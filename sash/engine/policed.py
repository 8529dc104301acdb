"""A window that slides by a policy: after each event, what the policy gives up leaves.

log_mta and amta find it in their levels. Other algorithms forget their elements; beside them stands
a queue that keeps each one, and it is asked about one element at a time.

A policy must be monotone, and whether it is depends on the values too: sums of negative numbers are
not. Where the search leaps over elements that would show it, the policy is asked about every prefix of the
window after each of the first 32 events, then after the 64th, 128th, 256th and so on, which is less than
two questions an event in the long run. If it gives up a prefix but not a shorter one, it is refused; between these
samples nobody looks. An algorithm that is asked about one element at a time stops at the first to stay, whatever
the policy would say of more.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from sash.aggregators import find
from sash.aggregators.contract import END, OLDEST
from sash.aggregators.policy_search import N_ROWS, N_SCRATCH, Search
from sash.algebra.monoid import Monoid
from sash.compiling.jit import compiled, entry, interpreted
from sash.engine import snapshot
from sash.engine.binding import Bound
from sash.engine.building import Built, build
from sash.engine.in_order import InOrderAggregator
from sash.engine.policing import N_SAMPLED, asking, not_monotone, searcher, visible_to
from sash.errors import FormatError
from sash.windows.policies import Policy, as_policy


class PolicedAggregator(InOrderAggregator):
    """A window over events in order of arrival, whose oldest events leave by a policy."""

    __slots__ = ("_answers", "_kept", "_n_events", "_policy", "_scratch", "_visible")

    def __init__(
        self,
        built: Built,
        bound: Bound,
        policy: Policy | None,
        visible: tuple[str | None, ...],
        *,
        inexact: bool = False,
    ) -> None:
        super().__init__(built, bound, inexact=inexact)
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
        is_sample = self._n_events <= N_SAMPLED or self._n_events & (self._n_events - 1) == 0
        leaps = self._built.fifo.evict_to is not None
        self._enforce(self._policy, self._visible, checked=is_sample and leaps)

    def evict(self) -> None:
        """Remove the oldest event, though the policy would keep it."""
        super().evict()
        if self._kept is not None:
            self._kept.evict()

    def bulk_insert(self, values: Any) -> None:
        """Append many events, sliding after each."""
        if self._policy is None:
            super().bulk_insert(values)
            return
        for event in self._bound.events(values):
            self.insert(*event)

    def bulk_evict_while(self, policy: Any) -> None:
        """Remove at once what another policy gives up, over the same aggregates; it is not checked."""
        wanted = as_policy(policy)
        self._enforce(wanted, visible_to(wanted, self._bound), checked=False)

    def _enforce(self, policy: Policy, visible: tuple[str | None, ...], *, checked: bool) -> None:
        if len(self) == 0:
            return
        kept = self if self._kept is None else self._kept
        search = _search_of(kept._built, self._bound.monoids, visible, policy)  # noqa: SLF001 - of its kind
        total = self._built.fifo.query(self._state)
        arguments = kept._state, self._state.pool, total, self._scratch, self._answers  # noqa: SLF001
        with asking(policy, visible):
            stays = int(search.find(*arguments))
            if checked and search.census(*arguments) < 0:
                raise not_monotone(policy, len(self))
        self._evict_to(stays)

    def _evict_to(self, element: int) -> None:
        if self._kept is not None:
            self._kept._evict_to(element)  # noqa: SLF001 - of its kind
        super()._evict_to(element)

    def snapshot(self) -> bytes:
        """Write the whole window to bytes."""
        kept = b"" if self._kept is None else self._kept.snapshot()
        return snapshot.seal([self._n_events, super().snapshot(), kept])

    def restore(self, data: bytes) -> None:
        """Replace this window by one written by `snapshot` for the same algorithm, aggregates and policy."""
        n_events, window, elements = snapshot.unseal(data, n_parts=3)
        if bool(elements) != (self._kept is not None):
            raise FormatError("a snapshot of another algorithm: one keeps its elements beside it, the other does not")
        state = snapshot.read(self._built, self._bound.monoids, window)
        if self._kept is not None:
            kept = snapshot.read(self._kept._built, self._bound.monoids, elements)  # noqa: SLF001 - of its kind
            if any(kept.at[register] != state.at[register] for register in (OLDEST, END)):
                raise FormatError("a snapshot whose parts do not fit together: its queue holds other elements")
            self._kept._state = kept  # noqa: SLF001
        self._state, self._n_events = state, n_events


def _keeper(built: Built, bound: Bound) -> InOrderAggregator:
    """A queue of the elements, in cells of the same kind."""
    kept = build(find("recalc"), bound.monoids, True, ()) if built.is_compiled else _queue_of(built)
    return InOrderAggregator(kept, bound)


@lru_cache(maxsize=256)
def _queue_of(built: Built) -> Built:
    recalc = find("recalc")
    return Built(recalc, built.cells, recalc.build(built.cells, interpreted), False)


@lru_cache(maxsize=256)
def _search_of(built: Built, monoids: tuple[Monoid, ...], visible: tuple[str | None, ...], policy: Policy) -> Search:
    """The search for one policy over one kind of window, as Python calls it."""
    levels, jit = built.algorithm.levels, compiled if built.is_compiled else interpreted
    assert levels is not None
    named = list(zip(visible, monoids, strict=True))
    search = searcher(levels(jit), built.cells, named, policy, jit)
    return Search(*map(entry, search)) if built.is_compiled else search
