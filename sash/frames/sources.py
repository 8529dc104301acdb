"""What the answering of a spec asks of a table, whatever its kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Answer(NamedTuple):
    """A column of answers."""

    array: Any  # Arrow
    like: str | None = None  # a column of the input whose values these are
    reads: str | None = None  # a column of the input it was computed from
    is_nullable: bool = True


class Table(ABC):
    """A table that columns are read from and answers are added to."""

    def __init__(self, table: Any) -> None:
        self.table = table

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """The names of the columns."""

    @property
    @abstractmethod
    def n_rows(self) -> int:
        """How many rows there are."""

    @abstractmethod
    def array(self, name: str) -> Any:
        """A column as an Arrow array, chunked or not."""

    @abstractmethod
    def take(self, rows: Any) -> Table:
        """Some rows, by their numbers."""

    @abstractmethod
    def with_columns(self, answers: Mapping[str, Answer]) -> Any:
        """The table the user gets: this one with answers added."""

    @abstractmethod
    def new(self, names: Sequence[str], rows: Any, answers: Mapping[str, Answer]) -> Any:
        """A table of its own: some columns at some rows, and answers beside them."""
