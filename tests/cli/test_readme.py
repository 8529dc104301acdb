"""The README keeps to what was measured, and what it shows is there."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PEERS = ("bottleneck", "pandas", "polars", "duckdb")


def runs(name="peers-columns"):
    """Of each run of an experiment the times, by panel and x."""
    for line in (ROOT / "bench" / "history" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines():
        times = {}
        for row in json.loads(line)["rows"]:
            times.setdefault((row["panel"], f"{row['x']:,}"), {})[row["series"]] = row["y"]
        yield times


def as_shown(times):
    """Our nanoseconds, and how many times as long each peer took."""
    ratios = [times[name] / times["sash"] if name in times else None for name in PEERS]
    return [
        f"{times['sash']:.2f}",
        *("" if each is None else f"{each:{'.1f' if each < 10 else ',.0f'}}" for each in ratios),
    ]


def shown():
    table = re.search(r"^\| aggregate \| rows in the window .*?\n\n", README, re.MULTILINE | re.DOTALL)[0]
    return [[cell.strip() for cell in line.strip("|\n").split("|")] for line in table.strip().splitlines()[2:]]


def test_all_figures_of_the_comparison_were_measured_in_one_run():
    assert len(shown()) == 15
    assert any(all(row[2:] == as_shown(times[row[0], row[1]]) for row in shown()) for times in runs())


def test_how_far_the_reference_is_behind_was_measured_in_one_run():
    least, most = re.search(
        r"C\+\+ reference of the algorithms' authors takes ([\d.]+) to ([\d.]+) times", README
    ).groups()
    ratios = [
        [
            times[theirs] / times[theirs.replace("C++", "sash")]
            for times in run.values()
            for theirs in times
            if "C++" in theirs
        ]
        for run in runs("peers-reference-queues")
    ]
    assert any(f"{min(run):.2g}" == least and f"{max(run):.2g}" == most for run in ratios)


def test_the_picture_is_there_and_fetches_nothing():
    picture = (ROOT / "docs" / "window.svg").read_text(encoding="utf-8")
    assert "docs/window.svg" in README
    assert not re.search(r"href|url\((?!#)|<script|https?://(?!www\.w3\.org/2000/svg)", picture)


def test_the_example_pipeline_runs(sash):
    code, printed, told = sash("run", ROOT / "examples" / "rides.toml")
    assert code == 0, told
    assert "21.5" in printed
