"""One page of plots in one file: text, numbers and uPlot inside it, nothing fetched from anywhere.

A page has sections; a section has words, a table, and plots. A plot is plain data: what is drawn, and how, is said here
in Python and drawn by page.js in the colours of the reader's scheme, light or dark.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.resources import files
from typing import Any

NOTHING_FROM_ELSEWHERE = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


@dataclass(frozen=True)
class Series:
    """One thing in a plot: a line, bars or points."""

    label: str
    values: Sequence[float | None]
    kind: str = "line"  # "line", "bars", "points"
    colour: int = 1  # of the palette, from 1
    width: float = 1.5


@dataclass(frozen=True)
class Plot:
    """Series over time, in seconds since 1970, or over places with names."""

    title: str
    x: Sequence[float]
    series: Sequence[Series]
    unit: str = ""
    names: Sequence[str] | None = None  # of the places on the x axis; None: x is time
    named: str = "time"  # what x is
    log: bool = False

    def as_data(self) -> dict[str, Any]:
        """What page.js draws."""
        return {
            "title": self.title, "x": list(self.x), "unit": self.unit, "log": self.log, "named": self.named,
            "names": None if self.names is None else list(self.names),
            "series": [vars(each) | {"values": list(each.values)} for each in self.series],
        }  # fmt: skip


@dataclass(frozen=True)
class Section:
    """A heading, a few words, plots and tables; `choices` are plots of which the reader sees one."""

    title: str
    text: str = ""
    plots: Sequence[Plot] = ()
    choices: Mapping[str, Plot] = field(default_factory=dict)
    tables: Sequence[Sequence[Sequence[str]]] = ()  # rows of cells; the first row is the head
    facts: Sequence[tuple[str, str]] = ()  # numbers with their names


def page(title: str, lead: str, sections: Iterable[Section]) -> str:
    """The whole page as text."""
    plots: list[Any] = []
    body = "".join(_section(each, plots) for each in sections)
    data = json.dumps(plots, separators=(",", ":"), allow_nan=False).replace("</", "<\\/")
    return (
        "<!doctype html>\n"
        f'<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{NOTHING_FROM_ELSEWHERE}">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<style>{_part('vendor/uPlot.min.css')}\n{_part('page.css')}</style></head>\n"
        f"<body><main><header><h1>{escape(title)}</h1>"
        '<button id="scheme" type="button" title="light or dark">◐</button>'
        f"<p>{escape(lead)}</p></header>\n{body}</main>\n"
        f'<script id="plots" type="application/json">{data}</script>\n'
        f"<script>{_part('vendor/uPlot.iife.min.js')}</script>\n<script>{_part('page.js')}</script></body></html>\n"
    )


def _section(section: Section, plots: list[Any]) -> str:
    parts = [f"<section><h2>{escape(section.title)}</h2>"]
    parts += [f"<p>{escape(each)}</p>" for each in section.text.split("\n\n") if each]
    if section.facts:
        facts = "".join(f"<div><dd>{escape(value)}</dd><dt>{escape(name)}</dt></div>" for name, value in section.facts)
        parts.append(f"<dl>{facts}</dl>")
    if section.choices:
        parts.append(_figure({name: each.as_data() for name, each in section.choices.items()}, plots))
    parts += [_figure(each.as_data(), plots) for each in section.plots]
    parts += [_table(each) for each in section.tables]
    return "".join(parts) + "</section>\n"


def _figure(data: Any, plots: list[Any]) -> str:
    plots.append(data)
    return f'<figure data-plot="{len(plots) - 1}"></figure>'


def _table(rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(cell)}</th>" for cell in rows[0])
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows[1:])
    return f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _part(name: str) -> str:
    return files("sash.cli.report").joinpath(name).read_text(encoding="utf-8")
