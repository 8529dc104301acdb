"""Aggregates in words: "count()", "mean(delay)", "quantile(delay, q=0.95)", "rides:LongestRun(minutes)".

Names in brackets are columns; a name that is no word is quoted, as in mean('the delay'). Options are given by
name. Nothing is evaluated: the text is parsed, and only calls of known names with names and literals are taken.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sash
from sash.algebra.aggregate import Aggregate
from sash.algebra.declaring import MONOID, SPARK_PARTS, agg
from sash.cli.naming import find
from sash.errors import DeclarationError, UnknownNameError

WANTED = 'a text such as "count()", "mean(delay)", "quantile(delay, q=0.95)" or "module:Name(delay)"'
FORM = re.compile(r"^\s*([A-Za-z_][\w.]*(?::[A-Za-z_]\w*)?)\s*(\(.*\))\s*(?:where\s+(\w+)\s*)?$", re.DOTALL)
BUILT_IN = (
    "all", "any", "argmax", "argmin", "bit_and", "bit_or", "bit_xor", "bloom", "collect", "concat", "corr", "count",
    "count_min", "cov", "distinct", "first", "geomean", "histogram", "hyperloglog", "kll", "last",
    "longest_increasing_run", "m4", "max", "max_count", "mean", "median", "min", "min_count", "mode", "moment_sketch",
    "nth_youngest", "product", "quantile", "range", "std", "sum", "tdigest", "theta", "top_k", "trend", "var",
)  # fmt: skip


def read_aggregate(text: Any, beside: Path) -> Aggregate:
    """Read an aggregate; `beside` is where modules of the user's own may lie."""
    said = FORM.match(text) if isinstance(text, str) else None
    if said is None:
        raise DeclarationError(f"{text!r} is no aggregate; wanted {WANTED}")
    columns, options = _arguments(text, said[2])
    made = _maker(said[1], beside)
    try:
        aggregate: Aggregate = made(*columns, **options)
    except TypeError as error:
        raise DeclarationError(f"{text!r}: {error}") from error
    return aggregate if said[3] is None else aggregate.where(said[3])


def _maker(name: str, beside: Path) -> Callable[..., Aggregate]:
    if ":" not in name:
        if name not in BUILT_IN:
            raise UnknownNameError.among("aggregate", name, BUILT_IN)
        maker: Callable[..., Aggregate] = getattr(sash, name)
        return maker
    own = find(name, beside)
    if hasattr(own, MONOID) or all(hasattr(own, part) for part in SPARK_PARTS):
        return lambda *columns, **options: agg(own, *columns, **options)
    if isinstance(own, Aggregate) or not callable(own):
        raise DeclarationError(f"{name} is {own!r}; wanted a class decorated with @sash.aggregate, or a function")
    return _checked(name, own)


def _checked(name: str, own: Callable[..., Any]) -> Callable[..., Aggregate]:
    def make(*columns: str, **options: Any) -> Aggregate:
        made = own(*columns, **options)
        if not isinstance(made, Aggregate):
            raise DeclarationError(f"{name} gave {made!r}; wanted an aggregate, as sash.agg(...) makes it")
        return made

    return make


def _arguments(text: str, brackets: str) -> tuple[list[str], dict[str, Any]]:
    try:
        call = ast.parse(f"f{brackets}", mode="eval").body
    except SyntaxError as error:
        raise DeclarationError(f"{text!r} cannot be read; wanted {WANTED}") from error
    if not isinstance(call, ast.Call):
        raise DeclarationError(f"{text!r} is no aggregate; wanted {WANTED}")
    columns = [_column(text, each) for each in call.args]
    return columns, {str(each.arg): _literal(text, each) for each in call.keywords}


def _column(text: str, given: ast.expr) -> str:
    if isinstance(given, ast.Name):
        return given.id
    if isinstance(given, ast.Constant) and isinstance(given.value, str):
        return given.value
    raise DeclarationError(f"{text!r} has {ast.unparse(given)} where a column is wanted; options are given by name")


def _literal(text: str, given: ast.keyword) -> Any:
    try:
        return ast.literal_eval(given.value)
    except ValueError as error:
        raise DeclarationError(f"{text!r}: {given.arg}={ast.unparse(given.value)} is no plain value") from error
