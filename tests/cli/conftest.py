"""The command line in this process: what it prints and how it ends."""

from __future__ import annotations

import pytest

typer_testing = pytest.importorskip("typer.testing")
app = pytest.importorskip("sash.cli.app").app

RIDES = """station,ended,minutes,bike
Grove,2018-06-01 08:00:00,12.0,B17
Hamilton,2018-06-01 08:10:00,7.5,B04
Grove,2018-06-01 08:40:00,31.0,B29
Grove,2018-06-01 09:30:00,8.0,B17
"""
PIPELINE = """[source]
path = "rides.csv"

[window]
by = "station"
order_by = "ended"
range = "1 hour"

[aggregates]
rides = "count()"
mean = "mean(minutes)"
longest = "argmax(minutes, bike)"

[sink]
path = "answers.parquet"

[run]
engine = "memory"
"""


@pytest.fixture(autouse=True)
def _interpreted(monkeypatch):
    """Four rows need no machine code."""
    monkeypatch.setenv("SASH_JIT", "0")


@pytest.fixture
def sash(capfd):
    """Call a command: its exit code, what it printed, and what it told."""

    def call(*words):
        done = typer_testing.CliRunner().invoke(app, [str(word) for word in words])
        printed = capfd.readouterr()
        return done.exit_code, done.stdout + printed.out, getattr(done, "stderr", "") + printed.err

    return call


@pytest.fixture
def pipeline(tmp_path):
    """Write a pipeline and its rides, with some of its text replaced."""

    def write(*replacements, text=PIPELINE):
        for old, new in replacements:
            assert old in text
            text = text.replace(old, new)
        (tmp_path / "rides.csv").write_text(RIDES)
        path = tmp_path / "rides.toml"
        path.write_text(text)
        return path

    return write
