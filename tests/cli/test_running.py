"""Pipelines from a file, in memory: what they answer, and what is said when they are wrong."""

import errno
import json

import pyarrow.parquet as pa_parquet
import pytest

from sash.cli import batches
from sash.cli.batches import WRITERS


def answers_of(path):
    return pa_parquet.read_table(path.parent / "answers.parquet").to_pylist()


def test_a_pipeline_answers_every_row(sash, pipeline):
    path = pipeline()
    code, _, told = sash("run", path)
    assert code == 0, told
    assert [(row["rides"], row["mean"], row["longest"]) for row in answers_of(path)] == [
        (1, 12.0, "B17"), (1, 7.5, "B04"), (2, 21.5, "B29"), (2, 19.5, "B29"),
    ]  # fmt: skip
    assert "4 answers" in told


def test_several_windows_share_their_keys(sash, pipeline):
    path = pipeline(
        ('range = "1 hour"\n', ""),
        ("[aggregates]\n", '[windows.hour]\nrange = "1 hour"\n[windows.hour.aggregates]\n'),
        ("\n[sink]", '\n[windows.two]\nrows = 2\nmin_rows = 2\naggregates = { last_two = "sum(minutes)" }\n\n[sink]'),
    )
    assert sash("run", path)[0] == 0
    assert [row["last_two"] for row in answers_of(path)] == [None, None, 43.0, 39.0]


@pytest.mark.parametrize(
    ("window", "rides"),
    [
        ("rows = 2", [1, 1, 2, 2]),
        ("everything = true", [1, 1, 2, 3]),
        ('session = "45 minutes"', [1, 1, 2, 1]),
        ('range = "1 hour"\nclosed = "left"', [0, 0, 1, 1]),
        ('delta = { column = "ended", within = "50 minutes" }', [1, 1, 2, 2]),
    ],
)
def test_windows_reach_back_as_they_say(sash, pipeline, window, rides):
    path = pipeline(('range = "1 hour"', window))
    code, _, told = sash("run", path)
    assert code == 0, told
    assert [row["rides"] for row in answers_of(path)] == rides


def test_a_window_slides_by_a_rule_of_ones_own(sash, pipeline, tmp_path):
    (tmp_path / "my_rules.py").write_text("def two(total, old):\n    return total.n - old.n >= 2\n")
    path = pipeline(
        ('range = "1 hour"', 'evict_while = { policy = "my_rules:two", aggregates = { n = "count(minutes)" } }')
    )
    code, _, told = sash("run", path)
    assert code == 0, told
    assert [row["rides"] for row in answers_of(path)] == [1, 1, 2, 2]


def test_an_aggregate_of_ones_own_lies_beside_the_file(sash, pipeline, tmp_path):
    (tmp_path / "my_aggregates.py").write_text(
        "import sash\n"
        "@sash.aggregate(state='f8')\n"
        "class Total:\n"
        "    identity = 0.0\n"
        "    def lift(x): return x\n"
        "    def combine(older, newer): return older + newer\n"
    )
    path = pipeline(("mean(minutes)", "my_aggregates:Total(minutes)"))
    code, _, told = sash("run", path)
    assert code == 0, told
    assert [row["mean"] for row in answers_of(path)] == [12.0, 7.5, 43.0, 39.0]


@pytest.mark.parametrize("form", ["csv", "json"])
def test_answers_are_written_in_the_form_of_the_file(sash, pipeline, form):
    path = pipeline(("answers.parquet", f"answers.{form}"))
    assert sash("run", path)[0] == 0
    lines = (path.parent / f"answers.{form}").read_text().splitlines()
    last = json.loads(lines[-1])["longest"] if form == "json" else lines[-1].split(",")[-1].strip('"')
    assert (len(lines), last) == (4 if form == "json" else 5, "B29")


def test_without_a_sink_the_answers_are_shown(sash, pipeline):
    code, printed, _ = sash("run", pipeline(('[sink]\npath = "answers.parquet"\n', "")))
    assert code == 0
    assert "21.5" in printed


def test_what_is_there_is_not_overwritten_unasked(sash, pipeline):
    path = pipeline()
    (path.parent / "answers.parquet").write_text("mine")
    code, _, told = sash("run", path)
    assert (code, "answers.parquet exists" in told) == (1, True)
    assert (path.parent / "answers.parquet").read_text() == "mine"
    assert sash("run", pipeline(('.parquet"\n\n[run]', '.parquet"\nmode = "overwrite"\n\n[run]')))[0] == 0


def test_a_disk_that_is_full_is_told_and_what_was_there_stays(sash, pipeline, monkeypatch):
    def full(answers, path):
        path.write_text("half of it")
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    path = pipeline(('.parquet"\n\n[run]', '.parquet"\nmode = "overwrite"\n\n[run]'))
    (path.parent / "answers.parquet").write_text("of yesterday")
    monkeypatch.setitem(WRITERS, "parquet", full)
    code, _, told = sash("run", path)
    assert (code, "error: the disk is full" in told, "Traceback" in told) == (1, True, False)
    assert (path.parent / "answers.parquet").read_text() == "of yesterday"
    assert not (path.parent / "answers.parquet.part").exists()


