"""A slide policy over the aggregates of a window: from answers in two rows to yes or no.

The records a policy gets have a field for each named aggregate; an aggregate with several answers is
a record itself. Answers that are no plain numbers (rows, and those finished outside compiled code), and
those whose name no attribute can have, get no field. A sum of integers is a number of 64 bits; beyond
them it is the nearest one.
"""

from __future__ import annotations

import keyword
import re
from collections import namedtuple
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from sash.aggregators.contract import Jit
from sash.aggregators.levels import Levels
from sash.aggregators.policy_search import OLD_ROW, TOTAL_ROW, Decision, Search, build
from sash.algebra.monoid import Function, Monoid
from sash.algebra.state import Row
from sash.compiling.cells import Cells
from sash.compiling.jit import explaining
from sash.engine.binding import Bound
from sash.errors import DataError, DeclarationError, UnknownNameError
from sash.windows.policies import Policy

NAN = float("nan")
N_SAMPLED = 32  # events after each of which a policy is checked
WIDE = ("hi", "lo")  # the answers of a sum of integers, hi * 2**64 + lo
LARGEST, LOWER_63 = 2**63 - 1, np.uint64(2**63 - 1)
RECORD = "Aggregates"
ABSENT = re.compile(rf"Unknown attribute '(\w+)' of type {RECORD}\(")

Named = tuple[str | None, Monoid]  # None: not for the policy to see


def visible_to(policy: Policy, bound: Bound) -> tuple[str | None, ...]:
    """By which names a policy sees the aggregates of a window: those it brings, or those the user has named."""
    if not policy.aggregates:
        names = bound.names or (bound.monoids[0].name,)
        return names + (None,) * (len(bound.monoids) - len(names))
    visible: list[str | None] = [None] * len(bound.monoids)
    for name, aggregate in policy.aggregates:
        places = [k for k, seen in enumerate(visible) if seen is None and bound.is_aggregate(k, aggregate)]
        if not places:
            raise DeclarationError(
                f"{policy.name} looks at {aggregate.name}({', '.join(aggregate.columns)}), which this window does not "
                "have; make the window with this policy, or with that aggregate among its own"
            )
        visible[places[-1]] = name
    return tuple(visible)


@contextmanager
def asking(policy: Policy, visible: Sequence[str | None]) -> Iterator[None]:
    """Say so if a policy cannot be compiled, or names an aggregate that is not there."""
    try:
        with explaining([policy.name]):
            yield
    except AttributeError as error:
        if type(error.obj).__name__ != RECORD:
            raise
        raise _absent(policy, str(error.name), visible) from None
    except DeclarationError as error:
        found = ABSENT.search(str(error))
        if found is None:
            raise
        raise _absent(policy, found[1], visible) from None


def _absent(policy: Policy, name: str, visible: Sequence[str | None]) -> UnknownNameError:
    return UnknownNameError.among(f"aggregate in {policy.name}:", name, [each for each in visible if each is not None])


def not_monotone(policy: Policy, n: int) -> DataError:
    """Make the error for a policy that the search cannot be trusted with."""
    return DataError(
        f"{policy.name} is not monotone on these values: it gives up a part of a window of {n}, and not every "
        "shorter part. If a part goes, every shorter one must go; or use two_stacks_lite, which asks about one "
        "element at a time and stops at the first to stay"
    )


def searcher(levels: Levels, cells: Cells, named: Sequence[Named], policy: Policy, jit: Jit) -> Search:
    """Make the search for what a policy gives up of a window."""
    return build(cells, levels, decision(policy, named, cells.results(1), jit), jit)


def decision(policy: Policy, named: Sequence[Named], sample: Any, jit: Jit) -> Decision:
    """What the policy says of total and old."""
    fields = [str(name) for name, monoid in named if _is_visible(name, monoid)]
    record = namedtuple(RECORD, fields)  # type: ignore[misc]
    read, rule = _tuple_reader(list(named), sample, jit), jit(policy.rule)

    @jit
    def decide(results: Any) -> bool:
        return bool(rule(record(*read(results, TOTAL_ROW)), record(*read(results, OLD_ROW))))

    return Decision(decide, _clearer(len(named), sample, jit))


