"""Pipelines from a file: where rows come from, which windows, which answers, where they go.

    [source]                        [window]                    [aggregates]                  [sink]
    format = "parquet"              by = "station"              rides = "count()"             path = "answers"
    path = "rides"                  order_by = "ended"          mean = "mean(minutes)"
                                    range = "1 hour"

With a table [stream] the source is read as a stream. Several windows over the same keys are [windows.NAME], each with
its own `aggregates`. Paths are relative to the directory of the file.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from sash.cli.aggregates import read_aggregate
from sash.cli.exits import PipelineError
from sash.cli.naming import find
from sash.cli.reading import File, Table
from sash.errors import UnknownNameError
from sash.frames.spec import Spec, Together, together
from sash.frames.streaming import EMIT, FAILING, LATE
from sash.frames.window import Window, window
from sash.windows.frames import CLOSED, TIES

EXTENTS = ("rows", "range", "everything", "session", "delta", "since", "evict_while", "tumbling")
OF_A_WINDOW = (
    *EXTENTS, "aggregates", "by", "closed", "every", "every_rows", "lag", "min_rows", "order_by", "origin", "ties",
)  # fmt: skip
OF_A_STREAM = {
    "lateness": "a text", "future": "a text", "idle": "a text", "changes": "a text", "shards": "a whole number",
    "state": "a text",
}  # fmt: skip
FILES = ("parquet", "csv", "json")
ENGINES, MODES = ("spark", "memory"), ("overwrite", "append", "error")
ONCE = "available now"
Places = dict[str, tuple[str, ...]]  # of a column: the key that names it


@dataclass(frozen=True)
class Source:
    """Where rows come from."""

    format: str
    path: str | None
    schema: str | None
    options: dict[str, Any]


@dataclass(frozen=True)
class Sink:
    """Where answers go; "show" prints the first of them."""

    format: str
    path: str | None
    mode: str
    options: dict[str, Any]


@dataclass(frozen=True)
class Stream:
    """What a stream needs beside its spec."""

    checkpoint: str
    trigger: str
    name: str  # of the query; where the state is in a store, also there
    seed: Source | None  # history that windows begin with
    is_stored: bool  # whether the state is in a store of the user's own


@dataclass(frozen=True)
class Pipeline:
    """A file that was read and makes sense as far as can be told without looking at rows."""

    file: File
    source: Source
    spec: Spec | Together
    sink: Sink
    stream: Stream | None
    engine: str
    master: str
    memory: str
    settings: dict[str, Any]
    columns: Places = field(default_factory=dict)  # read, and the key that names each

    def require_columns(self, known: list[str]) -> None:
        """Complain of the first column that the source does not have, on the line that names it."""
        for name, where in self.columns.items():
            if name not in known:
                raise self.file.wrong(where, f"{'.'.join(where)}: {UnknownNameError.among('column', name, known)}")


def read_pipeline(path: Path) -> Pipeline:
    """Read a pipeline file."""
    file, root = _parsed(path)
    source, sink = root.table("source"), root.table("sink")
    if source is None:
        raise PipelineError(path, None, 'there is no [source]; write [source] with format = "parquet" and path = ...')
    stream = root.table("stream")
    spec, columns = _read_spec(root, path.parent, stream)
    engine = root.table("run") or Table(file, {}, ("run",))
    chosen = engine.choose("engine", ENGINES, "spark")
    if chosen == "memory" and stream is not None:
        engine.fail("engine", "run.engine is 'memory', but [stream] needs Spark. Leave one of them out")
    algorithm = engine.take("algorithm", "a text")
    if algorithm is not None:
        spec = engine.within("algorithm", lambda: spec.algorithm(algorithm))
    streaming = None if stream is None else _read_stream(stream, path)
    given = _read_sink(sink, path.parent, chosen, streaming)
    pipeline = Pipeline(
        file, _read_source(source, path.parent, chosen), spec, given, streaming, chosen,
        engine.take("master", "a text", "local[*]"), engine.take("memory", "a text", "2g"),
        dict(engine.take("settings", "a table", {})), columns,
    )  # fmt: skip
    for table in (engine, *filter(None, [stream]), root):
        table.close()
    return pipeline


def _parsed(path: Path) -> tuple[File, Table]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise PipelineError(path, None, "there is no such file") from error
    except (IsADirectoryError, UnicodeDecodeError) as error:
        raise PipelineError(path, None, "this is no text file; wanted a pipeline in TOML") from error
    file = File(path, text)
    try:
        return file, Table(file, tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        raise PipelineError(path, int(line[1]) if line else None, f"this is no TOML: {error}") from error


def _read_source(table: Table, beside: Path, engine: str) -> Source:
    path = table.take("path", "a text")
    form = table.take("format", "a text", None if path is None else _format_of(path))
    if form is None:
        said = 'write format = "parquet", "csv", "json" or a format of Spark'
        table.fail("", f"{table.name('format')} is missing; {said}")
    if path is None and form in FILES:
        table.fail("", f'{table.name("path")} is missing; write path = "rides.{form}"')
    if engine == "memory" and form not in FILES:
        table.fail("format", f"run.engine = 'memory' reads {', '.join(FILES)}, not {form!r}; use engine = 'spark'")
    schema, options = table.take("schema", "a text"), table.take("options", "a table", {})
    table.close()
    return Source(form, None if path is None else _absolute(path, beside), schema, dict(options))


def _format_of(path: str) -> str | None:
    ending = path.removesuffix(".gz").rsplit(".", 1)[-1].lower()
    return {"jsonl": "json", "ndjson": "json", "pq": "parquet"}.get(ending, ending if ending in FILES else None)


def _read_sink(table: Table | None, beside: Path, engine: str, stream: Stream | None) -> Sink:
    if table is None:
        return Sink("console" if stream is not None else "show", None, "error", {})
    path = table.take("path", "a text")
    form = table.take("format", "a text", "show" if path is None else _format_of(path) or "parquet")
    if path is None and form in FILES:
        table.fail("", f'sink.path is missing; write path = "answers.{form}"')
    if engine == "memory" and form not in (*FILES, "show"):
        table.fail("format", f"run.engine = 'memory' writes {', '.join(FILES)} or shows, not {form!r}")
    if stream is not None and stream.is_stored and form not in (*FILES, "show"):
        table.fail("format", f"with stream.state a batch that is done again must replace what it wrote, and {form} "
                             f"cannot; use one of {', '.join(FILES)}, or leave stream.state out")  # fmt: skip
    mode = table.choose("mode", MODES, "append" if stream is not None else "error")
    sink = Sink(
        form, None if path is None else _absolute(path, beside), mode, dict(table.take("options", "a table", {}))
    )
    table.close()
    return sink


def _read_stream(table: Table, path: Path) -> Stream:
    checkpoint = table.need("checkpoint", "a text", '"checkpoint"')
    trigger, name = table.take("trigger", "a text", ONCE), table.take("name", "a text", path.stem)
    seed, state = table.table("seed"), table.take("state", "a text")
    if seed is not None and state is not None:
        table.fail("seed", "stream.seed needs Spark's own state, but there is stream.state. Leave one of them out")
    history = None if seed is None else _read_source(seed, path.parent, "spark")
    return Stream(_absolute(checkpoint, path.parent), trigger, name, history, state is not None)


def _absolute(path: str, beside: Path) -> str:
    return path if "://" in path else str((beside / path).absolute())


def _absolute_store(address: str, beside: Path) -> str:
    """The address of a store; lmdb:path and sqlite:path are relative to the directory of the file."""
    near = re.match(r"(lmdb|sqlite):(?!/)(.+)", address)
    return address if near is None else f"{near[1]}://{(beside / near[2]).absolute()}"


def _read_spec(root: Table, beside: Path, stream: Table | None) -> tuple[Spec | Together, Places]:
    """One spec, or several together; and which column is named where."""
    base = root.table("window")
    if base is None:
        raise PipelineError(root.file.path, None, 'there is no [window]; write [window] with order_by = "ts"')
    by, order = base.take("by", "a text or a list of texts"), base.need("order_by", "a text or a list of texts", '"ts"')
    begun = base.within("order_by", lambda: window(by=by, order_by=order))
    named: Places = {name: ("window", "by") for name in begun.by}  # noqa: C420 - the type of the tuples would differ
    named |= {name: ("window", "order_by") for name in begun.order_by}  # noqa: C420
    several = root.table("windows")
    if several is None:
        specs = [_spec_of(begun, base, root, named, beside)]
    else:
        specs = [_spec_of(begun, part, part, named, beside) for part in _parts(several)]
    base.close()
    made: Spec | Together = specs[0] if len(specs) == 1 else root.within("windows", lambda: together(*specs))
    return (made if stream is None else _streaming(made, stream)), named


def _parts(several: Table) -> list[Table]:
    parts = [several.table(name) for name in several.values]
    if not parts:
        several.fail("", 'there is no window in [windows]; write [windows.hour] with range = "1 hour"')
    return [part for part in parts if part is not None]


def _spec_of(begun: Window, table: Table, around: Table, named: Places, beside: Path) -> Spec:
    """The spec of a window's table; its aggregates stand in `aggregates` of the table around."""
    reaching = _extended(begun, table, named, beside)
    given = around.table("aggregates")
    if given is None or not given.values:
        around.fail("", f'{around.name("aggregates")} is missing; write in it: rides = "count()"')
    made = {}
    for name, text in given.values.items():
        made[name] = given.within(name, partial(read_aggregate, text, beside))
        for column in (*made[name].columns, *filter(None, (made[name].condition,))):
            named.setdefault(column, (*given.where, name))
    if table is around:
        table.close()
    return given.within("", lambda: reaching.agg(**made))


