"""The README keeps to what was measured, and what it shows is there."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PEERS = ("bottleneck", "pandas", "polars", "duckdb")


def measured():
    lines = (ROOT / "bench" / "history" / "slide.jsonl").read_text(encoding="utf-8").splitlines()
    return [row for line in lines for row in json.loads(line)["rows"] if "rows" in row]


def shown():
    table = re.search(r"^\| aggregate \| rows in the window .*?\n\n", README, re.MULTILINE | re.DOTALL)[0]
    return [[cell.strip() for cell in line.strip("|\n").split("|")] for line in table.strip().splitlines()[2:]]


def test_every_figure_of_the_comparison_was_measured():
    known = [
        [row["what"], f"{row['rows']:,}", *(f"{row[name]:g}" if name in row else "" for name in ("sash_ns", *PEERS))]
        for row in measured()
    ]
    assert len(shown()) == 10
    assert [row for row in shown() if row not in known] == []


def test_the_picture_is_there_and_fetches_nothing():
    picture = (ROOT / "docs" / "window.svg").read_text(encoding="utf-8")
    assert "docs/window.svg" in README
    assert not re.search(r"href|url\((?!#)|<script|https?://(?!www\.w3\.org/2000/svg)", picture)


def test_the_example_pipeline_runs(sash):
    code, printed, told = sash("run", ROOT / "examples" / "rides.toml")
    assert code == 0, told
    assert "21.5" in printed