def _clearer(n_aggregates: int, sample: Any, jit: Jit) -> Function:
    """Make clear(results, i): kernels mark a null answer, and leave the mark of any other as it is."""
    if n_aggregates > 1:
        middle = n_aggregates // 2
        left, right = _clearer(middle, sample[0], jit), _clearer(n_aggregates - middle, sample[1], jit)

        def clear_both(results: Any, i: int) -> None:
            left(results[0], i)
            right(results[1], i)

        return jit(clear_both)
    is_nullable = sample[1] is not None and len(sample[1]) > 0

    def clear_one(results: Any, i: int) -> None:
        if is_nullable:
            results[1][i] = True

    return jit(clear_one)


def _is_visible(name: str | None, monoid: Monoid) -> bool:
    if name is None or not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
        return False
    is_row = isinstance(monoid.state, Row) and monoid.lower is None
    return not is_row and (monoid.finish is None or monoid.outputs == WIDE)


def _tuple_reader(named: list[Named], sample: Any, jit: Jit) -> Function:
    """Make read(results, i): the visible answers of a product, as a tuple."""
    if len(named) > 1:
        middle = len(named) // 2
        left, right = _tuple_reader(named[:middle], sample[0], jit), _tuple_reader(named[middle:], sample[1], jit)

        def read_both(results: Any, i: int) -> Any:
            return left(results[0], i) + right(results[1], i)

        return jit(read_both)
    name, monoid = named[0]
    if not _is_visible(name, monoid):
        return jit(_nothing)
    read = _reader(monoid, sample, jit)

    def read_one(results: Any, i: int) -> Any:
        return (read(results, i),)

    return jit(read_one)


def _nothing(results: Any, i: int) -> Any:
    return ()


def _reader(monoid: Monoid, sample: Any, jit: Jit) -> Function:
    """Make read(results, i) for one aggregate."""
    if monoid.outputs == WIDE:
        outputs: Callable[..., Any] | None = jit(_as_number)
    else:
        outputs = namedtuple("Answers", monoid.outputs) if monoid.outputs else None
    if isinstance(sample[0], list):
        return _python_reader(outputs, len(monoid.outputs))
    values, valid = sample
    columns = values if isinstance(values, tuple) else (values,)
    fields = _fields_reader([column.dtype for column in columns], jit)
    is_nullable = len(valid) > 0

    @jit
    def is_valid(results: Any, i: int) -> bool:
        return bool(results[1][i]) if is_nullable else True

    def read_one(results: Any, i: int) -> Any:
        return fields((results[0],), i, is_valid(results, i))[0]

    def read_several(results: Any, i: int) -> Any:
        return outputs(*fields(results[0], i, is_valid(results, i)))  # type: ignore[misc]

    return jit(read_several if outputs else read_one)


def _as_number(hi: Any, lo: Any) -> int:
    """The number hi * 2**64 + lo, or the nearest one of 64 bits."""
    is_upper, rest = lo > LOWER_63, int(np.int64(lo & LOWER_63))
    if hi == 0 and not is_upper:
        return rest
    if hi == -1 and is_upper:
        return rest - LARGEST - 1
    return LARGEST if hi >= 0 else -LARGEST - 1


def _fields_reader(dtypes: list[Any], jit: Jit) -> Function:
    """Make read(columns, i, is_valid): a tuple of numbers."""
    null: Any = dtypes[0].type(NAN if dtypes[0].kind == "f" else 0)  # of the same type, or Numba makes floats of both

    def read_last(columns: Any, i: int, is_valid: bool) -> Any:
        return (columns[0][i] if is_valid else null,)

    if len(dtypes) == 1:
        return jit(read_last)
    last, others = jit(read_last), _fields_reader(dtypes[1:], jit)

    def read_more(columns: Any, i: int, is_valid: bool) -> Any:
        return last(columns, i, is_valid) + others(columns[1:], i, is_valid)

    return jit(read_more)


def _python_reader(outputs: Callable[..., Any] | None, n_answers: int) -> Function:
    """The same for interpreted answers, which are Python values."""

    def read(results: Any, i: int) -> Any:
        answer = results[0][i]
        if outputs is None or outputs is _as_number:
            return NAN if answer is None else outputs(*answer) if outputs else answer
        return outputs(*((NAN,) * n_answers if answer is None else answer))

    return read