def _extended(begun: Window, table: Table, named: Places, beside: Path) -> Window:
    """The window with how far back it reaches, and when it answers."""
    kinds = [kind for kind in EXTENTS if kind in table.values and not (kind == "rows" and "range" in table.values)]
    if not kinds:
        table.require_known(OF_A_WINDOW)
    if len(kinds) != 1:
        said = f"it has {' and '.join(kinds)}" if kinds else "it has none"
        table.fail(kinds[-1] if kinds else "", f"a window reaches back by one of {', '.join(EXTENTS)}; {said}")
    kind = kinds[0]
    made = table.within(kind, lambda: _reach(begun, kind, table, named, beside))
    every, origin = table.take("every", "a text or a number"), table.take("origin", "a text or a number")
    every_rows = table.take("every_rows", "a whole number")
    if every is None and every_rows is None:
        return made
    return table.within("every", lambda: made.every(every, rows=every_rows, origin=origin))


def _reach(begun: Window, kind: str, table: Table, named: Places, beside: Path) -> Window:
    least = table.take("min_rows", "a whole number", 0)
    if kind == "rows":
        return begun.rows(table.take("rows", "a whole number"), min_rows=least)
    if kind == "range":
        return begun.range(
            table.take("range", "a text or a number"), min_rows=least,
            closed=table.choose("closed", CLOSED, "both"), ties=table.choose("ties", TIES, "peers"),
            rows=table.take("rows", "a whole number"), lag=table.take("lag", "a text or a number"),
        )  # fmt: skip
    if kind == "everything":
        table.take("everything", "true or false")
        return begun.everything(ties=table.choose("ties", TIES, "peers"), min_rows=least)
    if kind == "session":
        return begun.session(table.take("session", "a text or a number"), min_rows=least)
    if kind == "tumbling":
        return begun.tumbling(
            table.take("tumbling", "a text or a number"), origin=table.take("origin", "a text or a number")
        )
    if kind == "since":
        column = table.take("since", "a text")
        named.setdefault(column, (*table.where, "since"))
        return begun.since(column, min_rows=least)
    return _reach_by_table(begun, kind, table, named, beside)


