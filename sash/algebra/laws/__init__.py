"""Does an aggregate keep the laws every algorithm relies upon? `sash.check_laws` finds out."""

from __future__ import annotations

from sash.algebra.laws.checking import check_laws
from sash.algebra.laws.report import Failure, LawReport

__all__ = ["Failure", "LawReport", "check_laws"]
