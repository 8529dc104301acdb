"""The page: what is in it; and in a real browser, that it draws without a complaint."""

import json
import re
import shutil
import subprocess

import pytest

pytest.importorskip("typer")  # the page is a part of the command line

from sash.cli.report import Plot, Section, Series, page

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
TIMES = [1_357_000_000 + 3_600 * hour for hour in range(48)]
LINES = Plot("Lines", TIMES, [Series("mean", [float(hour % 7) for hour in range(48)]),
                              Series("a flight", [None, *range(47)], "points", colour=5)], unit="min")  # fmt: skip
BARS = Plot("Bars", [0, 1, 2], [Series("n", [10, 0, 1000], "bars")], names=["a", "b", "c"], named="place", log=True)
SECTIONS = [
    Section("Numbers", "Words & <signs>.\n\nMore.", facts=[("rows", "1,000")]),
    Section("Pictures", plots=[LINES, BARS], choices={"one": LINES, "other": BARS}),
    Section("Table", tables=[[("a", "b"), ("1", "</script>")]]),
]


@pytest.fixture(scope="module")
def text():
    return page("A page", "For a test.", SECTIONS)


def test_a_page_asks_the_network_for_nothing(text):
    assert not re.search(r"""(?:src|href)\s*=|url\(|@import|https?://(?!github\.com/leeoniya/uPlot)""", text)
    assert "default-src 'none'" in text


def test_words_are_escaped(text):
    assert "Words &amp; &lt;signs&gt;." in text
    assert text.count("</script>") == 3


def test_the_data_of_the_plots_are_in_the_page(text):
    data = json.loads(re.search(r'<script id="plots" type="application/json">(.*?)</script>', text, re.DOTALL)[1])
    assert [list(data[0]), data[1]["title"], data[2]["title"]] == [["one", "other"], "Lines", "Bars"]
    assert data[1]["series"][1]["values"][:3] == [None, 0, 1]


def test_a_number_that_is_none_is_refused():
    with pytest.raises(ValueError, match="JSON compliant"):
        page("A page", "", [Section("x", plots=[Plot("x", [0], [Series("nan", [float("nan")])])])])


def browse(path, profile, *options):
    """Open a page: its document after all scripts ran, and what the console got."""
    command = [BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}",
               "--enable-logging=stderr", "--virtual-time-budget=3000", *options, path.as_uri()]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium on this machine")
@pytest.mark.parametrize("width", [1280, 500])
def test_a_browser_draws_every_plot_without_a_complaint(text, tmp_path, width):
    path = tmp_path / "page.html"
    path.write_text(text, encoding="utf-8")
    document, complaints = browse(path, tmp_path / "profile", "--dump-dom", f"--window-size={width},900")
    assert complaints == []
    assert 'data-drawn="3"' in document
    assert document.count("<canvas") == 3


@pytest.mark.skipif(BROWSER is None, reason="there is no Chromium on this machine")
def test_a_complaint_would_be_seen(text, tmp_path):
    path = tmp_path / "page.html"
    path.write_text(text.replace("data-drawn", "x").replace("root.dataset.drawn", "nothing.at.all"), encoding="utf-8")
    _, complaints = browse(path, tmp_path / "profile", "--dump-dom")
    assert any("nothing is not defined" in line for line in complaints)
