"""What `check_laws` found: which laws were tried, and the smallest rows that break one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sash.algebra.laws.sampling import Run
from sash.errors import DeclarationError

NAMES = "xyz"
WIDEST = 160  # characters of a value


@dataclass(frozen=True)
class Failure:
    """A law that does not hold, and the simplest rows found that show it."""

    law: str  # "L1"
    name: str  # "associativity"
    claim: str  # "(x + y) + z == x + (y + z)"
    rows: tuple[Run, ...] = ()  # of x, y and z: a run of rows each, a tuple of values for a row
    left: Any = None  # what the left side of the claim was
    right: Any = None
    error: Exception | None = None  # raised instead of giving a side
    call: str = ""  # what raised it
    hint: str = ""

    def __str__(self) -> str:
        lines = [("with", ", ".join(self._given()))] if self.rows else []
        if self.error is not None:
            lines.append((self.call, f"raised {type(self.error).__name__}: {self.error}"))
        else:
            sides = self.claim.split(" == ")
            lines += zip(sides, (f"is {shown(self.left)}", f"is {shown(self.right)}"), strict=True)
        if self.hint:
            lines.append(("hint", self.hint))
        width = max(len(label) for label, _ in lines)
        told = "\n".join(f"    {label.ljust(width)}  {text}" for label, text in lines)
        return f"{self.law} {self.name} is broken: {self.claim}\n{told}"

    def _given(self) -> list[str]:
        return [f"{name} = {shown_run(run)}" for name, run in zip(NAMES, self.rows, strict=False)]


@dataclass(frozen=True)
class LawReport:
    """Whether an aggregate keeps its laws; true if it does."""

    aggregate: str
    laws: tuple[str, ...]  # those that were tried, as in "L1 associativity"
    failures: tuple[Failure, ...]
    n_samples: int
    n_checks: int

    @property
    def ok(self) -> bool:
        """Whether every law held wherever it was tried."""
        return not self.failures

    def __bool__(self) -> bool:
        return self.ok

    def __str__(self) -> str:
        tried = f"{self.n_checks} checks on {self.n_samples} sample{'s' * (self.n_samples != 1)}"
        if self.ok:
            return f"{self.aggregate} keeps its laws: {', '.join(self.laws)} ({tried})"
        broken = ", ".join(failure.law for failure in self.failures)
        return "\n\n".join([f"{self.aggregate} breaks {broken} ({tried})", *map(str, self.failures)])

    def raise_if_broken(self) -> None:
        """Raise DeclarationError with the whole report unless every law held."""
        if not self.ok:
            raise DeclarationError(str(self))


def shown(value: Any) -> str:
    """Write a value, cut to a readable length."""
    text = " ".join(repr(value).split())
    return text if len(text) <= WIDEST else f"{text[:WIDEST]}..."


def shown_run(run: Run) -> str:
    """Write a run of rows: a lone row as it is, several as a list."""
    rows = [row[0] if len(row) == 1 else row for row in run]
    return shown(rows[0] if len(rows) == 1 else rows)
