"""One page of all experiments: plots, claims and what became of them; drawn by the machinery of `sash report`.

Colour tells algorithms apart, width their variants: min-arities, stores, caches.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from math import log2
from pathlib import Path
from statistics import median
from typing import Any

from bench.experiments.contract import Axes, Experiment
from bench.measuring import QUICK, last_run
from sash.cli.report import Plot, Section, Series, page

N_COLOURS = 5
WIDTHS = (1.5, 3.0, 4.5, 6.0)
SHOWN = 60  # rows of a table
LEAD = (
    "Every table and figure of the five papers that Sash implements, measured on Sash itself, and the libraries one "
    "would use otherwise on the same work. For each: what the paper says, what was measured here, and whether it "
    "holds. Times are the best of several turns; the noise is how far above the best the middle turn was; "
    "above each plot stands that of its middle point, and of its noisiest."
)


def page_of(experiments: Sequence[Experiment], folder: Path) -> str:
    """The page of the last run of each experiment, as text."""
    runs = [(each, run) for each in experiments if (run := last_run(each.name, folder)) is not None]
    sections = [summary(runs, folder), *(section(*each) for each in runs if each[0].paper), *_suites(runs)]
    return page("The papers, measured again", LEAD, sections)


def summary(runs: Sequence[tuple[Experiment, dict[str, Any]]], folder: Path) -> Section:
    """How many claims hold, and which do not."""
    claims = [(each.name, claim) for each, run in runs for claim in run.get("claims", [])]
    missed = [(name, claim) for name, claim in claims if not claim["holds"]]
    table = [("experiment", "what is claimed", "measured", "why not"), *_told_once(missed)]
    facts = [
        ("experiments", f"{sum(bool(each.paper) for each, _ in runs)}"), ("claims", f"{len(claims)}"),
        ("hold", f"{len(claims) - len(missed)}"), ("do not hold", f"{len(missed)}"),
        ("minutes", f"{sum(run.get('seconds', 0) for _, run in runs) / 60:,.0f}"),
    ]  # fmt: skip
    machines = sorted({_machine(run) for _, run in runs})
    text = f"Measured on {'; '.join(machines)}." if machines else "Nothing was measured yet: sash bench --all"
    text += f" With {versions}." if (versions := _versions([run for _, run in runs])) else ""
    if folder == QUICK:
        text += " QUICK RUNS: small workloads that show that everything runs, and prove nothing."
    return Section("What holds", text, facts=facts, tables=[table] if missed else [])


def _told_once(missed: Sequence[tuple[str, dict[str, Any]]]) -> list[tuple[str, ...]]:
    """What does not hold, row by row; an experiment and a reason are told once, for all rows that share them."""
    rows, before = [], ("", "")
    for name, claim in missed:
        own = name, claim["why"] or "not known"
        rows.append((name if name != before[0] else "", claim["said"], claim["measured"],
                     own[1] if own != before else "the same"))  # fmt: skip
        before = own
    return rows


def _machine(run: dict[str, Any]) -> str:
    further = [f"{run['cores']} cores"] if "cores" in run else []
    further += [f"{run['memory_gb']} GB"] if run.get("memory_gb") else []
    return ", ".join(
        [run["machine"], *further, *([run["kernel"]] if "kernel" in run else []), f"Python {run['python']}"]
    )


def _versions(runs: Sequence[dict[str, Any]]) -> str:
    """The libraries that were there, each with its versions: more than one, if runs were of different days."""
    found: dict[str, set[str]] = {}
    for run in runs:
        for name, version in run.get("versions", {}).items():
            if version not in ("", "absent", None):
                found.setdefault(name, set()).add(version)
    return ", ".join(f"{name} {' and '.join(sorted(each))}" for name, each in found.items())


def section(experiment: Experiment, run: dict[str, Any]) -> Section:
    """One experiment: what was said, the plots or the table, and its claims."""
    text = f"{experiment.paper}: {experiment.reference}.\n\nThe paper's curves: {experiment.claim}\n\n"
    text += f"Run as {_run_as(experiment, run)}"
    tables, title = _claims(run, "what the paper says"), f"{experiment.title} ({experiment.name})"
    if experiment.axes is None:
        return Section(title, text, tables=[*tables, rows_table(run["rows"])])
    return Section(title, text, plots=plots(experiment.axes, run["rows"]), tables=tables, facts=facts_of(run["rows"]))


def _run_as(experiment: Experiment, run: dict[str, Any]) -> str:
    """How, when, where and for how long it ran."""
    at = datetime.fromisoformat(run["at"])
    seconds = f", {run['seconds']:,.0f} s" if run.get("seconds") is not None else ""
    where = f", {run['machine']}" if "machine" in run else ""
    return f"sash bench {experiment.name}, {at:%d %b %Y %H:%M} UTC, commit {run['commit']}{where}{seconds}."


def _claims(run: dict[str, Any], said: str) -> list[list[tuple[str, ...]]]:
    """A table of claims and what became of them, if there are any."""
    claims = [
        (each["said"], each["measured"], "holds" if each["holds"] else "does not hold", each["why"])
        for each in run.get("claims", [])
    ]
    return [[(said, "measured here", "holds", "why not"), *claims]] if claims else []


def _suites(runs: Sequence[tuple[Experiment, dict[str, Any]]]) -> list[Section]:
    return [
        Section(
            f"{each.title} ({each.name})",
            f"A suite of our own, {_run_as(each, run)}",
            tables=[*_claims(run, "what we say"), *_by_columns(run["rows"])],
        )
        for each, run in runs
        if not each.paper
    ]


def _by_columns(rows: Sequence[dict[str, Any]]) -> list[list[tuple[str, ...]]]:
    """A table for each kind of row: those that have the same columns."""
    kinds: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        kinds.setdefault(tuple(row), []).append(row)
    return [rows_table(each) for each in kinds.values()]


def rows_table(rows: Sequence[dict[str, Any]]) -> list[tuple[str, ...]]:
    """Rows as they are."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    body = [tuple(_cell(row.get(key, "")) for key in columns) for row in rows[:SHOWN]]
    rest = [(f"and {len(rows) - SHOWN} more",) + ("",) * (len(columns) - 1)] if len(rows) > SHOWN else []
    return [tuple(columns), *body, *rest]


