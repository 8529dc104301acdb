"""On which line of a TOML file a key stands. The parser of the standard library knows, and does not tell.

Good for messages: it follows headers, dotted keys and strings over several lines. What is inside an inline table
stands on the line of the table.
"""

from __future__ import annotations

import re

Path = tuple[str, ...]

PART = r"""(?:"[^"]*"|'[^']*'|[A-Za-z0-9_-]+)"""
DOTTED = rf"{PART}(?:\s*\.\s*{PART})*"
HEADER = re.compile(rf"^\s*\[\[?\s*({DOTTED})\s*\]\]?")
KEY = re.compile(rf"^\s*({DOTTED})\s*=\s*(.*)$")
LONG_QUOTES = ('"""', "'''")


def lines_of(text: str) -> dict[Path, int]:
    """The line of each table and key, from 1."""
    found: dict[Path, int] = {}
    table: Path = ()
    quote = ""
    for number, line in enumerate(text.splitlines(), 1):
        if quote:
            quote = "" if quote in line else quote
        elif header := HEADER.match(line):
            table = _parts(header[1])
            found.setdefault(table, number)
        elif key := KEY.match(line):
            found.setdefault(table + _parts(key[1]), number)
            quote = next((each for each in LONG_QUOTES if key[2].count(each) == 1), "")
    return found


def line_of(found: dict[Path, int], path: Path) -> int | None:
    """The line of a key, or of the nearest table around it."""
    for length in range(len(path), 0, -1):
        if path[:length] in found:
            return found[path[:length]]
    return None


def _parts(dotted: str) -> Path:
    return tuple(part.strip("\"'") for part in re.findall(PART, dotted))