def _reach_by_table(begun: Window, kind: str, table: Table, named: Places, beside: Path) -> Window:
    """Windows that need more than one word: delta = {column, within}, evict_while = {policy, aggregates}."""
    inner = table.table(kind)
    assert inner is not None
    if kind == "delta":
        column = inner.need("column", "a text", '"distance"')
        within, ties = inner.need("within", "a text or a number", "10"), inner.take("ties", "a text", "peers")
        made = begun.delta(column, within, ties=ties)
        named.setdefault(column, (*table.where, kind))
    else:
        policy = find(inner.need("policy", "a text", '"module:rule"'), beside)
        given = inner.take("aggregates", "a table", {})
        made = begun.evict_while(policy, **{name: read_aggregate(text, beside) for name, text in given.items()})
    inner.close()
    return made


def _streaming(spec: Spec | Together, table: Table) -> Spec | Together:
    """The spec with how a stream answers; options are added one by one, so that the wrong one is named."""
    chosen = {"emit": (EMIT, "final"), "late": (LATE, "drop"), "failing": (FAILING, "raise")}
    options: dict[str, Any] = {name: table.choose(name, *each) for name, each in chosen.items()}
    for name, kind in OF_A_STREAM.items():
        value = table.take(name, kind)
        if value is not None:
            options[name] = None if value == "none" else value
            if name == "state":
                options[name] = _absolute_store(value, table.file.path.parent)
            table.within(name, lambda: spec.stream(**options))
    return spec.stream(**options)
