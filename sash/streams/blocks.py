"""Rows as bytes, and back: Arrow's. Those of a block have no schema, which the plan knows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from sash.errors import FormatError
from sash.frames.buffers import single


def write_table(table: Any) -> bytes:
    """Write a table with its schema, for whoever does not know it."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def read_table(data: Any) -> Any:
    """Read what `write_table` wrote."""
    return pa.ipc.open_stream(data).read_all()


def write_rows(table: Any) -> bytes:
    """Write the rows of a table, or of a slice of one."""
    data: bytes = one_batch(table).serialize().to_pybytes()
    return data


def one_batch(table: Any) -> Any:
    """A table in one piece."""
    return pa.RecordBatch.from_arrays([single(column) for column in table.columns], schema=table.schema)


def read_rows(data: Any, schema: Any, offset: int = 0) -> Any:
    """Read rows that were written with this schema."""
    try:
        return pa.ipc.read_record_batch(pa.py_buffer(data).slice(offset), schema)
    except (pa.ArrowException, OSError, EOFError) as error:
        raise FormatError(f"a block of the state of a stream is damaged, or of another version: {error}") from error
