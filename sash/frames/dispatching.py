"""Which reader for which table. Tables are told by the module of their class, so that nothing is imported in vain.

Arrow is the common form: a reader turns the columns that are read into Arrow arrays and the answers into
columns of its own kind. A Spark table goes to sash.spark, which is a layer above and is only found by its name.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sash.errors import DataError, UnsupportedError

if TYPE_CHECKING:
    from sash.frames.spec import Spec

READERS = {  # (package, class): module with a class of the name Source
    ("pandas", "DataFrame"): "sash.frames.pandas_tables",
    ("polars", "DataFrame"): "sash.frames.polars_tables",
    ("pyarrow", "Table"): "sash.frames.arrow_tables",
    ("pyarrow", "RecordBatch"): "sash.frames.arrow_tables",
}
REMEDIES = {
    ("pandas", "Series"): "is a single column. Pass the DataFrame",
    ("polars", "Series"): "is a single column. Pass the DataFrame",
    ("polars", "LazyFrame"): "has no rows yet. Call spec(frame.collect())",
    ("pandas", "DataFrameGroupBy"): "is grouped already. Pass the DataFrame, and say by=... in sash.window",
}


def answer_table(specs: tuple[Spec, ...], table: Any) -> Any:
    """Answer specs over a table of any known kind."""
    if is_spark(table):
        return spark().answer(specs, table)
    return load("sash.frames.answering").answer(specs, source_of(table))


def answer_seeded(specs: tuple[Spec, ...], table: Any, history: Any) -> Any:
    """Answer specs over a stream whose windows begin with rows of history."""
    if not is_spark(table):
        raise DataError(f"seed(...) is for a Spark stream, but this is a {type(table).__name__}. Put both into one")
    return spark().seeded(specs, table, history)


def answer_columns(specs: tuple[Spec, ...], given: Mapping[str, Any] | None, arrays: Mapping[str, Any]) -> Any:
    """Answer specs over named arrays."""
    if given is not None and not isinstance(given, Mapping):
        raise DataError(f"columns(...) takes arrays by name, as in columns(ts=ts, x=x), got {type(given).__name__}")
    columns = {**(given or {}), **arrays}
    if not columns:
        raise DataError("columns() got no columns. Pass arrays by name, as in columns(ts=ts, x=x)")
    return load("sash.frames.answering").answer(specs, load("sash.frames.arrays").Source(columns))


def source_of(table: Any) -> Any:
    """Find the reader of a table."""
    classes = _classes(table)
    for each in classes:
        if each in READERS:
            return load(READERS[each]).Source(table)
    if isinstance(table, Mapping):
        raise DataError("a dict of columns is no table. Call spec.columns(...) with it, or make a DataFrame of it")
    for each in classes:
        if each in REMEDIES:
            raise DataError(f"a {each[0]} {each[1]} {REMEDIES[each]}")
    if hasattr(table, "__arrow_c_stream__"):
        return load("sash.frames.arrow_tables").Source.of_stream(table)
    raise DataError(
        f"cannot read a table from {type(table).__module__}.{type(table).__qualname__}. Pass a pandas or Polars "
        "DataFrame, a pyarrow Table, or arrays by spec.columns(...)"
    )


def _classes(table: Any) -> list[tuple[str, str]]:
    return [(each.__module__.split(".")[0], each.__name__) for each in type(table).__mro__]


def load(module: str) -> Any:
    """Import a module that needs pyarrow, or say how to get it."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or str(error)).split(".")[0] == "pyarrow":
            raise UnsupportedError(
                "tables and spec.columns need the pyarrow package, which is missing. "
                "Install it with: pip install 'sash[arrow]'. Plain arrays go without it through sash.slide"
            ) from error
        raise


def is_spark(table: Any) -> bool:
    """Whether it is a Spark table, be it through Spark Connect."""
    return "pyspark" in {package for package, _ in _classes(table)}


def spark() -> Any:
    """The layer for Spark tables, which is above this one."""
    try:
        return importlib.import_module("sash.spark")
    except ModuleNotFoundError as error:
        raise UnsupportedError(
            f"Spark tables need a package that is missing: {error}. Install it with: pip install 'sash[spark]'"
        ) from error
