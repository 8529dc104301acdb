"""A slide policy over the aggregates of a window: from answers in two rows to yes or no.

The records a policy gets have a field for each named aggregate; an aggregate with several answers is
a record itself. Answers that are no plain numbers (rows, and those finished outside compiled code)
have no field.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Sequence
from typing import Any

from sash.aggregators.contract import Jit
from sash.aggregators.levels import Levels
from sash.aggregators.policy_search import OLD_ROW, TOTAL_ROW, Decision, build
from sash.algebra.monoid import Function, Monoid
from sash.algebra.state import Row
from sash.compiling.cells import Cells
from sash.windows.policies import Policy

NAN = float("nan")
Named = tuple[str | None, Monoid]  # None: not for the policy to see


def searcher(levels: Levels, cells: Cells, named: Sequence[Named], policy: Policy, jit: Jit) -> Function:
    """Make search(state, whole, total, scratch, results): the first element that a policy lets stay."""
    return build(cells, levels, decision(policy, named, cells.results(1), jit), jit)


def decision(policy: Policy, named: Sequence[Named], sample: Any, jit: Jit) -> Decision:
    """What the policy says of total and old."""
    fields = [str(name) for name, monoid in named if _is_visible(name, monoid)]
    record = namedtuple("Aggregates", fields)  # type: ignore[misc]
    read, rule = _tuple_reader(list(named), sample, jit), jit(policy.rule)

    @jit
    def decide(results: Any) -> bool:
        return bool(rule(record(*read(results, TOTAL_ROW)), record(*read(results, OLD_ROW))))

    return Decision(decide, _clearer(len(named), sample, jit))


def _clearer(n_aggregates: int, sample: Any, jit: Jit) -> Function:
    """Make clear(results, i): kernels mark a null answer, and leave the mark of any other as it is."""
    first = sample[0] if n_aggregates > 1 else sample
    is_nullable = first[1] is not None and len(first[1]) > 0

    def clear_one(results: Any, i: int) -> None:
        if is_nullable:
            results[1][i] = True

    if n_aggregates == 1:
        return jit(clear_one)
    one, others = jit(clear_one), _clearer(n_aggregates - 1, sample[1], jit)

    def clear_more(results: Any, i: int) -> None:
        one(results[0], i)
        others(results[1], i)

    return jit(clear_more)


def _is_visible(name: str | None, monoid: Monoid) -> bool:
    return name is not None and monoid.finish is None and not (isinstance(monoid.state, Row) and monoid.lower is None)


def _tuple_reader(named: list[Named], sample: Any, jit: Jit) -> Function:
    """Make read(results, i): the readable answers of a product, as a tuple."""
    (name, monoid), rest = named[0], named[1:]
    first = _reader(monoid, sample[0] if rest else sample, jit) if _is_visible(name, monoid) else None
    if not rest:

        def read_last(results: Any, i: int) -> Any:
            return (first(results, i),)  # type: ignore[misc]

        return jit(read_last if first else _nothing)
    others = _tuple_reader(rest, sample[1], jit)

    def read_more(results: Any, i: int) -> Any:
        return (first(results[0], i),) + others(results[1], i)  # type: ignore[misc]  # noqa: RUF005 - for Numba

    def skip(results: Any, i: int) -> Any:
        return others(results[1], i)

    return jit(read_more if first else skip)


def _nothing(results: Any, i: int) -> Any:
    return ()


def _reader(monoid: Monoid, sample: Any, jit: Jit) -> Function:
    """Make read(results, i) for one aggregate."""
    outputs = namedtuple("Answers", monoid.outputs) if monoid.outputs else None
    if isinstance(sample[0], list):
        return _python_reader(outputs, len(monoid.outputs))
    values, valid = sample
    columns = values if isinstance(values, tuple) else (values,)
    fields = _fields_reader([column.dtype.kind == "f" for column in columns], jit)
    is_nullable = len(valid) > 0

    @jit
    def is_valid(results: Any, i: int) -> bool:
        return bool(results[1][i]) if is_nullable else True

    def read_one(results: Any, i: int) -> Any:
        return fields((results[0],), i, is_valid(results, i))[0]

    def read_several(results: Any, i: int) -> Any:
        return outputs(*fields(results[0], i, is_valid(results, i)))  # type: ignore[misc]

    return jit(read_several if outputs else read_one)


def _fields_reader(are_floats: list[bool], jit: Jit) -> Function:
    """Make read(columns, i, is_valid): a tuple of numbers."""
    null: Any = NAN if are_floats[0] else 0

    def read_last(columns: Any, i: int, is_valid: bool) -> Any:
        return (columns[0][i] if is_valid else null,)

    if len(are_floats) == 1:
        return jit(read_last)
    last, others = jit(read_last), _fields_reader(are_floats[1:], jit)

    def read_more(columns: Any, i: int, is_valid: bool) -> Any:
        return last(columns, i, is_valid) + others(columns[1:], i, is_valid)

    return jit(read_more)


def _python_reader(outputs: Callable[..., Any] | None, n_answers: int) -> Function:
    """The same for interpreted answers, which are Python values."""

    def read(results: Any, i: int) -> Any:
        answer = results[0][i]
        if outputs is None:
            return NAN if answer is None else answer
        return outputs(*((NAN,) * n_answers if answer is None else answer))

    return read
