"""Rows in the order they arrived: a window at every row, as of what had arrived by then.

    as_of     the window of a row ends at
    newest    the newest time that has arrived, of its key: a late row changes it only if it falls into it
    row       the row's own time, however late it is

One pass of a finger B-tree. What is kept is what this row or a later one still asks for: all columns are at hand, so
that is known, and neither a bound on lateness nor a memory of everything is needed. Rows of equal time
are combined in the order they arrived. Keys are taken one after the other, through the same tree.

Times may be infinite. Rows of the same infinite time have age 0, all others are infinitely old beside them:
within an infinite span if its older end is closed, and not if it is open.

Cost in calls of combine, for a row d places late: O(log d) to insert it; 2 for an answer as of the newest
time or in order, O(log n) for others, and for each further span. Memory: that of the largest window; with
as_of="row" also of as much of the past as the latest row to come reaches back to.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from sash.aggregators.fiba.keys import FLOAT, INTEGER
from sash.aggregators.fiba.layout import ANSWER, ARITY, LEFT_FINGER, RIGHT_FINGER, Tree, nodes_of
from sash.algebra.monoid import Function
from sash.compiling.jit import entry, interpreted, is_enabled
from sash.engine.sharing import Bounds, Instants, bounds_of, instants_of, may_be_empty, require_closed
from sash.engine.tasks import Kind, Task, answers_for, columns_for, cut_results, kind_of, narrowed, nothing
from sash.engine.timed import MIN_ARITY
from sash.engine.trees import Trees, Wanted, build_trees, grown, new_tree
from sash.errors import DataError, DeclarationError, UnsupportedError

AS_OF = ("newest", "row")
N_NODES = 64  # room to begin with


class Disorder(NamedTuple):
    """What is asked of rows that are not in order."""

    times: Any
    span: Any
    closed: str = "both"
    ties: str = "peers"
    as_of: str = "newest"
    keys: Any = None
    algorithm: str | None = None


class Arrivals(NamedTuple):
    """The rows in the order they are taken: key by key, in order of arrival within each."""

    order: Any  # the row that is taken
    is_first: Any  # whether it is the first one of its key
    times: Any
    needed: Any  # the oldest time that this row, or a later one of its key, asks for


def slide_disordered(tasks: Sequence[Task], wanted: Disorder) -> list[list[Any]]:
    """The answers of each task, for each span."""
    instants = _checked(wanted, len(wanted.times))
    if len(instants.times) == 0:
        return [[nothing(task) for task in tasks] for _ in instants.spans]
    tasks = [narrowed(task, len(instants.times)) for task in tasks]
    kind = kind_of(tasks, may_be_empty=may_be_empty(instants.spans, wanted.closed))
    arrivals, bounds = _arrivals(instants, wanted)
    results = _driven(tasks, kind, arrivals, bounds)
    n = len(instants.times)
    return [answers_for(tasks, cut_results(results, k * n, (k + 1) * n)) for k in range(len(instants.spans))]


def _checked(wanted: Disorder, n: int) -> Instants:
    require_closed(wanted.closed)
    if wanted.as_of not in AS_OF:
        raise DeclarationError(f"as_of must be one of {', '.join(AS_OF)}, got {wanted.as_of!r}")
    if wanted.ties != "peers":
        raise DeclarationError(
            f"ties={wanted.ties!r} is for rows in order: as of its arrival, no row after this one is there yet"
        )
    if wanted.algorithm not in (None, "fiba"):
        raise UnsupportedError(f"{wanted.algorithm} cannot take rows in any order over whole columns; fiba can")
    if wanted.keys is not None and len(wanted.keys) != n:
        raise DataError(f"there are {n} times but {len(wanted.keys)} keys")
    return instants_of(wanted.times, wanted.span)


def _arrivals(instants: Instants, wanted: Disorder) -> tuple[Arrivals, Bounds]:
    order, is_first = _grouped(wanted.keys, len(instants.times))
    times = instants.times if wanted.keys is None else instants.times[order]
    passes = _passes(is_enabled())
    now = passes.newest(times, is_first, np.empty_like(times)) if wanted.as_of == "newest" else times
    bounds = bounds_of(now, instants.spans, wanted.closed)
    if wanted.closed in ("right", "none"):
        _leave_out_the_infinitely_old(bounds, now, instants.spans)
    needed = passes.needed(bounds.firsts.min(axis=0), is_first)
    return Arrivals(order, is_first, times, needed), bounds


def _leave_out_the_infinitely_old(bounds: Bounds, now: Any, spans: list[Any]) -> None:
    """Begin a window that ends at infinity there: what else there is is as old as an infinite span is long."""
    for firsts, span in zip(bounds.firsts, spans, strict=True):
        if span == np.inf:
            firsts[now == np.inf] = np.inf


def _grouped(keys: Any, n: int) -> tuple[Any, Any]:
    """The rows key by key, and which of them begin a key."""
    is_first = np.zeros(n, np.bool_)
    is_first[:1] = True
    if keys is None:
        return np.arange(n), is_first
    numbers = _numbered(keys)
    order = np.argsort(numbers, kind="stable")
    is_first[1:] = numbers[order[1:]] != numbers[order[:-1]]
    return order, is_first


def _numbered(keys: Any) -> Any:
    """Keys as integers: themselves, or their place among all different ones."""
    kinds = {type(key) for key in keys} if isinstance(keys, (list, tuple)) else set()
    if len(kinds) <= 1 and kinds <= {bool, int, float, str}:  # else an array would make them one type, or a matrix
        column = np.asarray(keys)
        if column.dtype.kind in "biu" and column.ndim == 1:
            return column
        if column.dtype.kind in "fmMUS" and column.ndim == 1:
            return np.unique(column, return_inverse=True)[1]
    places: dict[Any, int] = {}
    return np.array([places.setdefault(key, len(places)) for key in keys], np.int64)


class Passes(NamedTuple):
    """What is known of every row before any is aggregated."""

    newest: Function  # (times, is_first, out) -> out: the newest time of its key so far
    needed: Function  # (firsts, is_first) -> firsts: the oldest of its key from here on


@lru_cache(maxsize=2)
def _passes(is_compiled: bool) -> Passes:
    def newest(times: Any, is_first: Any, out: Any) -> Any:
        for i in range(len(times)):
            out[i] = times[i] if is_first[i] or times[i] > out[i - 1] else out[i - 1]
        return out

    def needed(firsts: Any, is_first: Any) -> Any:
        for i in range(len(firsts) - 2, -1, -1):
            if not is_first[i + 1] and firsts[i + 1] < firsts[i]:
                firsts[i] = firsts[i + 1]
        return firsts

    jit = entry if is_compiled else interpreted
    return Passes(jit(newest), jit(needed))


def _driven(tasks: Sequence[Task], kind: Kind, arrivals: Arrivals, bounds: Bounds) -> Any:
    key_kind = INTEGER if arrivals.times.dtype.kind == "i" else FLOAT
    wanted = Wanted("fiba", kind.monoids, kind.is_compiled, key_kind, MIN_ARITY, kind.has_nulls)
    trees = build_trees(wanted)
    n_spans, n = bounds.firsts.shape
    columns = columns_for(tasks, n, kind)
    if not kind.is_compiled:
        arrivals = Arrivals(*(each.tolist() for each in arrivals))
        bounds = Bounds(*(each.tolist() for each in bounds))
    results, drive = trees.cells.results(n_spans * n), _driver(wanted)
    tree, done = new_tree(trees, N_NODES, N_NODES), 0
    while True:
        done = drive(tree, arrivals, bounds, columns, done, results)
        if done == n:
            return results
        tree = grown(trees, tree)


@lru_cache(maxsize=256)
def _driver(wanted: Wanted) -> Function:
    """Make drive(tree, arrivals, bounds, columns, begin, results) -> where room ended, or the number of rows.

    The answers of the spans follow one another. Beginning again where room ended does no harm.
    """
    trees = build_trees(wanted)
    insert, lower, forget, answer = trees.inner.insert, trees.cells.lower, _forgetter(trees), _answerer(trees)

    def drive_arrivals(s: Tree, arrivals: Arrivals, bounds: Bounds, columns: Any, begin: int, results: Any) -> int:
        n = len(arrivals.order)
        for i in range(begin, n):
            row, time, needed = arrivals.order[i], arrivals.times[i], arrivals.needed[i]
            forget(s, needed, arrivals.is_first[i])
            if not time < needed and not insert(s, time, columns, row):
                return i
            for k in range(len(bounds.firsts)):
                lower(results, k * n + row, s.pool, answer(s, bounds.firsts[k][i], bounds.lasts[k][i]))
        return n

    return (entry if wanted.is_compiled else interpreted)(drive_arrivals)


def _forgetter(trees: Trees) -> Function:
    evict, kit, nodes = trees.inner.evict, trees.kit, nodes_of(trees.kit)
    get, first, less = nodes.get, nodes.first, kit.keys.less

    def forget(s: Tree, needed: Any, everything: bool) -> None:
        """Evict what is older than anything needed, or everything.

        One by one: a bulk eviction would save little, as every row is evicted once, and takes seconds to compile.
        """
        while get(s.links, s.at[LEFT_FINGER], ARITY) > 1:
            oldest = first(s, s.at[LEFT_FINGER])
            if not everything and not less(oldest, needed):
                return
            evict(s, oldest)

    return trees.kit.jit(forget)


def _answerer(trees: Trees) -> Function:
    query, query_range, clear, less = trees.inner.query, trees.inner.query_range, trees.cells.clear, trees.keys.less
    nodes = nodes_of(trees.kit)
    get, oldest, youngest = nodes.get, nodes.first, nodes.last

    def answer(s: Tree, first: Any, last: Any) -> int:
        """The window from first to last: nothing, everything in three cells, or a range."""
        left, right = s.at[LEFT_FINGER], s.at[RIGHT_FINGER]
        if less(last, first) or get(s.links, left, ARITY) == 1:
            clear(s.pool, ANSWER)
            return ANSWER
        if less(oldest(s, left), first) or less(last, youngest(s, right)):
            return query_range(s, first, last)  # type: ignore[no-any-return]
        return query(s)  # type: ignore[no-any-return]

    return trees.kit.jit(answer)
