"""The report of a run and of a demo: sections from numbers that are known."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pa_parquet
import pytest

pytest.importorskip("typer")

from sash.cli import demo, flights, reporting
from sash.cli.exits import CommandError
from sash.cli.flights import MINUTE
from sash.cli.watching import Log, MicroBatch

BATCHES = [
    MicroBatch(number, "2013-01-01T00:00:00Z", 1_000, 500, 0, 1_010, 10, 0, 20, 100, "2013-01-01T00:00:00Z")
    for number in range(3)
]


@pytest.fixture(autouse=True)
def _interpreted(monkeypatch):
    monkeypatch.setenv("SASH_JIT", "0")


def test_a_log_keeps_the_last_note_of_each_micro_batch(tmp_path):
    log = Log(tmp_path / "log.jsonl")
    for batch in [*BATCHES, BATCHES[1]]:
        log.add(batch)
    assert log.read() == BATCHES


def test_half_a_line_of_a_process_that_was_killed_is_passed_over_and_harms_no_other(tmp_path):
    log = Log(tmp_path / "log.jsonl")
    for batch in BATCHES[:2]:
        log.add(batch)
    log.path.write_text(log.path.read_text()[:-20])
    assert log.read() == BATCHES[:1]
    for batch in BATCHES[1:]:
        log.add(batch)
    assert log.read() == BATCHES


def test_a_log_becomes_a_page(tmp_path):
    log = Log(tmp_path / "log.jsonl")
    for batch in BATCHES:
        log.add(batch)
    written = reporting.write_report(tmp_path / "log.jsonl", None)
    assert written == tmp_path / "log.html"
    assert "Seconds a micro-batch" in written.read_text()


def test_an_empty_log_is_told(tmp_path):
    (tmp_path / "log.jsonl").touch()
    with pytest.raises(CommandError, match="notes no micro-batch"):
        reporting.write_report(tmp_path / "log.jsonl", None)


def made_up(n_flights=400):
    """Flights from a fixed seed, as flights.load gives them: two rows each, in order of departure."""
    random = np.random.default_rng(2013)
    scheduled = np.sort(random.integers(0, 20 * 1_440, n_flights)) * MINUTE + 1_357_000_000_000_000
    delay = random.integers(-5, 300, n_flights)
    table = pa.table({
        "origin": random.choice(["EWR", "JFK"], n_flights).tolist(),
        "carrier": random.choice(["UA", "DL"], n_flights).tolist(),
        "flight": [f"UA {number}" for number in range(n_flights)],
        "dest": ["IAH"] * n_flights,
        "scheduled": pa.array(scheduled).cast(pa.timestamp("us", "UTC")),
        "departed": pa.array(scheduled + delay * MINUTE).cast(pa.timestamp("us", "UTC")),
        "delay": pa.array(delay),
    })  # fmt: skip
    rows = flights._twice(table.take(pa.array(np.argsort(scheduled + delay * MINUTE, kind="stable"))))
    return flights.Flights(rows, n_flights, 7, {"UA": "United", "DL": "Delta"})


@pytest.fixture
def finished(tmp_path, monkeypatch):
    """The directory of a demo whose stream answered as batch does, and gave a few wrong answers before."""
    loaded = made_up()
    monkeypatch.setattr(flights, "load", lambda months: loaded)
    answers = flights.spec("revise")(loaded.rows)
    right = answers.append_column("revision", pa.array(np.ones(answers.num_rows, np.int32)))
    early = answers.slice(0, 50).append_column("revision", pa.array(np.zeros(50, np.int32)))
    wrong = early.schema.get_field_index("flights_day")
    early = early.set_column(wrong, early.schema.field(wrong), pa.array([99] * 50))
    pa_parquet.write_table(pa.concat_tables([right, early]), tmp_path / "part.parquet")
    for batch in BATCHES:
        Log(tmp_path / demo.LOG).add(batch)
    note = {"months": 1, "emit": "revise", "written": True, "done": False}
    return tmp_path, note, loaded


def test_the_last_revision_is_what_is_compared_with_batch(finished):
    directory, note, loaded = finished
    checked, _ = demo.check(directory, note, loaded, [str(directory / "part.parquet")])
    assert (checked.rows, checked.different, checked.unanswered) == (800, 0, 0)
    assert (checked.answers, checked.revisions, checked.late) == (850, 30, 0)
    assert "800 rows compared" in demo.verdict(checked)


def test_a_wrong_answer_is_found(finished):
    directory, note, loaded = finished
    given = pa_parquet.read_table(directory / "part.parquet")
    means = given["mean_hour"].to_numpy().copy()
    means[700] += 1
    place = given.column_names.index("mean_hour")
    pa_parquet.write_table(given.set_column(place, "mean_hour", pa.array(means)), directory / "part.parquet")
    checked, _ = demo.check(directory, note, loaded, [str(directory / "part.parquet")])
    assert checked.different == 1
    assert "DIFFERS" in demo.verdict(checked)


def test_a_demo_that_is_done_becomes_a_page_with_all_its_sections(finished):
    directory, note, loaded = finished
    files = [str(directory / "part.parquet")]
    checked, _ = demo.check(directory, note, loaded, files)
    demo.keep(directory, note | {"done": True, "checked": checked._asdict(), "files": files, "seconds": 1.0})
    text = reporting.write_report(directory, None).read_text()
    titles = ["What came out", "Delay over time", "A week around the worst day", "How disordered they came",
              "Micro-batches", "The worst flights", "Which algorithm, and why"]  # fmt: skip
    assert [title for title in titles if f"<h2>{title}</h2>" not in text] == []
    assert "two_stacks_lite" in text


def test_a_demo_that_is_not_done_has_no_report(finished):
    directory, note, _ = finished
    demo.keep(directory, note)
    with pytest.raises(CommandError, match="no demo that is done"):
        reporting.write_report(directory, None)


def test_a_demo_goes_on_until_it_is_done_and_then_begins_anew(tmp_path):
    wanted = {"months": 1, "emit": "revise"}
    note = demo.prepare(tmp_path, wanted, fresh=False)
    demo.keep(tmp_path, note | {"written": True})
    assert demo.prepare(tmp_path, wanted, fresh=False)["written"]
    assert not demo.prepare(tmp_path, wanted, fresh=True)["written"]
    demo.keep(tmp_path, note | {"written": True, "done": True})
    assert not demo.prepare(tmp_path, wanted, fresh=False)["written"]


@pytest.mark.parametrize("phase", ["load", "write_arrivals", "stream", "check", "write_report"])
def test_a_demo_broken_off_in_any_phase_goes_on_and_keeps_what_was_answered(finished, monkeypatch, phase):
    directory = finished[0] / "demo"
    answers = directory / demo.ANSWERS / "part.parquet"

    def stream(*given):
        answers.parent.mkdir(exist_ok=True)
        if not answers.exists():
            (finished[0] / "part.parquet").replace(answers)
        return [str(answers)]

    def interrupted(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "stream", stream)
    with monkeypatch.context() as patched:
        patched.setattr(flights if hasattr(flights, phase) else demo, phase, interrupted)
        with pytest.raises(KeyboardInterrupt):
            demo.run(directory, quick=True, emit="revise", fresh=False)
    assert answers.exists() == (phase in ("check", "write_report"))
    demo.run(directory, quick=True, emit="revise", fresh=False)
    assert (directory / "report.html").exists()
    assert json.loads((directory / demo.NOTE).read_text())["done"]


def test_a_demo_does_not_go_on_with_another_or_into_a_directory_of_someone_elses(tmp_path):
    demo.prepare(tmp_path / "demo", {"months": 1, "emit": "revise"}, fresh=False)
    with pytest.raises(CommandError, match="unfinished demo"):
        demo.prepare(tmp_path / "demo", {"months": 12, "emit": "revise"}, fresh=False)
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "photo.jpg").touch()
    with pytest.raises(CommandError, match="no demo's"):
        demo.prepare(tmp_path / "photos", {"months": 1, "emit": "revise"}, fresh=False)
    assert json.loads((tmp_path / "demo" / demo.NOTE).read_text())["months"] == 1


def test_rows_are_behind_the_newest_that_came_before_them():
    times = pa.array(np.array([0, 10, 5, 20, 0]) * MINUTE).cast(pa.timestamp("us", "UTC"))
    assert flights.behind(pa.table({"scheduled": times})).tolist() == [0, 0, 5, 0, 20]


def test_arrivals_are_files_in_the_order_of_their_times(tmp_path):
    rows = made_up(100).rows
    flights.write_arrivals(rows, tmp_path, 7)
    files = sorted(tmp_path.glob("*.parquet"), key=lambda path: path.stat().st_mtime)
    assert pa.concat_tables([pa_parquet.read_table(path) for path in files])["n"].to_pylist() == list(range(200))
