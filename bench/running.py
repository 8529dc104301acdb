"""Runs experiments one after the other, shows how far they are, and notes what came out.

If there are several, each has a process of its own, and a limit of time. What one leaves behind would be in the way
of the next: a session of Spark keeps its settings and its memory for life, Java's compilers would know from one what
the next is timed for, and Python's collector looks at all objects that are alive whenever a time is taken.
"""

from __future__ import annotations

import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.children import run_within
from bench.experiments.contract import Claim, Experiment, Row, Size
from bench.measuring import HISTORY, QUICK, last_run, record
from bench.registry import EXPERIMENTS, SUITES, is_on_spark, lacks

REPORT = Path("build/bench.html")
LIMIT_S = 1_800  # of one: the longest, on Spark, takes half of it, and the whole set is not spent on one that hangs
PLACES = ("panel", "series", "x", "what", "function", "operation", "windows", "algorithm")  # what tells rows apart


def chosen(names: Sequence[str], *, everything: bool, quick: bool = False) -> list[Experiment]:
    """The experiments of some names; all that this machine can run and that are not large, if everything is wanted.

    Where it is to be quick, the suites of our own are left out, and what is on Spark: many kernels take longer to
    compile than to run, and Spark's own windows take minutes however few the rows.
    """
    if everything:
        found = [each for each in EXPERIMENTS.values() if not each.is_large]
        return [each for each in found if not (quick and (each.name in SUITES or is_on_spark(each)))]
    unknown = [name for name in names if name not in EXPERIMENTS]
    if unknown:
        raise LookupError(f"unknown experiment {unknown[0]!r}; choose from: {', '.join(EXPERIMENTS)}")
    return [EXPERIMENTS[name] for name in names]


def run_all(experiments: Sequence[Experiment], size: Size) -> list[str]:
    """Run experiments, each noted when it is done; the names of those that failed or could not run."""
    left_out, began = [], time.perf_counter()
    for number, experiment in enumerate(experiments, 1):
        if len(experiments) > 1:
            print(f"[{number}/{len(experiments)}, {(time.perf_counter() - began) / 60:.0f} min] ", end="", flush=True)
        if lacks(experiment):
            print(f"{experiment.name}: left out, {lacks(experiment)}", flush=True)
            left_out.append(experiment.name)
            continue
        try:
            if len(experiments) > 1:
                _run_apart(experiment, size)
            else:
                run_one(experiment, size)
        except Exception:  # noqa: BLE001 - whatever it is, the others run on through the night
            print(f"{experiment.name}: FAILED\n{traceback.format_exc()}", flush=True)
            left_out.append(experiment.name)
    return left_out


def _run_apart(experiment: Experiment, size: Size) -> None:
    """Run one in a process of its own, which prints and notes what came out."""
    command = [sys.executable, "-m", "bench", experiment.name, *(["--quick"] if size > Size.FULL else [])]
    code = run_within(command, LIMIT_S).returncode
    if code:
        raise subprocess.CalledProcessError(code, command)


def run_one(experiment: Experiment, size: Size) -> tuple[list[Row], list[Claim]]:
    """Run one experiment, print what it found, and note it: in history, or aside if it was quick."""
    print(f"{experiment.name}: {experiment.title}", flush=True)
    began, rows = time.perf_counter(), []
    with progress() as show:
        for row in experiment.run(size):
            rows.append(row)
            show(f"{len(rows)} rows, {time.perf_counter() - began:.0f} s: {_where(row)}")
    seconds = time.perf_counter() - began
    claims = [claim._replace(why="") if claim.holds else claim for claim in experiment.claims(rows)]
    if experiment.axes is None:
        for row in rows:
            print("  " + "  ".join(f"{key} {value}" for key, value in row.items()))
    for claim in claims:
        print(f"  {'holds' if claim.holds else 'DOES NOT HOLD'}: {claim.said}\n      measured: {claim.measured}"
              + (f"; {claim.why}" if claim.why else ""))  # fmt: skip
    further = {"seconds": round(seconds, 1), "claims": [claim._asdict() for claim in claims]}
    is_full = size == Size.FULL
    path = record(experiment.name, rows, folder=HISTORY if is_full else QUICK, again=is_full, **further)
    print(f"  {len(rows)} rows in {seconds:.1f} s, noted in {path}", flush=True)
    return rows, claims


def _where(row: Row) -> str:
    return ", ".join(str(row[key]) for key in PLACES if key in row)


@contextmanager
def progress() -> Iterator[Callable[[str], None]]:
    """Show a line that changes, by rich on a terminal; elsewhere one now and then."""
    if sys.stderr.isatty():
        try:
            from rich.console import Console
        except ImportError:
            pass
        else:
            with Console(stderr=True).status("begins, which may take a while to compile") as status:
                yield status.update
            return
    last = time.perf_counter()

    def now_and_then(text: str) -> None:
        nonlocal last
        if time.perf_counter() - last > 10:
            last = time.perf_counter()
            print(f"  ... {text}", file=sys.stderr, flush=True)

    yield now_and_then


def listing() -> list[tuple[str, str, str]]:
    """Of each experiment its name, where it is from, and what it shows."""
    return [(each.name, _source(each), each.title) for each in EXPERIMENTS.values()]


def _source(experiment: Experiment) -> str:
    marks = [experiment.reference, "needs Spark" if is_on_spark(experiment) else "", "large" * experiment.is_large]
    return ", ".join(mark for mark in marks if mark)


def write_report(output: Path | None = None, *, quick: bool = False) -> Path:
    """Draw the page of the last run of each experiment."""
    from bench.page import page_of

    target, folder = output or REPORT, QUICK if quick else HISTORY
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(page_of(list(EXPERIMENTS.values()), folder), encoding="utf-8")
    return target


def summary(ran: Sequence[str], left_out: Sequence[str], seconds: float, folder: Path) -> str:
    """One line of a run: its minutes, how many experiments, how many of their claims hold, and what did not run."""
    claims = [claim for name in ran for claim in (last_run(name, folder) or {}).get("claims", [])]
    hold = sum(claim["holds"] for claim in claims)
    counts = f"{len(ran)} of {len(ran) + len(left_out)} experiments in {seconds / 60:.1f} minutes"
    rest = f"; not: {', '.join(left_out)}" if left_out else ""
    return f"{counts}: {hold} claims hold, {len(claims) - hold} do not{rest}"


def main(names: Sequence[str], *, everything: bool, quick: bool, output: Any = None) -> int:
    """List, run or report; 0, or 1 if something asked for could not run."""
    if list(names) == ["report"]:
        print(f"report: {write_report(output, quick=quick)}")
        return 0
    if not names and not everything:
        for name, source, title in listing():
            print(f"{name:<28} {source:<22} {title}")
        return 0
    wanted, began = chosen(names, everything=everything, quick=quick), time.perf_counter()
    left_out = run_all(wanted, Size.QUICK if quick else Size.FULL)
    if len(wanted) > 1:
        ran = [each.name for each in wanted if each.name not in left_out]
        print(summary(ran, left_out, time.perf_counter() - began, QUICK if quick else HISTORY), flush=True)
    if output is not None:
        print(f"report: {write_report(output, quick=quick)}")
    lacking = {each.name for each in wanted if everything and lacks(each)}  # asked for where it can run
    return 1 if set(left_out) - lacking else 0
