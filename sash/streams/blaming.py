"""When an aggregate raises: which one, and at which row."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sash.errors import DataError, SashError
from sash.frames.extents import show_aggregate

if TYPE_CHECKING:
    from sash.streams.plans import Plan


def naming_rows(plan: Plan, rows: Any, answer: Callable[[Any, Any], Any]) -> Any:
    """Let specs answer over sorted rows, `answer(specs, rows)`; an error of a function of the user's names the row."""
    try:
        return answer(plan.numbered, rows)
    except SashError:
        raise
    except Exception as error:
        raise _blame(plan, rows, answer, error) from error


def _blame(plan: Plan, rows: Any, answer: Callable[[Any, Any], Any], error: Exception) -> DataError:
    place = _first_failing(rows.num_rows, lambda n: _fails(answer, plan.numbered, rows.slice(0, n)))
    row = rows.slice(place - 1, 1).to_pylist()[0]
    where = ", ".join(f"{name}={row[name]!r}" for name in (*plan.window.by, *plan.window.order_by))
    own = [f"{name}={show_aggregate(each)}" for spec in plan.specs for name, each in spec.aggregates]
    return DataError(f"{type(error).__name__}: {error}, in one of {', '.join(own)}, at the row {where}: {row}")


def _first_failing(n: int, fails: Callable[[int], bool]) -> int:
    """The smallest number of rows that fail, all n of them being known to."""
    good, bad = 0, n
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (good, middle) if fails(middle) else (middle, bad)
    return bad


def _fails(answer: Callable[[Any, Any], Any], specs: Any, rows: Any) -> bool:
    try:
        answer(specs, rows)
    except Exception:  # noqa: BLE001 - whatever a function of the user's raises
        return True
    return False
