"""Tasks: aggregates with the columns they read, from what a user gave to what kernels take, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from sash.algebra.aggregate import Aggregate
from sash.algebra.monoid import Monoid
from sash.compiling.jit import is_enabled
from sash.engine import columns as reading
from sash.engine.answering import answers_of
from sash.engine.binding import as_aggregate
from sash.engine.building import nested, nullable, unnested
from sash.errors import DeclarationError


class Task(NamedTuple):
    """One aggregate with its columns."""

    aggregate: Aggregate
    monoid: Monoid
    columns: tuple[Any, ...]
    valid: Any  # None: no nulls
    is_masked: bool  # the input has a mask, so the answers get one

    @property
    def is_compilable(self) -> bool:
        """Whether machine code can be made for it."""
        return self.monoid.is_compilable and all(column.dtype.kind in "biuf" for column in self.columns)


class Kind(NamedTuple):
    """What decides which cells some tasks need."""

    monoids: tuple[Monoid, ...]
    is_compiled: bool
    has_nulls: bool


def tasks_of(given: Any, aggregate: Any) -> list[Task]:
    """Read the columns of one aggregate, or of a list or dict of them."""
    if isinstance(aggregate, Mapping):
        several: Sequence[Any] = list(aggregate.values())
    else:
        several = aggregate if isinstance(aggregate, (list, tuple)) else [aggregate]
    if not several:
        raise DeclarationError("no aggregate given")
    return [_task(given, as_aggregate(each)) for each in several]


def _task(given: Any, aggregate: Aggregate) -> Task:
    inputs = reading.choose_columns(given, aggregate)
    condition = reading.condition_of(given, aggregate)
    valid = reading.joint_validity(inputs, condition)
    dtypes = [column.values.dtype if column.is_number else None for column in inputs]
    is_masked = any(column.valid is not None for column in inputs)
    return Task(aggregate, aggregate.bind(*dtypes), tuple(c.values for c in inputs), valid, is_masked)


def narrowed(task: Task, longest: int) -> Task:
    """Use the narrow form of an integer sum where no window can overflow it."""
    if task.monoid.narrow is None or not task.columns[0].size:
        return task
    column = task.columns[0]
    if longest * max(abs(int(column.min())), abs(int(column.max()))) >= 2**63:
        return task
    return task._replace(monoid=task.monoid.narrow)


def kind_of(tasks: Sequence[Task], *, may_be_empty: bool) -> Kind:
    """Which cells the tasks need, if windows may be empty or not."""
    is_compiled = is_enabled() and all(task.is_compilable for task in tasks)
    has_nulls = may_be_empty or any(task.valid is not None for task in tasks)
    return Kind(tuple(task.monoid for task in tasks), is_compiled, has_nulls)


def nothing(task: Task) -> Any:
    """Answers for no rows."""
    if not (task.is_compilable and is_enabled()):
        return np.empty(0, object if not task.is_compilable else np.float64)
    return answers_of(nullable(task.monoid).results(0), task.monoid, masked=task.is_masked)


def columns_for(tasks: Sequence[Task], n: int, kind: Kind) -> Any:
    """The columns of all tasks, as the cells of their product want them."""
    return nested([_column(task, n, kind) for task in tasks])


def _column(task: Task, n: int, kind: Kind) -> Any:
    if not kind.is_compiled:
        columns = tuple(_with_none(column, task.valid) for column in task.columns)
        return columns or _presence(task.valid)
    if not kind.has_nulls:
        return task.columns
    return np.ones(n, np.bool_) if task.valid is None else task.valid, task.columns


def _presence(valid: Any) -> tuple[list[Any], ...]:
    """What an aggregate without inputs is told of each row, if a condition leaves some of them out."""
    return () if valid is None else ([True if present else None for present in valid.tolist()],)


def _with_none(column: Any, valid: Any) -> list[Any]:
    plain: list[Any] = column.tolist()
    if valid is None:
        return plain
    return [value if present else None for value, present in zip(plain, valid.tolist(), strict=True)]


def answers_for(tasks: Sequence[Task], results: Any) -> list[Any]:
    """The answers of all tasks, from the results of their product."""
    flat = unnested(results, len(tasks))
    return [answers_of(each, task.monoid, masked=task.is_masked) for each, task in zip(flat, tasks, strict=True)]


def cut_results(results: Any, begin: int, end: int) -> Any:
    """The results of some rows."""
    if isinstance(results, tuple):
        return tuple(cut_results(each, begin, end) for each in results)
    return None if results is None else results[begin:end]


def as_asked(aggregate: Any, outcomes: list[Any]) -> Any:
    """One outcome, a list or a dict of them, as the aggregates were given."""
    if isinstance(aggregate, Mapping):
        return dict(zip(aggregate, outcomes, strict=True))
    return list(outcomes) if isinstance(aggregate, (list, tuple)) else outcomes[0]
