"""Every experiment: that it is named, that it says what is claimed and by whom, and that it runs."""

import subprocess
import sys

import pytest

pytest.importorskip("typer")  # the page is that of the command line


from bench import registry, running
from bench.bars import at_least, at_most, of
from bench.children import run_within
from bench.experiments import engines
from bench.experiments.contract import Claim, Experiment, Size
from bench.measuring import last_run, record
from bench.registry import EXPERIMENTS, LARGE, ON_SPARK, SUITES, is_on_spark, lacks

OF_PAPERS = [each for each in EXPERIMENTS.values() if each.paper and not is_on_spark(each)]
NEEDED = {"peers-events": "river"} | {each.name: "lmdb" for each in OF_PAPERS if each.name.startswith("mta")}
COVERED = {
    "mta": ["exp1", "exp2", "exp3", "exp4", "exp5"],
    "daba": ["table1", "fig18-throughput", "fig18-latency", "table2"],
    "reactive": ["table3", "fig6", "fig7", "fig8", "fig9", "fig10", "fig11", "fig12", "table4"],
    "pba": ["fig4", "fig5", "fig6", "fig7", "table2-table3", "fig8"],
    "fiba": ["fig11", "fig12", "fig13", "fig14", "fig15", "fig16", "fig17", "fig18"],
    "peers": ["columns", "events", "engines"],
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
    rows, claims = running.run_one(experiment, Size.TINY)
    assert rows
    assert claims
    assert all(claim.said and claim.measured for claim in claims)
    if experiment.axes is not None:
        assert all(set(row) == {"panel", "series", "x", "y", "unit", "spread"} for row in rows)
    noted = last_run(experiment.name, folder)
    assert len(noted["rows"]) == len(rows)
    assert capsys.readouterr().out.count("measured: ") == len(claims)


def test_one_that_fails_is_said_to_and_not_noted(folder, monkeypatch, capsys):
    def fails(size):
        yield {"what": "a row"}
        raise ZeroDivisionError("in the middle")

    monkeypatch.setattr(running, "QUICK", folder)
    assert running.run_all([Experiment("fails", "One", fails)], Size.TINY) == ["fails"]
    assert "in the middle" in capsys.readouterr().out
    assert last_run("fails", folder) is None


def test_all_is_what_is_not_large_and_quick_leaves_out_suites_and_spark():
    everything = [each.name for each in running.chosen([], everything=True)]
    assert {"spark", "stream", "fiba-fig16", "pba-fig8", "peers-engines", "slide"} <= set(everything)
    assert "mta-large" not in everything
    quick = running.chosen([], everything=True, quick=True)
    assert not any(is_on_spark(each) or each.name in SUITES for each in quick)


def test_where_no_engine_is_installed_they_are_left_out_and_said_to_be(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "find_spec", lambda name: name)
    monkeypatch.setattr(engines, "ENGINES", tmp_path)
    assert "make bench-engines" in lacks(EXPERIMENTS["peers-engines"])
    (tmp_path / "flink" / "bin").mkdir(parents=True)
    (tmp_path / "flink" / "bin" / "python").touch()
    assert lacks(EXPERIMENTS["peers-engines"]) == ""


def test_several_run_in_processes_of_their_own(monkeypatch, capsys, tmp_path):
    started = []
    monkeypatch.setattr(running, "lacks", lambda experiment: "")
    monkeypatch.setattr(running, "QUICK", tmp_path)

    def run_within(command, limit_s):
        started.append(command[2:])
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(running, "run_within", run_within)
    assert running.main(["slide", "stream"], everything=False, quick=True) == 0
    assert started == [["bench", "slide", "--quick"], ["bench", "stream", "--quick"]]
    last = capsys.readouterr().out.splitlines()[-1].removeprefix("[1/2, 0 min] [2/2, 0 min] ")  # what ran says the rest
    assert last == "2 of 2 experiments in 0.0 minutes: 0 claims hold, 0 do not"


def test_one_that_ends_badly_or_never_does_not_keep_the_others_from_running(monkeypatch, capsys):
    def run_within(command, limit_s):
        if "spark" in command:
            return subprocess.CompletedProcess(command, 1)
        raise subprocess.TimeoutExpired(command, limit_s)

    monkeypatch.setattr(running, "lacks", lambda experiment: "")
    monkeypatch.setattr(running, "run_within", run_within)
    assert running.run_all([EXPERIMENTS["spark"], EXPERIMENTS["stream"]], Size.TINY) == ["spark", "stream"]
    assert capsys.readouterr().out.count("FAILED") == 2


def test_a_program_that_never_ends_is_ended_and_what_it_printed_is_kept():
    program = "import sys, threading; print('a line', flush=True); threading.Event().wait()"
    with pytest.raises(subprocess.TimeoutExpired):
        run_within([sys.executable, "-c", program], 0.01, stdout=subprocess.PIPE)
    done = run_within([sys.executable, "-c", "print('all')"], 100, stdout=subprocess.PIPE)
    assert (done.stdout, done.returncode) == ("all\n", 0)


def test_the_last_line_of_a_run_counts_its_claims(tmp_path):
    claims = [Claim("a", "1", True)._asdict(), Claim("b", "2", False)._asdict()]
    record("one", [], folder=tmp_path, claims=claims)
    said = running.summary(["one", "never noted"], ["other"], 90, tmp_path)
    assert said == "2 of 3 experiments in 1.5 minutes: 1 claims hold, 1 do not; not: other"


def test_what_a_machine_lacks_is_left_out_of_all_but_not_of_what_is_named(monkeypatch, capsys):
    monkeypatch.setattr(running, "lacks", lambda experiment: "it is not there")
    assert running.main([], everything=True, quick=True) == 0
    assert running.main(["slide"], everything=False, quick=True) == 1
    assert "left out, it is not there" in capsys.readouterr().out


def test_a_bar_is_the_worst_of_what_was_found_and_words_are_never_within_it():
    rows = [{"what": "a", "rows": 16, "x": 2.0}, {"what": "b", "rows": 1024, "x": 3.0}, {"what": "b"}]
    claim = at_most("x is small", of(rows, "x", "what", "rows"), 3, noise=0.1)
    assert (claim.holds, claim.measured) == (True, "at most 3 (b, 1,024) of 2, noise 10%")
    assert not at_most("x is smaller", of(rows, "x", "what"), 2.9).holds
    assert at_least("x is large", of(rows, "x", "what"), 2).holds
    assert not at_least("x is large", [("a", 5.0), ("b", "differs")], 2).holds
    assert not at_most("y is there", of(rows, "y", "what"), 1).holds
