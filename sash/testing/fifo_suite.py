"""The conformance suite of in-order algorithms: one machine drives a subject and the truth in step.

The truth is told twice, by `recalc`, interpreted, and by a plain fold over a list. After every step
the subject must have the same size, give the same answer, and keep its own invariants.

A pair of algorithm and aggregate that cannot work is not left out: `run_conformance` then demands
that the pair is refused, and that the message says why and what to use instead.
"""

from __future__ import annotations

from functools import reduce
from types import FunctionType
from typing import Any

import numpy as np

from sash.aggregators import ALGORITHMS, find
from sash.aggregators.contract import ASSOCIATIVE, SELECTIVE_OR_INVERTIBLE, Card
from sash.algebra.laws.sameness import same
from sash.algebra.monoid import Monoid, ungraded
from sash.algebra.state import Object
from sash.algebra.state import Row as RowState
from sash.compiling.jit import is_enabled
from sash.engine.aggregator import aggregator
from sash.engine.binding import as_aggregate
from sash.engine.in_order import InOrderAggregator
from sash.errors import EmptyWindowError, UnsupportedError
from sash.testing import strategies

# Hypothesis is there, or the import of `strategies` has said how to install it.
from hypothesis import note, settings  # isort: skip
from hypothesis import strategies as st  # isort: skip
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test  # isort: skip

Row = tuple[Any, ...]
MOST_AT_ONCE = 10  # rows of a bulk insert: enough to make the ring of an empty window grow


class FifoMachine(RuleBasedStateMachine):
    """A subject and the truth beside it; `fifo_machine` adds the rules, with rows to draw."""

    algorithm: str
    aggregate: Any
    options: dict[str, Any]

    def __init__(self) -> None:
        super().__init__()
        self.subject = self.fresh()
        self.reference = aggregator("recalc", self.aggregate)
        self.truth = _Truth(_monoid(self.aggregate, None))
        self.lifted = _Truth(_monoid(self.aggregate, self.options["dtype"]))

    def fresh(self) -> InOrderAggregator:
        """Make an empty window of the algorithm under test."""
        window: InOrderAggregator = aggregator(self.algorithm, self.aggregate, **self.options)
        return window

    def inserted(self, rows: list[Row]) -> None:
        """Tell the truth and the reference of new rows."""
        for row in rows:
            self.reference.insert(*row)
            self.truth.append(row)
            self.lifted.append(row)

    def evicted(self, count: int) -> None:
        """Tell the truth and the reference of rows that have left."""
        self.reference.bulk_evict(count)
        self.truth.n_evicted += count

    @rule()
    def evict(self) -> None:
        """Remove the oldest row; if there is none, that must be said."""
        if len(self.truth) > 0:
            self.subject.evict()
            self.evicted(1)
            return
        try:
            self.subject.evict()
        except EmptyWindowError as error:
            note(f"refused: {error}")
        else:
            raise AssertionError(f"{self.algorithm} evicted from an empty window")

    @rule(share=st.integers(0, 4))
    def bulk_evict(self, share: int) -> None:
        """Remove many rows: none, some quarters, or all of them."""
        count = len(self.truth) * share // 4
        self.subject.bulk_evict(count)
        self.evicted(count)

    @rule()
    def query(self) -> None:
        """Ask twice: a query may rearrange cells, but not the answer."""
        first = self.subject.query()
        require_same(self.subject.query(), first, "the second query")

    @rule()
    def snapshot_and_restore(self) -> None:
        """Go on from bytes."""
        saved = self.subject.snapshot()
        self.subject = self.fresh()
        self.subject.restore(saved)

    @invariant()
    def agrees(self) -> None:
        """Require the same size, the same answer, and the invariants of the algorithm."""
        assert len(self.subject) == len(self.reference) == len(self.truth)
        answer = self.subject.query()
        require_same(answer, self.reference.query(), f"{self.algorithm} against recalc")
        require_same(answer, self.truth.answer(), f"{self.algorithm} against a plain fold")
        self.subject.check_invariants(self.lifted.partials)


def _insert(machine: FifoMachine, row: Row) -> None:
    """Append a row."""
    machine.subject.insert(*row)
    machine.inserted([row])


def _bulk_insert(machine: FifoMachine, rows: list[Row]) -> None:
    """Append many rows."""
    machine.subject.bulk_insert(row[0] if len(row) == 1 else row for row in rows)
    machine.inserted(rows)


def _rules(aggregate: Any, values: st.SearchStrategy[Any] | None) -> dict[str, Any]:
    """The rules that need rows; their strategies are made once, which is most of what a draw costs."""
    rows, any_rows = strategies.rows(aggregate, values), strategies.rows_or_nulls(aggregate, values)
    nulls = strategies.null_rows(aggregate, values)
    return {
        "insert": rule(row=rows)(_named(_insert, "insert")),
        "insert_null": rule(row=nulls)(_named(_insert, "insert_null")),
        "bulk_insert": rule(rows=st.lists(any_rows, max_size=MOST_AT_ONCE))(_named(_bulk_insert, "bulk_insert")),
    }