@pytest.mark.parametrize("doing", ["read_files", "write"])
def test_ctrl_c_is_told_in_a_word_and_leaves_nothing_half_done(sash, pipeline, monkeypatch, doing):
    def interrupted(*given):
        raise KeyboardInterrupt

    path = pipeline()
    with monkeypatch.context() as patched:
        patched.setattr(batches, doing, interrupted)
        code, _, told = sash("run", path)
    assert (code, told.splitlines()[-1]) == (130, "interrupted")
    assert not (path.parent / "answers.parquet").exists()
    assert sash("run", path)[0] == 0


@pytest.mark.parametrize(
    ("old", "new", "line", "said"),
    [
        ("bike)", "bke)", 12, "aggregates.longest: unknown column 'bke'. Did you mean 'bike'?"),
        ("1 hour", "1 hoor", 7, "window.range: unknown unit of time 'hoor'. Did you mean 'hour'?"),
        ("range =", "rnge =", 7, "in [window]: unknown key 'rnge'. Did you mean 'range'?"),
        ("mean(minutes)", "meen(minutes)", 11, "aggregates.mean: unknown aggregate 'meen'. Did you mean 'mean'?"),
        ("mean(minutes)", "mean((minutes)", 11, "cannot be read; wanted a text such as"),
        ("mean(minutes)", "mean(7)", 11, "has 7 where a column is wanted"),
        ("mean(minutes)", "quantile(minutes, q=2)", 11, "a quantile lies between 0 and 1, got q=2"),
        ("mean(minutes)", "nowhere:Mean(minutes)", 11, "there is no module 'nowhere'"),
        ('by = "station"', "by = 7", 5, "window.by is 7, wanted a text or a list of texts"),
        ('by = "station"', "by = = 7", 5, "this is no TOML"),
        ('by = "station"', 'by = "statoin"', 5, "window.by: unknown column 'statoin'. Did you mean 'station'?"),
        ('order_by = "ended"', "", 4, 'window.order_by is missing; write order_by = "ts"'),
        ('range = "1 hour"', 'range = "1 hour"\nsession = "1 hour"', 8, "it has range and session"),
        ("[sink]", "[snk]", 14, "in the file: unknown key 'snk'. Did you mean 'sink'?"),
        ("rides.csv", "none.csv", 2, "source.path: there is nothing at"),
        ("rides.csv", "rides.xyz", 1, "source.format is missing"),
        ('engine = "memory"', 'engine = "flink"', 18, "run.engine: unknown choice 'flink'"),
        ('engine = "memory"', 'engine = "memory"\n[stream]', 18, "[stream] needs Spark"),
        ('engine = "memory"', 'algorithm = "fba"', 18, "run.algorithm: unknown algorithm 'fba'. Did you mean 'fiba'?"),
        ('engine = "memory"', '[stream]\nlateness = "soon"', 19, "stream.lateness"),
        ('engine = "memory"', '[stream]\nlateness = "1 day"\nstate = "lmdb://near"', 20, "needs a path, and no host"),
        ('engine = "memory"', '[stream]\nlateness = "1 day"\nstate = "lmbd:///x"', 20, "Did you mean 'lmdb'?"),
        (
            'engine = "memory"',
            '[stream]\ncheckpoint = "c"\nstate = "lmdb:///x"\n[stream.seed]\npath = "h.csv"',
            21,
            "stream.seed needs Spark's own state",
        ),
        (
            'engine = "memory"',
            '[stream]\ncheckpoint = "c"\nseed = { format = "csv" }',
            20,
            "stream.seed.path is missing",
        ),
        (
            'engine = "memory"',
            '[stream]\ncheckpoint = "c"\nseed = { path = "none.csv" }',
            20,
            "stream.seed.path: there is nothing at",
        ),
        (
            '.parquet"\n\n[run]\nengine = "memory"',
            '"\nformat = "delta"\n[stream]\ncheckpoint = "c"\nstate = "lmdb:state"',
            16,
            "must replace what it wrote",
        ),
        ('engine = "memory"', '[stream]\nemit = "never"', 19, "stream.emit: unknown choice 'never'"),
        ('engine = "memory"', '[stream]\nemit = "eager"', 18, "stream.checkpoint is missing"),
    ],
)
def test_a_wrong_file_is_told_with_its_line(sash, pipeline, old, new, line, said):
    code, _, told = sash("run", pipeline((old, new)))
    assert code == 3, told
    assert f"rides.toml, line {line}: " in told
    assert said in told
    assert "Traceback" not in told


def test_a_file_that_is_not_there_is_told(sash, tmp_path):
    code, _, told = sash("run", tmp_path / "none.toml")
    assert (code, "there is no such file" in told) == (3, True)


def test_explain_names_source_algorithm_and_sink(sash, pipeline):
    code, printed, told = sash("explain", pipeline())
    assert code == 0, told
    assert "two_stacks_lite" in printed
    assert "minutes double" in printed
    assert "answers.parquet" in printed


def test_explain_does_without_the_files(sash, pipeline):
    code, printed, _ = sash("explain", pipeline(("rides.csv", "still_to_come.csv")))
    assert (code, "two_stacks_lite" in printed) == (0, True)
