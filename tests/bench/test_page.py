"""The page of the experiments: what is in it, and that a real browser draws it without a complaint."""

import json
import platform

import numpy as np
import pytest

pytest.importorskip("typer")  # the page is that of the command line

from bench import running
from bench.experiments.contract import Axes, Claim, Experiment, point
from bench.measuring import record
from bench.page import page_of
from tests.report.test_page import BROWSER, browse

SIZES = [2**k for k in range(0, 21, 4)]
CURVE = Experiment(
    "made-up-curve", "A curve", run=None, paper="A paper", reference="figure 1", claim="flat", axes=Axes("window")
)
LATENCY = Experiment(
    "made-up-latency", "Spikes", None, "A paper", "figure 2", "spikes", axes=Axes("round", False, True)
)
TABLE = Experiment("made-up-table", "A table", None, "A paper", "table 1", "numbers")
SUITE = Experiment("made-up-suite", "A suite", None)
LABELS = ("fiba, min-arity 2", "fiba, min-arity 4", "daba", "daba_lite", "recalc")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    claims = [Claim("it is flat", "0.01 ± 0.02", True), Claim("it is <fast>", "it is not", False, "the weather")]
    noted = {"folder": folder, "seconds": 90.0, "claims": [each._asdict() for each in claims]}
    rows = [point("sum", label, n, (10.0 + k, 0.1)) for k, label in enumerate(LABELS) for n in SIZES]
    rows[0]["spread"] = 0.2
    readings = (("two readings", 24.0), ("three readings", 24.0), ("four readings", 30.0))
    clock = [point("clock", label, 0, ticks, "ticks") for label, ticks in readings]
    record(CURVE.name, [*clock, *rows], **noted)
    spikes = [point("sum", "daba", place, 10.0 ** (k - 1), "ticks") for k, place in enumerate((1, 2, 5, 10, 50))]
    record(LATENCY.name, spikes, folder=folder)
    record(TABLE.name, [{"function": "sum", "mean": 1234.5}], folder=folder)
    quick = [Claim("the suite is quick", "1 s", True)._asdict()]
    record(
        SUITE.name, [{"what": "a", "ns": 1.0}, {"what": "b", "ratio": 2.0}], folder=folder, claims=quick, seconds=7.0
    )
    return folder


@pytest.fixture(scope="module")
def text(folder):
    return page_of([CURVE, LATENCY, TABLE, SUITE], folder)


def test_every_claim_is_in_the_page_and_those_that_do_not_hold_come_first(text):
    assert text.count("it is &lt;fast&gt;") == 2
    assert text.count("it is flat") == 1
    assert text.index("the weather") < text.index("A curve (made-up-curve)")
    assert "<dd>1</dd><dt>do not hold</dt>" in text


def test_plots_have_a_logarithmic_axis_by_places_and_names_for_them(text):
    data = json.loads(text.split('<script id="plots" type="application/json">')[1].split("</script>")[0])
    titles = ["sum: ns (noise 10%, at most 20%)", "sum: ticks"]  # a single point is no plot
    assert [plot["title"] for plot in data] == titles
    assert data[0]["x"] == [0, 1, 2, 3, 4, 5]
    assert data[0]["names"] == ["1", "16", "256", "2^12", "2^16", "2^20"]
    assert data[1]["log"]


def test_an_axis_that_is_not_logarithmic_is_by_values(text):
    data = json.loads(text.split('<script id="plots" type="application/json">')[1].split("</script>")[0])
    assert data[1]["x"] == [1, 2, 5, 10, 50]
    assert data[1]["names"] == ["1", "2", "5", "10", "50"]


def test_what_has_no_curve_is_a_fact_and_equal_ones_are_told_together(text):
    assert "<dd>24 ticks</dd><dt>clock: two readings, three readings</dt>" in text
    assert "<dd>30 ticks</dd><dt>clock: four readings</dt>" in text


def test_the_machine_and_the_libraries_are_told(text):
    assert f"numpy {np.__version__}" in text
    assert f"Python {platform.python_version()}" in text
    assert "absent" not in text.split("What holds")[1].split("</p>")[0]


def test_how_long_each_took_is_told_of_experiments_and_of_suites(text):
    assert "90 s." in text.split("A curve (made-up-curve)")[1]
    assert "7 s." in text.split("A suite (made-up-suite)")[1]


def test_claims_of_suites_are_told_like_others(text):
    assert text.count("the suite is quick") == 1
    assert "<th>what we say</th>" in text


def test_variants_of_an_algorithm_share_its_colour_and_differ_in_width(text):
    data = json.loads(text.split('<script id="plots" type="application/json">')[1].split("</script>")[0])
    looks = [(each["colour"], each["width"]) for each in data[0]["series"]]
    assert looks == [(1, 1.5), (1, 3.0), (2, 1.5), (2, 3.0), (3, 1.5)]


def test_rows_of_a_suite_become_a_table_for_each_kind(text):
    assert "<th>what</th><th>ns</th>" in text
    assert "<th>what</th><th>ratio</th>" in text
    assert "1,234" in text or "1,235" in text


def test_nothing_measured_says_how_to_measure(tmp_path):
    assert "sash bench --all" in page_of([CURVE], tmp_path)


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium on this machine")
@pytest.mark.parametrize("width", [1280, 500])
def test_a_browser_draws_every_plot_without_a_complaint(text, tmp_path, width):
    path = tmp_path / "page.html"
    path.write_text(text, encoding="utf-8")
    document, complaints = browse(path, tmp_path / "profile", "--dump-dom", f"--window-size={width},900")
    assert complaints == []
    assert 'data-drawn="2"' in document
    assert document.count("<canvas") == 2


def test_the_page_is_written_where_it_is_wanted(folder, tmp_path, monkeypatch):
    monkeypatch.setattr(running, "HISTORY", folder)
    assert running.write_report(tmp_path / "new" / "page.html").read_text().startswith("<!doctype html>")
