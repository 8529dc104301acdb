"""Other engines: what is asked of them, what becomes of one that is too slow, and what is claimed then."""

import json
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("typer")
pytest.importorskip("pyarrow")

from bench.experiments import engines
from bench.experiments.contract import point
from bench.experiments.engines import DIFFER, FUNCTIONS, OTHERS, OURS, OVER, Ask, Folders

FLINK = "Flink SQL OVER, batch"
ASKS = [Ask(Path("rows"), 100, function, seconds, 2) for seconds in (10, 100) for function in FUNCTIONS]
FEW = [Ask(Path("few"), 20, function, 10, 0) for function in FUNCTIONS]


@pytest.fixture
def printed(monkeypatch):
    """Let an engine print some lines before its time is over."""

    def prints(*lines, is_over=True):
        def run_within(command, limit_s, **options):
            asked.append(json.loads(command[-1]))
            if is_over:
                raise subprocess.TimeoutExpired(command, limit_s, "".join(f"{line}\n" for line in lines))
            return subprocess.CompletedProcess(command, 0, "".join(f"{line}\n" for line in lines))

        asked = []
        monkeypatch.setattr(engines, "run_within", run_within)
        monkeypatch.setattr(engines, "python_of", lambda engine: Path("python"))
        monkeypatch.setattr(engines, "_with_java", dict)
        monkeypatch.setattr(engines, "version_of", lambda engine: "1.0")
        return asked

    return prints


def test_an_engine_is_asked_for_all_windows_at_once_and_tells_line_by_line(printed):
    asked = printed("a warning", '{"answers": []}', '{"seconds": [2, 1]}', is_over=False)
    assert engines.told(FLINK, [FEW[0], ASKS[0]]) == [{"answers": []}, {"seconds": [2, 1]}]
    assert [each["seconds"] for each in asked[0]["asks"]] == [10, 10]
    assert asked[0]["mode"] == "batch"


def test_what_an_engine_told_before_its_time_was_over_is_kept_and_half_a_line_is_not(printed):
    printed('{"seconds": [2, 1]}', '{"seco')
    assert engines.told(FLINK, ASKS) == [{"seconds": [2, 1]}]


def test_an_engine_that_fails_tells_why(printed, monkeypatch):
    printed()

    def fails(command, limit_s, stderr=None, **options):
        stderr.write("no such table")
        return subprocess.CompletedProcess(command, 3, "")

    monkeypatch.setattr(engines, "run_within", fails)
    with pytest.raises(RuntimeError, match="ended with 3: no such table"):
        engines.told(FLINK, ASKS)


def test_windows_that_an_engine_did_not_reach_are_reported_as_such(printed, monkeypatch):
    printed('{"answers": []}', '{"answers": []}', '{"seconds": [2, 1]}')
    monkeypatch.setattr(engines, "_agrees", lambda bench, ask, told: ask.function == "max")
    rows = list(engines._theirs(None, FLINK, FEW, ASKS))
    found = {(row["panel"], row["x"]): (row["series"], row["y"]) for row in rows}
    assert found["max", 10] == (FLINK, 100.0)
    assert found["max", 100] == (f"{FLINK}, {OVER}", 0.0)
    assert found["sum", 10] == (f"{FLINK}, {DIFFER}", 0.0)


def test_claims_are_of_the_windows_that_were_reached_and_name_the_others():
    ours = [point("max", OURS[1], seconds, 500.0) for seconds in (10, 100)]
    rows = [*ours, point("max", FLINK, 10, 100.0), point("max", f"{FLINK}, {OVER}", 100, 0.0)]
    (claim,) = engines._claims(rows)
    assert claim.holds
    assert f"{OVER} at 100 rows" in claim.measured
    (claim,) = engines._claims([*ours, point("max", f"{FLINK}, {OVER}", 10, 0.0)])
    assert not claim.holds
    assert "not reached any window" in claim.why
    (claim,) = engines._claims([*ours, point("max", f"{FLINK}, {DIFFER}", 10, 0.0)])
    assert not claim.holds


def test_pathway_gets_rows_enough_to_fill_its_windows_and_no_more(tmp_path):
    assert set(OTHERS) == {"Flink SQL OVER, stream", FLINK, "Pathway"}
    for seconds, (rows, keys) in engines.BY_PAIRS.items():
        assert rows // keys >= 2 * seconds
    folders = Folders(tmp_path)
    path, n = folders.share("Pathway", 10**6, 1_000)
    assert n == 2_000
    assert sum(len(each.read_text().splitlines()) for each in (path / "by_key").iterdir()) == n
    assert folders.share(FLINK, 300, 1_000)[1] == 300
    assert folders.of(300) == folders.of(300)
