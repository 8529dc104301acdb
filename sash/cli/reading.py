"""Tables of a TOML file, read key by key; whatever is wrong is told with its line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from sash.cli import lines
from sash.cli.exits import PipelineError
from sash.errors import SashError, UnknownNameError

T = TypeVar("T")

KINDS: dict[str, tuple[type, ...]] = {
    "a text": (str,),
    "a whole number": (int,),
    "true or false": (bool,),
    "a table": (dict,),
    "a text or a number": (str, int, float),
    "a text or a list of texts": (str, list),
}


class File:
    """A TOML file: where it is, and on which line what stands."""

    def __init__(self, path: Path, text: str) -> None:
        self.path, self.places = path, lines.lines_of(text)

    def wrong(self, where: lines.Path, text: str) -> PipelineError:
        """An error at a key."""
        return PipelineError(self.path, lines.line_of(self.places, where), text)


class Table:
    """A table being read; `close` complains of what nobody asked for."""

    def __init__(self, file: File, values: dict[str, Any], where: lines.Path = ()) -> None:
        self.file, self.values, self.where = file, values, where
        self._asked: list[str] = []

    def take(self, key: str, kind: str, default: Any = None) -> Any:
        """The value of a key, which must be of a kind."""
        self._asked.append(key)
        if key not in self.values:
            return default
        value = self.values[key]
        if not isinstance(value, KINDS[kind]) or (isinstance(value, bool) and bool not in KINDS[kind]):
            self.fail(key, f"{self.name(key)} is {value!r}, wanted {kind}")
        if isinstance(value, list) and not all(isinstance(each, str) for each in value):
            self.fail(key, f"{self.name(key)} is {value!r}, wanted {kind}")
        return value

    def need(self, key: str, kind: str, example: str) -> Any:
        """The value of a key that must be there."""
        value = self.take(key, kind)
        if value is None:
            self.fail("", f"{self.name(key)} is missing; write {key} = {example}")
        return value

    def choose(self, key: str, among: Iterable[str], default: str) -> str:
        """A text that is one of a few."""
        value: str = self.take(key, "a text", default)
        known = list(among)
        if value not in known:
            self.fail(key, f"{self.name(key)}: {UnknownNameError.among('choice', value, known)}")
        return value

    def table(self, key: str) -> Table | None:
        """A table within."""
        values = self.take(key, "a table")
        return None if values is None else Table(self.file, values, (*self.where, key))

    def within(self, key: str, make: Callable[[], T]) -> T:
        """Make something of the value of a key; what it finds wrong is told with the line of the key."""
        try:
            return make()
        except PipelineError:
            raise
        except (SashError, ValueError, TypeError) as error:
            self.fail(key, f"{self.name(key)}: {error}")

    def fail(self, key: str, text: str) -> NoReturn:
        """Complain at a key, or at the table itself."""
        raise self.file.wrong((*self.where, key) if key else self.where, text)

    def name(self, key: str) -> str:
        """A key as one writes it."""
        return ".".join((*self.where, key))

    def close(self) -> None:
        """Nothing may be left that nobody asked for."""
        self.require_known(self._asked)

    def require_known(self, known: Iterable[str]) -> None:
        """Complain of the first key that is not among those known."""
        known = list(known)
        for key in self.values:
            if key not in known:
                where = f"[{'.'.join(self.where)}]" if self.where else "the file"
                self.fail(key, f"in {where}: {UnknownNameError.among('key', key, known)}")
