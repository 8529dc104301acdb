"""The C++ reference: what is said where it is absent, what is claimed, and, where it is there, that answers agree."""

import pytest

pytest.importorskip("typer")

from bench.experiments import reference
from bench.experiments.contract import Size, point
from bench.registry import EXPERIMENTS, lacks

NAMES = ("peers-reference-queues", "peers-reference-trees")


def test_where_there_is_no_clone_it_is_left_out_and_said_where_it_belongs(tmp_path, monkeypatch):
    monkeypatch.setattr(reference, "ENGINES", tmp_path)
    monkeypatch.setenv("CXX", "sh")  # something that is there
    assert "git clone" in lacks(EXPERIMENTS[NAMES[0]])
    (tmp_path / "reference" / "cpp" / "src").mkdir(parents=True)
    (tmp_path / "reference" / "cpp" / "src" / "FiBA.hpp").touch()
    assert lacks(EXPERIMENTS[NAMES[1]]) == ""
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert "no-such-compiler" in lacks(EXPERIMENTS[NAMES[1]])


def test_a_program_that_does_not_compile_is_said_to(tmp_path, monkeypatch):
    monkeypatch.setattr(reference, "ENGINES", tmp_path)
    monkeypatch.setenv("CXX", "false")
    with pytest.raises(RuntimeError, match="ended with 1"):
        reference.library.__wrapped__()


def test_a_claim_holds_only_if_the_reference_is_behind_everywhere():
    rows = [
        point("sum", f"{series}, daba", n, ns)
        for series, times in (("sash", (5.0, 6.0)), ("C++", (10.0, 5.0)))
        for n, ns in zip((1_024, 2_048), times, strict=True)
    ]
    (both,) = reference._claims(rows)
    (first,) = reference._claims([row for row in rows if row["x"] == 1_024])
    assert (both.holds, first.holds) == (False, True)
    assert "2 times" in first.measured


@pytest.mark.skipif(bool(reference.lack()), reason="there is no clone of the reference")
@pytest.mark.parametrize("name", NAMES)
def test_its_answers_are_ours(name):
    rows = list(EXPERIMENTS[name].run(Size.TINY))  # compares them first
    assert {row["series"].partition(", ")[0] for row in rows} == {"sash", "C++"}


@pytest.mark.skipif(bool(reference.lack()), reason="there is no clone of the reference")
def test_other_answers_are_not_timed():
    with pytest.raises(AssertionError, match="the reference answers"):
        reference._require_same("a sum", [1.0, 2.0], [1.0, 3.0])
    with pytest.raises(LookupError, match="no 'b_tree'"):
        reference.Window("b_tree", "sum")
