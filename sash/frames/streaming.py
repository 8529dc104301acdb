"""How a stream answers, as declared. Batch does not look at it."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from sash.errors import DeclarationError, UnknownNameError
from sash.frames.extents import require_choice, require_rows
from sash.stores import urls
from sash.stores.opening import SCHEMES
from sash.windows.durations import Duration, read_length

EMIT = ("final", "eager", "revise")
LATE = ("drop", "raise", "aside")
FAILING = ("raise", "drop", "aside")
IN_FILES = ("lmdb", "sqlite")  # kinds of store
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
    state: str | None = None  # the address of a store, which may have a password in it
    failing: str = "raise"
    checkpoint: str | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        given = {each.name: getattr(self, each.name) for each in fields(self) if each.compare}
        given["state"] = None if self.state is None else shown(self.state)
        told = [f"{name}={value!r}" for name, value in given.items() if value != getattr(AS_BY_DEFAULT, name)]
        return f"stream({', '.join(told)})"


AS_BY_DEFAULT = Streaming()


def read_streaming(emit: Any, lateness: Any, late: Any, others: dict[str, Any]) -> Streaming:
    """Check the options of a stream."""
    require_choice("emit", emit, EMIT)
    require_choice("late", late, LATE)
    future, idle = others.get("future", Streaming.future), others.get("idle")
    changes, shards = others.get("changes"), others.get("shards", Streaming.shards)
    failing, checkpoint = others.get("failing", Streaming.failing), others.get("checkpoint")
    require_choice("failing", failing, FAILING)
    if checkpoint is not None and not isinstance(checkpoint, str):
        raise DeclarationError(f"checkpoint is the path of the query's checkpoint, got {checkpoint!r}")
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
        _read_state(others.get("state")),
        failing,
        checkpoint,
    )


def _read_state(given: Any) -> str | None:
    """Check the address of a store, as far as it can be without opening it."""
    if given is None:
        return None
    if not isinstance(given, str):
        raise DeclarationError(f"state is the address of a store, got a {type(given).__name__}")
    scheme = given.partition(":")[0].lower()
    if scheme not in SCHEMES and scheme.isidentifier():
        raise UnknownNameError.among("kind of store", scheme, SCHEMES)
    if scheme not in SCHEMES or scheme == "memory":
        raise DeclarationError(
            "state is the address of a store that all workers can open, as in state='redis://host:6379/0' or "
            "'lmdb:///absolute/path'"
        )
    parsed = urls.parse(given)
    if scheme in IN_FILES and not parsed.file_path().startswith("/"):
        raise DeclarationError(f"state={shown(given)!r}: workers run elsewhere, so the path has to be absolute")
    return given


def shown(address: str) -> str:
    """The address of a store without what may be secret: the password, and options."""
    parsed = urls.parse(address)
    user = "" if parsed.user is None else f"{parsed.user}@"
    port = "" if parsed.port is None else f":{parsed.port}"
    return f"{parsed.scheme}://{user}{parsed.host or ''}{port}{parsed.path}"


def _time(given: Any, name: str) -> Duration:
    length = read_length(given, name, zero=True)
    if not isinstance(length, Duration):
        raise DeclarationError(f"{name} needs a unit, as in '10 minutes', got {given!r}")
    return length
