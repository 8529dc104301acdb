"""Clocks and lines of history."""

import json

import pytest

from bench import measuring


@pytest.mark.parametrize(("changed", "shown"), [("", "4b13f05"), (" M sash/slide.py", "4b13f05+")])
def test_a_line_of_history_marks_a_tree_that_is_not_the_commit(changed, shown, tmp_path, monkeypatch):
    monkeypatch.setattr(measuring, "_git", lambda *words: changed if words[0] == "status" else "4b13f05")
    line = json.loads(measuring.record("made-up", [{"what": "a"}], folder=tmp_path).read_text())
    assert line["commit"] == shown
    assert {"machine", "cores", "memory_gb", "kernel", "python"} <= set(line)
    assert {"sash", "pyarrow", "java"} <= set(line["versions"])


def test_the_first_run_which_may_compile_is_not_timed_and_one_after_it_always_is(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(measuring.time, "perf_counter", lambda: now[0])
    taken = iter([90.0, 9.0, 50.0, 3.0, 2.0, 4.0])

    def run():
        now[0] += next(taken)

    assert measuring.timed(run, 1, repeats=3, budget_s=5).best == 9e9
    assert measuring.timed(run, 1, repeats=3, budget_s=20) == (2e9, 0.5)
