"""The conformance suite of windows in a store: the machine of in-order algorithms, with flushes and crashes.

A window is flushed, closed and opened again, taken over by a second opening, and lost: after a crash
it must be as it was at the last flush, neither more nor less.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sash.algebra.state import Object
from sash.engine.aggregator import aggregator
from sash.engine.binding import as_aggregate
from sash.stores.contract import Store
from sash.testing.fifo_suite import FifoMachine, fifo_machine

# Hypothesis is there, or the import of `fifo_suite` has said how to install it.
from hypothesis.stateful import rule  # isort: skip


class StoredMachine(FifoMachine):
    """A window in a store and the truth beside it; `stored_machine` adds the rules."""

    subject: Any
    make_store: Callable[[], Store]
    sizes: dict[str, Any]

    def __init__(self) -> None:
        self.store = type(self).make_store()
        self.has_crashed = False
        super().__init__()
        self.keep()

    def fresh(self) -> Any:
        """Open the window."""
        return aggregator(
            self.algorithm, self.aggregate, dtype=self.options["dtype"], store=self.store, name="w", **self.sizes
        )

    def keep(self) -> None:
        """Remember the truth as of a flush."""
        self.kept = len(self.truth.partials), self.truth.n_evicted, self.reference.snapshot()

    @rule()
    def snapshot_and_restore(self) -> None:
        """Flush, and go on."""
        self.subject.flush()
        self.keep()

    @rule()
    def reopen(self) -> None:
        """Close, which flushes, and open again."""
        self.subject.close()
        self.keep()
        self.subject = self.fresh()

    @rule()
    def crash(self) -> None:
        """Lose the process: what came after the last flush is gone, and nothing else."""
        self.has_crashed = True
        self.subject._background.close()  # noqa: SLF001 - a process that is gone writes no more
        self.subject = self.fresh()
        n_inserted, n_evicted, saved = self.kept
        for truth in (self.truth, self.lifted):
            del truth.partials[n_inserted:]
        self.truth.n_evicted = n_evicted
        self.reference.restore(saved)

    def teardown(self) -> None:
        """Leave nothing behind: a closed window of nothing is its record alone.

        What a lost process wrote after its last flush stays until elements come to those places again.
        """
        self.subject.bulk_evict(len(self.subject))
        self.subject.close()
        left = [key for key, _ in self.store.scan(b"sash/w/") if not key.endswith(b"/record")]
        self.store.close()
        assert self.has_crashed or len(left) <= N_LEFT, f"evicted chunks are still there: {left}"


N_LEFT = 48  # a chunk a level, of which elements yet to come would be the rest


def stored_machine(
    algorithm: str, aggregate: Any, make_store: Callable[[], Store], *, buffer: int = 512, cache: int = 512
) -> type[StoredMachine]:
    """Make the machine that tests an algorithm over a store; every example begins with a new store."""
    is_object = isinstance(as_aggregate(aggregate).bind(*(None,) * as_aggregate(aggregate).n_inputs).state, Object)
    plain = fifo_machine(algorithm, aggregate, compiled=not is_object)
    parts = {name: getattr(plain, name) for name in ("algorithm", "aggregate", "options")}
    rules = {name: plain.__dict__[name] for name in ("insert", "insert_null", "bulk_insert")}
    own = {"make_store": staticmethod(make_store), "sizes": {"buffer": buffer, "cache": cache}}
    return type(f"{plain.__name__}_stored", (StoredMachine,), {**parts, **rules, **own})
