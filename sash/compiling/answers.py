"""From partials to columns of answers: what type an answer has is what Numba finds `lower` to give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from numba.extending import intrinsic
from numba.np import numpy_support

from sash.algebra.monoid import Function, Monoid
from sash.algebra.state import Record, Row, Scalar
from sash.compiling.access import field_access
from sash.compiling.jit import answer_type, compiled


def lower_value(monoid: Monoid) -> tuple[Function, Callable[[int], Any]]:
    """How to write the answer of a partial, and columns to write it to."""
    plain, sample = monoid.lower or _same, _sample(monoid)
    answer = answer_type(plain, (sample, 1.0) if monoid.graded else (sample,))
    lower, write = compiled(plain), _writer(answer)

    def lower_plain(results: Any, i: int, partial: Any, n: int) -> None:
        write(results, i, lower(partial))

    def lower_graded(results: Any, i: int, partial: Any, n: int) -> None:
        write(results, i, lower(partial, float(n)))

    return compiled(lower_graded if monoid.graded else lower_plain), _result_columns(answer)


def _sample(monoid: Monoid) -> Any:
    """A partial of the type that pools hold."""
    if isinstance(monoid.state, Record):
        return tuple(dtype.type(x) for x, dtype in zip(monoid.identity, monoid.state.dtypes, strict=True))
    assert isinstance(monoid.state, Scalar)
    return monoid.state.dtype.type(monoid.identity)


def lower_row(monoid: Monoid, state: Row) -> tuple[Function, Callable[[int], Any]]:
    """The same for a row: without `lower`, the row itself is the answer."""
    if monoid.lower is None:

        def copy_row(results: Any, i: int, pool: Any, src: int) -> None:
            for k in range(pool.shape[1]):
                results[0][i, k] = pool[src, k]

        return compiled(copy_row), lambda n: (np.empty((n, state.width), state.dtype), np.ones(0, np.bool_))
    answer = answer_type(monoid.lower, (np.zeros(state.width, state.dtype),))
    lower, write = compiled(monoid.lower), _writer(answer)

    def lower_row(results: Any, i: int, pool: Any, src: int) -> None:
        write(results, i, lower(pool[src]))

    return compiled(lower_row), _result_columns(answer)


def _writer(answer: Any) -> Function:
    """Write an answer of a Numba type: a number, a tuple of numbers, or one of them or None."""
    if isinstance(answer, numba.types.Optional):
        write_present = _writer(answer.type)

        def write_optional(results: Any, i: int, value: Any) -> None:
            if value is None:
                results[1][np.uintp(i)] = False
            else:
                write_present(results, i, _present(value))

        return compiled(write_optional)
    if isinstance(answer, numba.types.BaseTuple):
        store = field_access(len(answer))[1]

        def write_tuple(results: Any, i: int, value: Any) -> None:
            store(results[0], i, value)

        return compiled(write_tuple)

    def write_number(results: Any, i: int, value: Any) -> None:
        results[0][np.uintp(i)] = value

    return compiled(write_number)


@intrinsic  # type: ignore[untyped-decorator]
def _present(context: Any, value: Any) -> Any:
    """The value inside an optional one that is not None; Numba cannot look into an optional tuple."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.make_helper(builder, value, arguments[0]).data

    return value.type(value), codegen


def _result_columns(answer: Any) -> Callable[[int], Any]:
    """Columns for answers: `valid` is as long as they are only if an answer can be null."""
    is_nullable = isinstance(answer, numba.types.Optional)
    present = answer.type if is_nullable else answer

    def valid(n: int) -> Any:
        return np.ones(n if is_nullable else 0, np.bool_)

    if isinstance(present, numba.types.BaseTuple):
        dtypes = [numpy_support.as_dtype(field) for field in present]
        return lambda n: (tuple(np.empty(n, dtype) for dtype in dtypes), valid(n))
    dtype = numpy_support.as_dtype(present)
    return lambda n: (np.empty(n, dtype), valid(n))


def _same(partial: Any) -> Any:
    return partial
