"""Cells of fixed width, as machine code: numbers, tuples of numbers, rows of a matrix."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from sash.algebra.monoid import Function, Monoid, ungraded
from sash.algebra.state import Object, Record, Row, Scalar
from sash.compiling.access import access
from sash.compiling.answers import lower_row, lower_value
from sash.compiling.cells import Cells, Fold, Values, fold_in_place
from sash.compiling.jit import compiled
from sash.errors import UnsupportedError

LINE = 64  # bytes of a line of a cache


def values(monoid: Monoid) -> Values:
    """Operations on partials in registers; graded monoids get the counts they ask for."""
    if not isinstance(monoid.state, (Scalar, Record)):
        raise UnsupportedError(f"the partial of {monoid.name} does not fit into registers")
    load, store, cut = access(monoid)
    lift, combine = _lift_value(monoid), compiled(monoid.combine)
    lower, results = lower_value(monoid)

    def combine_plain(older: Any, newer: Any, n_older: int, n_newer: int) -> Any:
        return combine(older, newer)

    def combine_graded(older: Any, newer: Any, n_older: int, n_newer: int) -> Any:
        return combine(older, newer, float(n_older), float(n_newer))

    return Values(
        load, store, lift,
        compiled(combine_graded if monoid.graded else combine_plain),
        lower, cut, _allocator(monoid), results,
    )  # fmt: skip


def compiled_cells(monoid: Monoid) -> Cells:
    """Cells of fixed width, as machine code."""
    monoid = ungraded(monoid)
    if isinstance(monoid.state, Object):
        raise UnsupportedError(
            f"{monoid.name} keeps Python objects, which cannot be compiled; declare a state of fixed width"
        )
    return _row_cells(monoid) if isinstance(monoid.state, Row) else _number_cells(monoid)


def _number_cells(monoid: Monoid) -> Cells:
    ops = values(monoid)
    load, store, lift_value, join = ops.load, ops.store, ops.lift, compiled(monoid.combine)
    lower_value, inverse = ops.lower, compiled(monoid.invert or _no_inverse)
    identity, same = monoid.identity, _sameness(monoid)

    @compiled
    def combine(pool: Any, dst: int, older: int, newer: int) -> None:
        store(pool, dst, join(load(pool, older), load(pool, newer)))

    @compiled
    def clear(pool: Any, dst: int) -> None:
        store(pool, dst, identity)

    @compiled
    def lift(pool: Any, dst: int, columns: Any, i: int) -> None:
        store(pool, dst, lift_value(columns, i))

    @compiled
    def lower(results: Any, i: int, pool: Any, src: int) -> None:
        lower_value(results, i, load(pool, src), 0)

    @compiled
    def transfer(to_pool: Any, dst: int, from_pool: Any, src: int) -> None:
        store(to_pool, dst, load(from_pool, src))

    @compiled
    def invert(pool: Any, dst: int, whole: int, older: int) -> None:
        store(pool, dst, inverse(load(pool, whole), load(pool, older)))

    @compiled
    def newer_wins(pool: Any, older: int, newer: int) -> bool:
        younger = load(pool, newer)
        return bool(same(join(load(pool, older), younger), younger))

    assert isinstance(monoid.state, (Scalar, Record))
    fold = _fold_in_registers(join, load, store, _caster(monoid.state))
    return Cells(combine, clear, lift, lower, transfer, invert, newer_wins, ops.allocate, ops.results, fold)


def _fold_in_registers(join: Function, load: Function, store: Function, cast: Function) -> Fold:
    @compiled
    def begin(pool: Any, dst: int, src: int) -> Any:
        return load(pool, src)

    @compiled
    def add(pool: Any, dst: int, held: Any, src: int) -> Any:
        return cast(join(held, load(pool, src)))

    @compiled
    def add_both(pool: Any, dst: int, held: Any, older: int, newer: int, scratch: int) -> Any:
        return cast(join(held, cast(join(load(pool, older), load(pool, newer)))))

    @compiled
    def end(pool: Any, dst: int, held: Any) -> None:
        store(pool, dst, held)

    @compiled
    def hold(pool: Any, src: int) -> Any:
        return load(pool, src)

    @compiled
    def lead(pool: Any, dst: int, src: int, held: Any) -> Any:
        led = cast(join(load(pool, src), held))
        store(pool, dst, led)
        return led

    return Fold(begin, add, add_both, end, hold, lead)


def _caster(state: Scalar | Record) -> Function:
    """Make what gives a partial the type that it has in the pool: combine may give another, and loops take one."""
    return _number_caster(state.dtype) if isinstance(state, Scalar) else _fields_caster(state.dtypes)


def _number_caster(dtype: np.dtype[Any]) -> Function:
    number = dtype.type

    def cast(partial: Any) -> Any:
        return number(partial)

    return compiled(cast)


def _fields_caster(dtypes: tuple[np.dtype[Any], ...]) -> Function:
    cast_first = _number_caster(dtypes[0])

    def last(partial: Any) -> Any:
        return (cast_first(partial[0]),)

    if len(dtypes) == 1:
        return compiled(last)
    cast_rest = _fields_caster(dtypes[1:])

    def more(partial: Any) -> Any:
        return (cast_first(partial[0]), *cast_rest(partial[1:]))

    return compiled(more)


def _row_cells(monoid: Monoid) -> Cells:
    state = monoid.state
    assert isinstance(state, Row)
    lift_into, join = compiled(monoid.lift), compiled(monoid.combine)
    inverse, identity = compiled(monoid.invert or _no_inverse_row), monoid.identity
    lower, results = lower_row(monoid, state)

    @compiled
    def combine(pool: Any, dst: int, older: int, newer: int) -> None:
        join(pool[older], pool[newer], pool[dst])

    @compiled
    def clear(pool: Any, dst: int) -> None:
        for k in range(pool.shape[1]):
            pool[dst, k] = identity

    @compiled
    def lift_none(pool: Any, dst: int, columns: Any, i: int) -> None:
        lift_into(pool[dst])

    @compiled
    def lift_one(pool: Any, dst: int, columns: Any, i: int) -> None:
        lift_into(columns[0][i], pool[dst])

    @compiled
    def lift_two(pool: Any, dst: int, columns: Any, i: int) -> None:
        lift_into(columns[0][i], columns[1][i], pool[dst])

    @compiled
    def transfer(to_pool: Any, dst: int, from_pool: Any, src: int) -> None:
        for k in range(to_pool.shape[1]):
            to_pool[dst, k] = from_pool[src, k]

    @compiled
    def invert(pool: Any, dst: int, whole: int, older: int) -> None:
        inverse(pool[whole], pool[older], pool[dst])

    @compiled
    def newer_wins(pool: Any, older: int, newer: int) -> bool:
        return False

    lift = (lift_none, lift_one, lift_two)[monoid.n_inputs]
    fold = fold_in_place(combine, transfer, compiled)
    return Cells(combine, clear, lift, lower, transfer, invert, newer_wins, _allocator(monoid), results, fold)


def _allocator(monoid: Monoid) -> Callable[[int], Any]:
    state = monoid.state
    if isinstance(state, Scalar):
        return lambda n: _filled(n, monoid.identity, state.dtype)
    if isinstance(state, Row):
        return lambda n: _rows(n, state, monoid.identity)
    assert isinstance(state, Record)
    fields = tuple(zip(monoid.identity, state.dtypes, strict=True))
    return lambda n: tuple(_filled(n, identity, dtype) for identity, dtype in fields)


def _rows(n: int, state: Row, identity: Any) -> Any:
    """Rows that begin where a line of the caches does: a combine of two kilobytes takes 21 ns there, and else 31."""
    dtype, length = np.dtype(state.dtype), n * state.width
    flat = _filled(length + LINE // dtype.itemsize, identity, dtype)
    skipped = -flat.ctypes.data % LINE // dtype.itemsize
    return flat[skipped : skipped + length].reshape(n, state.width)


def _filled(shape: Any, identity: Any, dtype: Any) -> Any:
    """An array of identities. Memory of zeros is there when it is first written, so that a large ring costs little."""
    is_zero = not np.any(np.frombuffer(np.array(identity, dtype).tobytes(), np.uint8))
    return np.zeros(shape, dtype) if is_zero else np.full(shape, identity, dtype)


def _lift_value(monoid: Monoid) -> Function:
    lift = compiled(monoid.lift)

    def lift_none(columns: Any, i: int) -> Any:
        return lift()

    def lift_one(columns: Any, i: int) -> Any:
        return lift(columns[0][np.uintp(i)])

    def lift_two(columns: Any, i: int) -> Any:
        return lift(columns[0][np.uintp(i)], columns[1][np.uintp(i)])

    return compiled((lift_none, lift_one, lift_two)[monoid.n_inputs])


def _sameness(monoid: Monoid) -> Function:
    """Whether two partials are the same value: NaN is the same as NaN, 0.0 is not the same as -0.0."""

    def same_number(x: Any, y: Any) -> bool:
        if x == y:
            return math.copysign(1.0, x) == math.copysign(1.0, y)
        return bool(x != x and y != y)  # noqa: PLR0124 - only NaN differs from itself

    same = compiled(same_number)
    if isinstance(monoid.state, Scalar):
        return same
    assert isinstance(monoid.state, Record)
    same_fields = _same_fields(same, None)
    for _ in monoid.state.names[1:]:
        same_fields = _same_fields(same, same_fields)
    return same_fields


def _same_fields(same: Function, same_rest: Function | None) -> Function:
    def last(x: Any, y: Any) -> bool:
        return bool(same(x[0], y[0]))

    def more(x: Any, y: Any) -> bool:
        return bool(same(x[0], y[0]) and same_rest(x[1:], y[1:]))  # type: ignore[misc]

    return compiled(more if same_rest else last)


def _no_inverse(whole: Any, older: Any) -> Any:
    return whole


def _no_inverse_row(whole: Any, older: Any, out: Any) -> None:
    pass


def counting_nulls(cells: Cells, *, answers_empty: bool) -> Cells:
    """Compiled cells whose rows may be null: columns are (valid, columns), pools (counts, pool).

    A window without a valid row answers null, unless the aggregate has an answer for no rows.
    """
    (join, clear_inner, lift_inner, lower_inner, transfer_inner, invert_inner, wins) = cells[:7]

    @compiled
    def combine(pool: Any, dst: int, older: int, newer: int) -> None:
        pool[0][np.uintp(dst)] = pool[0][np.uintp(older)] + pool[0][np.uintp(newer)]
        join(pool[1], dst, older, newer)

    @compiled
    def clear(pool: Any, dst: int) -> None:
        pool[0][np.uintp(dst)] = 0
        clear_inner(pool[1], dst)

    @compiled
    def lift(pool: Any, dst: int, columns: Any, i: int) -> None:
        if columns[0][np.uintp(i)]:
            pool[0][np.uintp(dst)] = 1
            lift_inner(pool[1], dst, columns[1], i)
        else:
            clear(pool, dst)

    @compiled
    def lower(results: Any, i: int, pool: Any, src: int) -> None:
        if answers_empty or pool[0][np.uintp(src)] > 0:
            lower_inner(results, i, pool[1], src)
        else:
            results[1][np.uintp(i)] = False

    @compiled
    def transfer(to_pool: Any, dst: int, from_pool: Any, src: int) -> None:
        to_pool[0][np.uintp(dst)] = from_pool[0][np.uintp(src)]
        transfer_inner(to_pool[1], dst, from_pool[1], src)

    @compiled
    def invert(pool: Any, dst: int, whole: int, older: int) -> None:
        pool[0][np.uintp(dst)] = pool[0][np.uintp(whole)] - pool[0][np.uintp(older)]
        invert_inner(pool[1], dst, whole, older)

    @compiled
    def newer_wins(pool: Any, older: int, newer: int) -> bool:
        if pool[0][np.uintp(older)] == 0:
            return True
        return bool(pool[0][np.uintp(newer)] > 0 and wins(pool[1], older, newer))

    def results(n: int) -> Any:
        return cells.results(n)[0], np.ones(n, np.bool_)

    def allocate(n: int) -> Any:
        return np.zeros(n, np.int64), cells.allocate(n)

    fold = _fold_counting(cells.fold)
    return Cells(combine, clear, lift, lower, transfer, invert, newer_wins, allocate, results, fold)


def _fold_counting(inner: Fold) -> Fold:
    begin_inner, add_inner, add_both_inner, end_inner, hold_inner, lead_inner = inner

    @compiled
    def begin(pool: Any, dst: int, src: int) -> Any:
        return pool[0][np.uintp(src)], begin_inner(pool[1], dst, src)

    @compiled
    def add(pool: Any, dst: int, held: Any, src: int) -> Any:
        return held[0] + pool[0][np.uintp(src)], add_inner(pool[1], dst, held[1], src)

    @compiled
    def add_both(pool: Any, dst: int, held: Any, older: int, newer: int, scratch: int) -> Any:
        count = held[0] + pool[0][np.uintp(older)] + pool[0][np.uintp(newer)]
        return count, add_both_inner(pool[1], dst, held[1], older, newer, scratch)

    @compiled
    def end(pool: Any, dst: int, held: Any) -> None:
        pool[0][np.uintp(dst)] = held[0]
        end_inner(pool[1], dst, held[1])

    @compiled
    def hold(pool: Any, src: int) -> Any:
        return pool[0][np.uintp(src)], hold_inner(pool[1], src)

    @compiled
    def lead(pool: Any, dst: int, src: int, held: Any) -> Any:
        count = pool[0][np.uintp(src)] + held[0]
        pool[0][np.uintp(dst)] = count
        return count, lead_inner(pool[1], dst, src, held[1])

    return Fold(begin, add, add_both, end, hold, lead)
