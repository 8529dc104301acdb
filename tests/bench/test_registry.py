"""Every experiment: that it is named, that it says what is claimed and by whom, and that it runs."""

import pytest

pytest.importorskip("typer")  # the page is that of the command line

from bench import running
from bench.experiments.contract import Experiment, Size
from bench.measuring import last_run
from bench.registry import EXPERIMENTS, LARGE, ON_SPARK, SUITES, lacks

OF_PAPERS = [each for each in EXPERIMENTS.values() if each.paper and each.needs != "spark"]
NEEDED = {"peers-events": "river"} | {each.name: "lmdb" for each in OF_PAPERS if each.name.startswith("mta")}
COVERED = {
    "mta": ["exp1", "exp2", "exp3", "exp4", "exp5"],
    "daba": ["table1", "fig18-throughput", "fig18-latency", "table2"],
    "reactive": ["table3", "fig6", "fig7", "fig8", "fig9", "fig10", "fig11", "fig12", "table4"],
    "pba": ["fig4", "fig5", "fig6", "fig7", "table2-table3"],
    "fiba": ["fig11", "fig12", "fig13", "fig14", "fig15"],
    "peers": ["columns", "events"],
}


def test_every_table_and_figure_has_an_experiment():
    wanted = [f"{paper}-{each}" for paper, parts in COVERED.items() for each in parts]
    assert [each for each in wanted if not any(name.startswith(each) for name in EXPERIMENTS)] == []


def test_suites_are_in_the_same_list_and_no_name_is_taken_twice():
    assert {name.replace("_", "-") for name in [*SUITES, *LARGE, *ON_SPARK]} <= set(EXPERIMENTS)
    assert "report" not in EXPERIMENTS  # what `sash bench report` means
    assert all(name == each.name for name, each in EXPERIMENTS.items())


@pytest.mark.parametrize("experiment", OF_PAPERS, ids=lambda each: each.name)
def test_an_experiment_says_who_claims_what_where(experiment):
    assert all([experiment.title, experiment.paper, experiment.reference, experiment.claim])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.mark.parametrize("experiment", OF_PAPERS, ids=lambda each: each.name)
def test_a_tiny_run_gives_rows_and_claims(experiment, folder, monkeypatch, capsys):
    if lacks(experiment):
        pytest.skip(lacks(experiment))
    pytest.importorskip(NEEDED.get(experiment.name, "numpy"))
    monkeypatch.setenv("SASH_JIT", "0")
    monkeypatch.setattr(running, "QUICK", folder)
    rows, claims = running.run_one(experiment, Size.TINY, experiment.name)
    assert rows
    assert claims
    assert all(claim.said and claim.measured for claim in claims)
    if experiment.axes is not None:
        assert all(set(row) == {"panel", "series", "x", "y", "unit", "spread"} for row in rows)
    noted = last_run(experiment.name, folder)
    assert len(noted["rows"]) == len(rows)
    assert capsys.readouterr().out.count("measured: ") == len(claims)


def test_one_that_fails_does_not_keep_the_others_from_running(folder, monkeypatch, capsys):
    def fails(size):
        yield {"what": "a row"}
        raise ZeroDivisionError("in the middle")

    def runs(size):
        yield {"what": "another"}

    monkeypatch.setattr(running, "QUICK", folder)
    both = [Experiment("fails", "One", fails), Experiment("runs", "Other", runs)]
    assert running.run_all(both, Size.TINY) == ["fails"]
    assert "in the middle" in capsys.readouterr().out
    assert last_run("runs", folder)["rows"] == [{"what": "another"}]
    assert last_run("fails", folder) is None
