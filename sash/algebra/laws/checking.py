"""`sash.check_laws`: try every law on samples, and report the smallest rows that break one.

An equation is tried on all choices of the simplest rows first, then on runs of several rows, and
a run that breaks it is made smaller before it is reported. Two sides are the same if they are
equal, floats up to rounding relative to the largest number involved, or if no window could tell
them apart: they answer alike, alone and when combined with others. Rounding excuses a float sum,
but no average of averages.

Everything runs interpreted and on copies, so that an impure combine breaks L3 and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from sash.algebra.aggregate import Aggregate
from sash.algebra.declaring import monoid_of
from sash.algebra.laws.equations import EQUATIONS, LIFT, NAMES, STORE, Equation
from sash.algebra.laws.report import Failure, LawReport
from sash.algebra.laws.sameness import magnitude, same
from sash.algebra.laws.sampling import Run, Values, default_pools, given_rows, longer_runs, simpler, simplest_runs
from sash.algebra.laws.subject import Raised, Subject
from sash.algebra.monoid import Monoid, ungraded
from sash.errors import DeclarationError

MAX_SHRINKS = 1000
N_CONTEXTS = 4
WRONG_KIND = (TypeError, AttributeError)  # what functions raise on values they were not made for


def check_laws(aggregate: Any, samples: Iterable[Any] | None = None) -> LawReport:
    """Try the laws of an aggregate on samples; the report holds the smallest counterexamples.

    `aggregate` is a class declared with `@sash.aggregate`, an aggregate such as `sash.max()`, a
    monoid, or a PySpark-style Aggregator. `samples` are values, or tuples for several inputs;
    without them, a few numbers are tried, or texts where numbers make no sense.

    >>> from sash.algebra.declaring import aggregate
    >>> @aggregate(state="f8")
    ... class Average:
    ...     identity = 0.0
    ...     def lift(x): return x
    ...     def combine(older, newer): return (older + newer) / 2
    >>> print(check_laws(Average).failures[0])
    L1 associativity is broken: (x + y) + z == x + (y + z)
        with         x = 0, y = 0, z = 1
        (x + y) + z  is 0.5
        x + (y + z)  is 0.25
    """
    subject = Subject(ungraded(_bound(aggregate)))
    search = Search(subject)
    search.choose_rows(samples)
    tried = [equation for equation in EQUATIONS if equation.applies(subject.monoid)]
    for equation in tried if search.lift_repeats else [LIFT]:
        search.run(equation)
    return LawReport(
        subject.monoid.name,
        tuple(f"{law} {NAMES[law]}" for law in sorted({equation.law for equation in tried})),
        tuple(sorted(search.failures, key=lambda failure: failure.law)),
        n_samples=len(search.rows),
        n_checks=search.n_checks,
    )


def _bound(aggregate: Any) -> Monoid:
    if isinstance(aggregate, Monoid):
        return aggregate
    if not isinstance(aggregate, Aggregate):
        return monoid_of(aggregate)
    try:
        return aggregate.bind(*(None,) * aggregate.n_inputs)
    except (DeclarationError, *WRONG_KIND):  # it wants to know a type
        return aggregate.bind(*(np.dtype("f8"),) * aggregate.n_inputs)


class Verdict(NamedTuple):
    """How one trial of an equation ended."""

    holds: bool
    left: Any = None
    right: Any = None
    raised: Raised | None = None


class Search:
    """The search for counterexamples; each law is reported once, and so is each kind of exception."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.rows: list[Values] = []
        self.failures: list[Failure] = []
        self.n_checks = 0
        self._told: set[tuple[str, type]] = set()

    def choose_rows(self, samples: Iterable[Any] | None) -> None:
        """Take the samples, or the first pool that suits; a sample that cannot be lifted breaks L7."""
        self.rows = self._default_rows() if samples is None else given_rows(samples, self.subject.monoid.n_inputs)
        self.run(LIFT)
        self.rows = [row for row in self.rows if not self._try(LIFT, ((row,),)).raised]
        self.subject.contexts = self.rows[:N_CONTEXTS]

    @property
    def lift_repeats(self) -> bool:
        """Whether the same row gives the same partial; without that, no other law means anything."""
        return all(failure.error is not None for failure in self.failures)

    def run(self, equation: Equation) -> None:
        """Look for the simplest rows that break an equation."""
        if not self.rows or any(failure.law == equation.law for failure in self.failures):
            return
        found = next(filter(self._breaking(equation), simplest_runs(self.rows, equation.n_runs)), None)
        if found is None and not equation.is_lone:
            found = next(filter(self._breaking(equation), longer_runs(self.rows, equation.n_runs)), None)
            found = found and self._shrunk(found, self._breaking(equation))
        if found is not None:
            self._report(equation, found)

    def _breaking(self, equation: Equation) -> Callable[[tuple[Run, ...]], bool]:
        def breaks(runs: tuple[Run, ...]) -> bool:
            verdict = self._try(equation, runs)
            return not verdict.holds and (verdict.raised is None or verdict.raised.kind not in self._told)

        return breaks

    def _shrunk(self, runs: tuple[Run, ...], breaks: Callable[..., bool]) -> tuple[Run, ...]:
        candidates = simpler(runs, self.rows)
        for _ in range(MAX_SHRINKS):
            smaller = next(candidates, None)
            if smaller is None:
                break
            if breaks(smaller):
                runs, candidates = smaller, simpler(smaller, self.rows)
        return runs

    def _report(self, equation: Equation, runs: tuple[Run, ...]) -> None:
        _, left, right, raised = self._try(equation, runs)
        law, claim = equation.law, equation.claim
        if raised is None:
            failure = Failure(law, NAMES[law], claim, runs, left, right, hint=equation.hint)
        else:
            self._told.add(raised.kind)
            failure = Failure(law, NAMES[law], claim, runs, error=raised.error, call=raised.call)
        self.failures.append(failure)

    def _try(self, equation: Equation, runs: tuple[Run, ...]) -> Verdict:
        self.n_checks += 1
        try:
            left, right = equation.sides(self.subject, *runs)
            holds = same(left, right) or self._is_close(equation, runs, left, right)
        except Raised as raised:
            return Verdict(False, raised=raised)
        return Verdict(holds, left, right)

    def _is_close(self, equation: Equation, runs: tuple[Run, ...], left: Any, right: Any) -> bool:
        if equation.law == "L3":
            return False  # changed is changed, whether or not an answer shows it
        if equation.is_strict:
            return self.subject.is_same(left, right, 0.0)
        tolerance = self.subject.rounding * self._scale(runs, left, right)
        return self.subject.is_same(left, right, tolerance)

    def _scale(self, runs: tuple[Run, ...], left: Any, right: Any) -> float:
        """The largest number among the rows, their partials, the partial of them all, and the two sides."""
        rows = [row for run in runs for row in run]
        whole = self.subject.fold(tuple(rows)) if rows else None
        return magnitude(rows, [self.subject.lift(row) for row in rows], whole, left, right)

    def _default_rows(self) -> list[Values]:
        monoid = self.subject.monoid
        liftable: list[Values] = []
        for pool in default_pools(monoid.state, monoid.n_inputs):
            rows = self._suitable(pool)
            if rows and self._is_right_kind(rows):
                return rows
            liftable = liftable or rows
        if liftable:
            return liftable
        raise DeclarationError(
            f"{monoid.name} can lift neither numbers nor texts; say what it takes: check_laws(aggregate, samples=[...])"
        )

    def _suitable(self, pool: list[Values]) -> list[Values]:
        """Rows that can be lifted and stored; if none can be stored, that will be reported."""
        liftable = [row for row in pool if not self._try(LIFT, ((row,),)).raised]
        return [row for row in liftable if self._try(STORE, ((row,),)).holds] or liftable

    def _is_right_kind(self, pool: list[Values]) -> bool:
        """Whether no two rows make a function say that it is not made for such values."""
        try:
            for older, newer in simplest_runs(pool, 2):
                whole = self.subject.fold(older + newer)
                self.subject.lower(self.subject.fold(older))
                self.subject.lower(whole)
                if self.subject.monoid.invert is not None:
                    self.subject.invert(whole, self.subject.fold(older))
        except Raised as raised:
            return not isinstance(raised.error, WRONG_KIND)
        return True
