"""The commands: what they are called, what they take, and an example of each. Work is done in the modules beside."""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

import sash
from sash.cli.console import err, out
from sash.cli.exits import INTERRUPTED, code_of, message_of

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Exact sliding-window aggregation: any associative aggregate, in batch and over streams.",
    epilog="Example: sash demo --quick. Exit codes: 0 done, 1 the job failed, 2 wrong usage, 3 the pipeline file is "
    "wrong, 4 something is missing on this machine, 130 interrupted.",
)
PipelineFile = Annotated[Path, typer.Argument(metavar="PIPELINE.toml", help="A pipeline file.")]


def run() -> None:
    """Run the command line."""
    app(prog_name="sash")


def told(command: Callable[..., None]) -> Callable[..., None]:
    """A command whose errors are told in one message, and end it with their code."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> None:
        try:
            command(*args, **kwargs)
        except typer.Exit:
            raise
        except BaseException as error:
            if os.environ.get("SASH_TRACEBACK") or isinstance(error, SystemExit):
                raise
            code = code_of(error)
            text = "interrupted" if code == INTERRUPTED else f"error: {message_of(error)}"
            err.print(text, markup=False, soft_wrap=True)
            raise typer.Exit(code) from None

    return wrapped


def part(name: str) -> Any:
    """A module of the command line, loaded when it is needed: `sash --help` waits for none of them."""
    return importlib.import_module(f"sash.cli.{name}")


@app.callback(invoke_without_command=True)
def _options(version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False) -> None:
    if version:
        out.print(f"sash {sash.__version__}")
        raise typer.Exit


@app.command(epilog="Example: sash demo --quick")
@told
def demo(
    directory: Annotated[Path, typer.Option(help="Where to work; made if absent.")] = Path("sash-demo"),
    quick: Annotated[bool, typer.Option("--quick", help="January alone: a fifth of the time.")] = False,
    emit: Annotated[str, typer.Option(help="revise: at once, and again when it changes; final: once.")] = "revise",
    fresh: Annotated[bool, typer.Option("--fresh", help="Begin anew, whatever is there.")] = False,
) -> None:
    """Stream the flights of 2013 from New York through Spark, check the answers, and draw a report.

    Needs pip install 'sash[demo]'. Ctrl-C stops it; the same command goes on from its checkpoint.
    """
    part("demo").run(directory, quick=quick, emit=emit, fresh=fresh)


@app.command("run", epilog="Example: sash run rides.toml")
@told
def run_pipeline(
    pipeline: PipelineFile,
    log: Annotated[Path | None, typer.Option(help="Note each micro-batch here, for sash report.")] = None,
) -> None:
    """Run a pipeline from a file: source, window, aggregates, sink; in batch or as a stream."""
    read = part("pipelines").read_pipeline(pipeline)
    if read.engine == "memory":
        rows = part("batches").run_in_memory(read)
        err.print(f"{rows:,} answers" + (f" in {read.sink.path}" if read.sink.path else ""), markup=False)
    else:
        part("sparks").run_on_spark(read, log)
        err.print("done" + (f": {read.sink.path}" if read.sink.path else ""), markup=False)


@app.command(epilog="Example: sash explain rides.toml")
@told
def explain(pipeline: PipelineFile) -> None:
    """Say which algorithms a pipeline will run, why, and what they cost. Starts nothing."""
    out.print(part("explaining").explained(part("pipelines").read_pipeline(pipeline)), markup=False, soft_wrap=True)


@app.command(epilog="Example: sash algorithms --order any")
@told
def algorithms(
    order: Annotated[str | None, typer.Option(help="Only those for rows 'in order', or in 'any'.")] = None,
) -> None:
    """List the algorithms: which order of rows, what they ask of combine, what a round costs."""
    out.print(part("catalogue").table(order))


@app.command(epilog="Example: sash check rides:LongestRun --samples 1,2.5,-3")
@told
def check(
    name: Annotated[str, typer.Argument(metavar="MODULE:AGGREGATE", help="A class decorated with @sash.aggregate.")],
    samples: Annotated[str | None, typer.Option(help="Values to try, with commas between.")] = None,
) -> None:
    """Check that an aggregate of your own is associative and keeps its other laws. Exit code 1 if it does not."""
    report = part("checking").checked(name, samples)
    out.print(str(report), markup=False, soft_wrap=True)
    raise typer.Exit(0 if report.ok else 1)


@app.command(epilog="Example: sash bench daba-fig18-throughput --quick")
@told
def bench(
    names: Annotated[list[str] | None, typer.Argument(help="Experiments to run; report draws their last runs.")] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Run all but the large ones; on Spark if it is there.")
    ] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Small workloads, not noted in history.")] = False,
    output: Annotated[Path | None, typer.Option(help="The page to write.")] = None,
    rows: Annotated[int | None, typer.Option(min=1_000, help="Time a few windows over so many rows instead.")] = None,
) -> None:
    """List the experiments of a clone, run them, or draw their page; elsewhere, time a few windows in half a minute."""
    benching = part("benching")
    asked = bool(names) or everything
    if rows is not None or not (asked or benching.is_clone()):
        out.print(benching.table(rows or 1_000_000))
        return
    raise typer.Exit(benching.experiments(names or [], everything=everything, quick=quick, output=output))


@app.command(epilog="Example: sash report sash-demo --out report.html")
@told
def report(
    place: Annotated[Path, typer.Argument(help="The directory of a demo, or the log that sash run --log wrote.")],
    target: Annotated[Path | None, typer.Option("--out", help="The page to write.")] = None,
) -> None:
    """Draw the page of plots again from what a demo or a run has written; one file, no network."""
    written = part("reporting").write_report(place, target)
    out.print(f"report: {written}", markup=False, soft_wrap=True)
