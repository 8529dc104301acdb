"""How a stream answers, as declared. Batch does not look at it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from sash.errors import DeclarationError
from sash.frames.extents import require_choice, require_rows
from sash.windows.durations import Duration, read_length

EMIT = ("final", "eager", "revise")
LATE = ("drop", "raise", "aside")
NO_TIME, DAY = Duration(0), Duration(86_400_000_000_000)


@dataclass(frozen=True, repr=False)
class Streaming:
    """The options of `stream(...)`, with their defaults."""

    emit: str = "final"
    lateness: Duration = NO_TIME
    late: str = "drop"
    future: Duration | None = DAY
    idle: Duration | None = None
    changes: str | None = None
    shards: int = 8

    def __repr__(self) -> str:
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        shown = [f"{name}={value!r}" for name, value in given.items() if value != getattr(AS_BY_DEFAULT, name)]
        return f"stream({', '.join(shown)})"


AS_BY_DEFAULT = Streaming()


def read_streaming(emit: Any, lateness: Any, late: Any, others: dict[str, Any]) -> Streaming:
    """Check the options of a stream."""
    require_choice("emit", emit, EMIT)
    require_choice("late", late, LATE)
    future, idle = others.get("future", Streaming.future), others.get("idle")
    changes, shards = others.get("changes"), others.get("shards", Streaming.shards)
    if changes is not None and not isinstance(changes, str):
        raise DeclarationError(f"changes names the column that says what a row does, got {changes!r}")
    if changes is not None and emit != "revise":
        raise DeclarationError(
            f"changes={changes!r} takes back answers that were given out, which only emit='revise' can say; "
            f"this is emit={emit!r}"
        )
    return Streaming(
        emit,
        _time(lateness, "lateness"),
        late,
        None if future is None else _time(future, "future"),
        None if idle is None else _time(idle, "idle"),
        changes,
        require_rows("shards", shards),
    )


def _time(given: Any, name: str) -> Duration:
    length = read_length(given, name, zero=True)
    if not isinstance(length, Duration):
        raise DeclarationError(f"{name} needs a unit, as in '10 minutes', got {given!r}")
    return length
