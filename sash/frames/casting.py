"""Answers in the types that were announced for them, before any row had come."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from sash.errors import DataError


def as_type(name: str, array: Any, types: Mapping[str, Any]) -> Any:
    """Answers in the type that was announced for them."""
    wanted = types.get(name)
    if wanted is None or array.type == wanted:
        return array
    if array.null_count == len(array):  # of no answer at all the type is anybody's guess
        return pa.nulls(len(array), wanted)
    try:
        return array.cast(wanted)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        raise DataError(
            f"{name!r} was announced to Spark as {wanted}, but some answers are {array.type}: {error}. Let the "
            "aggregate give answers of one type"
        ) from error