def _named(function: Any, name: str) -> Any:
    """A copy of a function under the name a failing run shows."""
    twin = FunctionType(function.__code__, function.__globals__, name)
    twin.__doc__, twin.__annotations__ = function.__doc__, function.__annotations__
    return twin


class _Truth:
    """Every row ever inserted, lifted, and how many of them have left."""

    def __init__(self, monoid: Monoid) -> None:
        self._monoid = monoid
        self._row = monoid.state if isinstance(monoid.state, RowState) else None
        self.partials: list[Any] = []
        self.n_evicted = 0

    def __len__(self) -> int:
        return len(self.partials) - self.n_evicted

    def append(self, row: Row) -> None:
        values = row[: self._monoid.n_inputs]
        self.partials.append(None if None in values else self._written(self._monoid.lift, *values))

    def answer(self) -> Any:
        held = [partial for partial in self.partials[self.n_evicted :] if partial is not None]
        lower = self._monoid.lower
        if held:
            total = reduce(lambda older, newer: self._written(self._monoid.combine, older, newer), held)
        elif self._monoid.answers_empty:
            total = self._identity()
        else:
            return None
        return lower(total) if lower else total

    def _identity(self) -> Any:
        identity = self._monoid.identity
        return np.full(self._row.width, identity, self._row.dtype) if self._row else identity

    def _written(self, function: Any, *arguments: Any) -> Any:
        if self._row is None:
            return function(*arguments)
        out = np.empty(self._row.width, self._row.dtype)
        function(*arguments, out)
        return out


def require_same(found: Any, wanted: Any, what: str) -> None:
    """Fail unless two answers are equal, arrays and NaN included."""
    assert same(found, wanted), f"{what}: found {found!r}, wanted {wanted!r}"


def _monoid(aggregate: Any, dtype: Any) -> Monoid:
    declared = as_aggregate(aggregate)
    kind = None if dtype is None else np.dtype(dtype)
    return ungraded(declared.bind(*(kind,) * declared.n_inputs))


def fifo_machine(
    algorithm: str,
    aggregate: Any,
    compiled: bool = False,
    *,
    dtype: Any = "i8",
    values: st.SearchStrategy[Any] | None = None,
    **options: Any,
) -> type[FifoMachine]:
    """Make the machine that tests an algorithm on an aggregate.

    `values` draws the inputs; small whole numbers unless said. They must be values on which the
    aggregate is exact, since answers are compared bit for bit. Compiled, columns are of `dtype`.
    """
    form = "compiled" if compiled else "interpreted"
    parts = {
        "algorithm": algorithm,
        "aggregate": aggregate,
        "options": {"dtype": dtype if compiled else None, "compiled": compiled, **options},
        **_rules(aggregate, values),
    }
    return type(f"{algorithm}_{as_aggregate(aggregate).name}_{form}", (FifoMachine,), parts)


def run_conformance(
    algorithm: str, aggregate: Any, compiled: bool = False, *, profile: settings | None = None, **options: Any
) -> None:
    """Require that an algorithm is right for an aggregate, or refuses it with the right message.

    `options` are those of `fifo_machine`.
    """
    machine = fifo_machine(algorithm, aggregate, compiled, **options)
    monoid = _monoid(aggregate, machine.options["dtype"])
    wanted = refusal(find(algorithm).card, monoid, compiled=compiled)
    if wanted is None:
        run_state_machine_as_test(machine, settings=profile)
        return
    said = _refusal_said(machine)
    missing = [words for words in wanted if words not in said]
    assert not missing, f"the refusal of {algorithm} does not say {missing}: {said!r}"


def _refusal_said(machine: type[FifoMachine]) -> str:
    try:
        aggregator(machine.algorithm, machine.aggregate, **machine.options)
    except UnsupportedError as error:
        return str(error)
    raise AssertionError(f"{machine.algorithm} must refuse {as_aggregate(machine.aggregate).name}")


def refusal(card: Card, monoid: Monoid, *, compiled: bool) -> tuple[str, ...] | None:
    """Which words the refusal of an aggregate must contain; None if it must be accepted."""
    if card.needs == SELECTIVE_OR_INVERTIBLE and monoid.selective:
        if isinstance(monoid.state, RowState):
            return card.name, monoid.name, "compares partials", "two_stacks_lite"
    elif card.needs != ASSOCIATIVE:
        if monoid.invert is None:
            return card.name, monoid.name, "needs an inverse", "two_stacks_lite"
        if monoid.exact is False:
            return card.name, monoid.name, "inexact=True", "two_stacks_lite"
    if compiled and is_enabled() and isinstance(monoid.state, Object):
        return monoid.name, "cannot be compiled", "state of fixed width"
    return None


def fifo_algorithms() -> dict[str, Card]:
    """The algorithms this suite is for: events come and go one at a time, the oldest first."""
    return {name: found.card for name, found in ALGORITHMS.items() if not excuse(found.card)}


def excuse(card: Card) -> str:
    """Why an algorithm is not for this suite; empty if it is."""
    if card.fixed:
        return f"{card.name} slides by its own rule: the caller does not evict"
    if card.order != "in order":
        return f"{card.name} is no queue: its elements come and go in {card.order} order"
    return ""
