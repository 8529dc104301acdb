"""`sash bench` in a clone and elsewhere, and `python -m bench`."""

import subprocess
import sys
from pathlib import Path

import pytest

typer_testing = pytest.importorskip("typer.testing")
app = pytest.importorskip("sash.cli.app").app

ROOT = Path(__file__).parents[2]


@pytest.fixture
def sash(monkeypatch):
    monkeypatch.setenv("SASH_JIT", "0")

    def run(*words, at=ROOT):
        monkeypatch.chdir(at)
        done = typer_testing.CliRunner().invoke(app, ["bench", *map(str, words)])
        return done.exit_code, done.output

    return run


def test_without_a_name_a_clone_lists_what_there_is(sash):
    code, printed = sash()
    assert code == 0
    assert "daba-fig18-throughput" in printed
    assert "needs Spark" in printed


def test_an_unknown_name_is_told_with_those_there_are(sash):
    code, printed = sash("no-such-experiment")
    assert code == 2
    assert "unknown experiment 'no-such-experiment'; choose from: mta-exp1-constant-size" in " ".join(printed.split())


def test_elsewhere_a_name_says_where_experiments_are(sash, tmp_path):
    code, printed = sash("daba-fig18-throughput", at=tmp_path)
    assert code == 4
    assert "is no clone of it" in printed


def test_elsewhere_without_a_name_a_few_windows_are_timed(sash, tmp_path):
    code, printed = sash("--rows", "2000", at=tmp_path)
    assert (code, "geometric mean" in printed) == (0, True)


def test_report_draws_the_page_of_history(sash, tmp_path):
    code, printed = sash("report", "--output", tmp_path / "page.html")
    assert (code, "report: " in printed) == (0, True)
    assert "The papers, measured again" in (tmp_path / "page.html").read_text()


def test_the_module_does_the_same():
    done = subprocess.run([sys.executable, "-m", "bench"], cwd=ROOT, capture_output=True, text=True, check=True)
    assert "fiba-fig11-distance" in done.stdout