def _cell(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return str(value)
    return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:,.3g}"


def plots(axes: Axes, rows: Sequence[dict[str, Any]]) -> list[Plot]:
    """A plot for each panel that has more than one point of a curve."""
    return [_plot(axes, name, panel) for name, panel in _panels(rows).items() if _is_curve(panel)]


def facts_of(rows: Sequence[dict[str, Any]]) -> list[tuple[str, str]]:
    """What has no curve, such as the cost of the clock: series of a panel that have the same value are one fact."""
    facts: dict[tuple[str, str], list[str]] = {}
    for name, panel in _panels(rows).items():
        for row in panel if not _is_curve(panel) else ():
            facts.setdefault((name, f"{_cell(row['y'])} {row['unit']}"), []).append(row["series"])
    return [(f"{name}: {', '.join(series)}", value) for (name, value), series in facts.items()]


def _panels(rows: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    panels: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        panels.setdefault(row["panel"], []).append(row)
    return panels


def _is_curve(panel: Sequence[dict[str, Any]]) -> bool:
    return len({row["x"] for row in panel}) > 1


def _noise(rows: Sequence[dict[str, Any]]) -> str:
    """The spread of the points of a plot: that of the middle one, and the largest."""
    spreads = [row.get("spread", 0.0) for row in rows]
    return f" (noise {median(spreads):.0%}, at most {max(spreads):.0%})" if any(spreads) else ""


def _plot(axes: Axes, name: str, rows: Sequence[dict[str, Any]]) -> Plot:
    xs = sorted({row["x"] for row in rows})
    curves: dict[str, dict[float, float | None]] = {}
    for row in rows:
        curves.setdefault(row["series"], {})[row["x"]] = row["y"]
    looks = _looks(list(curves))
    return Plot(
        f"{name}: {rows[0]['unit']}{_noise(rows)}", _places(xs) if axes.log_x else xs,
        [Series(label, [curve.get(x) for x in xs], "line", *looks[label]) for label, curve in curves.items()],
        unit=rows[0]["unit"], names=[_tick(x) for x in xs], named=axes.x, log=axes.log_y,
    )  # fmt: skip


def _places(xs: Sequence[float]) -> list[float]:
    """Places on a logarithmic axis, counted in points between; 0 comes a point before the first."""
    positive = [x for x in xs if x > 0]
    first, last = log2(positive[0]), log2(positive[-1])
    step = (last - first) / max(len(positive) - 1, 1) or 1.0
    return [(log2(x) - first) / step if x > 0 else -1.0 for x in xs]


def _tick(x: float) -> str:
    if x >= 1024 and x == int(x) and int(x) & (int(x) - 1) == 0:
        return f"2^{int(x).bit_length() - 1}"
    return f"{x:,.0f}" if x == int(x) else f"{x:,.3g}"


def _looks(labels: Sequence[str]) -> dict[str, tuple[int, float]]:
    """Colour by what comes before a comma, width by what comes after; the lite form of an algorithm is one of it."""
    families = list(dict.fromkeys(_family(label) for label in labels))
    looks, seen = {}, dict.fromkeys(families, 0)
    for label in labels:
        family = _family(label)
        place = families.index(family)
        width = WIDTHS[min(seen[family] + place // N_COLOURS, len(WIDTHS) - 1)]
        looks[label], seen[family] = (1 + place % N_COLOURS, width), seen[family] + 1
    return looks


def _family(label: str) -> str:
    return label.partition(",")[0].removesuffix("_lite")
