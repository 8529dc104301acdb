"""Specs on their way from the driver to the workers of Spark.

Sash's own aggregates travel by name, and are made anew where they arrive: so all tasks of a worker share one
monoid, and with it the machine code that is loaded already. The user's travel by value, as Spark ships functions.
A worker reads the same bytes once, however many tasks it gets.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle

import sash
from sash.algebra.aggregate import Aggregate
from sash.algebra.declaring import agg
from sash.errors import DeclarationError
from sash.frames.extents import show_aggregate
from sash.spark.workers import end_task

if TYPE_CHECKING:
    from sash.frames.spec import Spec


class _Packer(cloudpickle.Pickler):  # type: ignore[misc]
    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, Aggregate) and getattr(value.binder, "__module__", "") != agg.__module__:
            return declared, (value.name, value.columns, value.options, value.condition)
        return super().reducer_override(value)


def declared(name: str, columns: tuple[str, ...], options: Any, condition: str | None) -> Aggregate:
    """Declare an aggregate of Sash's own once more."""
    aggregate: Aggregate = getattr(sash, name)(*columns, **dict(options))
    return aggregate if condition is None else aggregate.where(condition)


def pack(specs: Sequence[Spec]) -> bytes:
    """Specs as bytes, for a worker of the same program alone."""
    try:
        return _packed(tuple(specs))
    except Exception as error:  # what pickling may raise is anything
        raise DeclarationError(_reason(specs, error)) from error


def _packed(value: Any) -> bytes:
    with io.BytesIO() as file:
        _Packer(file).dump(value)
        return file.getvalue()


def _reason(specs: Sequence[Spec], error: Exception) -> str:
    """Which aggregate cannot be sent, and what to do."""
    for name, aggregate in (each for spec in specs for each in spec.aggregates):
        try:
            _packed(aggregate)
        except Exception as cause:  # noqa: BLE001 - see above
            return (
                f"{name}={show_aggregate(aggregate)} cannot be sent to Spark's workers: {cause}. Its functions may use "
                "numbers, texts and modules, but no open files, connections, locks or sessions"
            )
    return f"this spec cannot be sent to Spark's workers: {error}"


@lru_cache(maxsize=64)
def unpack(data: bytes) -> tuple[Spec, ...]:
    """Read what `pack` wrote; the same objects for the same bytes."""
    specs: tuple[Spec, ...] = cloudpickle.loads(data)
    return specs


def task(begin: Callable[[], Any]) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """What a task does with the batches of its partition."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        answering = begin()
        for batch in batches:
            if batch.num_rows:
                yield from answering.push(batch)
        yield from answering.finish()
        end_task()

    return run
