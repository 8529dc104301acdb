"""The loops that are timed do what they say: their answers are those of windows recalculated one by one."""

import numpy as np
import pytest

import sash
from bench import b_int, cycles
from bench.experiments import daba, pba, reactive
from bench.experiments.contract import Size
from bench.experiments.fiba import by_time
from bench.experiments.mta import TREES, Policed, _beside_memory, readings, to_limit, types_of
from bench.fifo_rounds import FifoRounds, copied
from bench.tree_rounds import LateRounds, TreeRounds, moves, run_alike, run_moves, trees_of
from sash.engine.trees import new_tree
from sash.testing.monoids import Affine


@pytest.fixture(autouse=True)
def _interpreted(monkeypatch):
    monkeypatch.setenv("SASH_JIT", "0")


def recalculated(values, n, aggregate):
    window = sash.aggregator("recalc", aggregate)
    for value in values:
        if len(window) == n:
            window.evict()
        window.insert(value)
        yield window.query()


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 13])
@pytest.mark.parametrize("algorithm", ["daba", "reactive", b_int.ALGORITHM])
def test_rounds_answer_as_recalculation_does(algorithm, n):
    window = FifoRounds(algorithm, Affine, n, dtype="i8", block=20)
    column = window.columns[0]
    window.rounds(20)()
    filled = (column * n)[:n] if n > 20 else column[:n]
    wanted = list(recalculated([*filled, *column], n, Affine))[n:]
    assert window.results[0] == wanted


@pytest.mark.parametrize("name", daba.FUNCTIONS)
def test_every_function_of_the_tables_runs_by_every_algorithm(name):
    algorithms = (*daba.ALGORITHMS, *daba.LITE, "recalc", b_int.ALGORITHM)
    found = daba.round_ns(Size.TINY, daba.FUNCTIONS[name], 4, algorithms)
    assert all(spent.best > 0 for spent in found.values())
    assert len(found) == len(algorithms)


@pytest.mark.parametrize("name", reactive.AGGREGATES)
def test_every_function_of_table_3_takes_its_type(name):
    aggregate, dtype = reactive.AGGREGATES[name]
    assert daba.round_ns(Size.TINY, aggregate, 4, ("reactive", "recalc"), dtype=dtype)["reactive"].best > 0


def test_firings_answer_once_in_so_many_changes():
    window = FifoRounds("reactive", Affine, 8, dtype="i8", block=16)
    column = window.columns[0]
    window.firings(16, 4)()
    wanted = list(recalculated([*column[:8], *column], 8, Affine))[8:]
    assert [window.results[0][i] for i in range(0, 16, 4)] == [wanted[i + 3] for i in range(0, 16, 4)]


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 8, 16, 31])
@pytest.mark.parametrize("in_parallel", [False, True])
def test_boundary_loops_answer_as_a_queue_over_the_same_slices(n, in_parallel):
    values = np.random.default_rng(1).integers(0, 1000, 300).astype(float)
    cuts = np.concatenate([[0], np.cumsum(np.random.default_rng(2).integers(1, 6, 80))])
    slices = pba.Slices(values[: cuts[-1]], cuts, n)
    spent = np.zeros(slices.count, np.int64)
    found = pba.by_boundary(sash.max(), slices, spent, in_parallel=in_parallel)
    wanted = [values[cuts[max(0, j + 1 - n)] : cuts[j + 1]].max() for j in range(slices.count)]
    assert found == wanted
    assert list(pba.by_queue(sash.max(), slices, "two_stacks")) == wanted
    assert (spent > 0).all()


def tree_answers(given):
    """Recalculate every answer of some moves over an empty window."""
    held, answers = {}, []
    for row, key in enumerate(given.new.tolist()):
        held[key] = held.get(key, 0) + given.columns[0][row]
        for old in given.old[given.until[row] : given.until[row + 1]].tolist():
            del held[old]  # KeyError: it was not there
        answers.append(sum(held.values()))
    return answers


def test_rides_leave_when_they_are_a_span_older_than_the_newest():
    random = np.random.default_rng(3)
    times = np.sort(random.integers(0, 1000, 200)) - random.integers(0, 120, 200)
    given = by_time(times, 100, random.random(200))
    trees = trees_of("fiba", sash.sum(), 4)
    tree = run_moves(trees, new_tree(trees), given)()
    newest = np.maximum.accumulate(times)
    for row, total in enumerate(tree_answers(given)):
        among = times[: row + 1] >= newest[row] - 100
        assert total == pytest.approx(given.columns[0][: row + 1][among].sum())
    assert int(trees.timed.size(tree)) == len(set(times[times >= newest[-1] - 100].tolist()))


@pytest.mark.parametrize("d", [0, 1, 4, 7])
def test_late_rows_keep_the_window_and_stay_as_late(d):
    rounds = LateRounds(trees_of("fiba", sash.sum(), 2), 8, d, chunk=5)
    for _ in range(6):
        rounds.rounds(n_small=8)()
        assert int(rounds.trees.timed.size(rounds.tree)) == 8


@pytest.mark.parametrize("act", ["in_order", "at"])
def test_tree_rounds_keep_the_size_of_the_window(act):
    rounds = TreeRounds(trees_of("btree", sash.sum(), 2), 64, chunk=5)
    for d in (64, 16, 0):
        (rounds.in_order() if act == "in_order" else rounds.at(d))()
        assert int(rounds.trees.timed.size(rounds.tree)) == 64


def test_every_round_that_is_clocked_takes_time():
    assert (FifoRounds("daba", sash.sum(), 4).clocked(50) > 0).all()
    assert (TreeRounds(trees_of("fiba", sash.sum(), 2), 32, chunk=10).clocked(8, 20)[0] > 0).all()
    assert cycles.cost_ticks() > 0
    assert cycles.ticks_per_ns() == 1.0  # interpreted: the clock counts nanoseconds


@pytest.mark.parametrize("algorithm", ["daba", "two_stacks"])
def test_windows_that_are_clocked_together_take_the_same_rounds_as_one(algorithm):
    alone, several = (FifoRounds(algorithm, Affine, 8, dtype="i8", block=20) for _ in range(2))
    alone.rounds(20)()
    states = tuple(copied(several.state, number) for number in range(3))
    several.drivers.clocked(states, several.columns, 20, 8, several.results, np.zeros(20, np.int64))
    assert several.results[0] == alone.results[0]
    assert all(list(state.at) == list(alone.state.at) for state in states)
    assert 1 <= several.n_alike <= 16


def test_trees_that_are_clocked_together_stay_alike():
    trees = trees_of("fiba", sash.sum(), 2)
    times = np.arange(300)  # more than there is room for at first
    given = moves(times, times[:0], np.zeros(301, np.int64))
    first, second = run_alike(trees, [new_tree(trees), new_tree(trees)], given, np.zeros(300, np.int64))()
    assert int(trees.timed.size(first)) == int(trees.timed.size(second)) == 300
    assert list(first.at) == list(second.at)


def test_a_copy_with_a_number_holds_the_same_elsewhere():
    state = (np.arange(5.0), [1, 2], np.ones((3, 2)))
    for part, copy in zip(state, copied(state, 3), strict=True):
        assert np.array_equal(part, copy)
        assert copy is not part


def test_a_copy_begins_where_a_line_of_the_caches_does():
    state = (np.arange(5.0), np.ones((3, 256)))
    assert all(part.ctypes.data % 64 == 0 for _ in range(5) for part in copied(state))


def test_turns_of_different_work_have_no_noise_where_both_windows_do_the_same():
    work = np.array([10.0, 10.0, 90.0])
    turns = {f"{tree}, {where}, from Python": work * (1 + (where == "lmdb")) for tree in TREES
             for where in ("memory", "lmdb")}  # fmt: skip
    row = _beside_memory(turns)
    assert row["amta, store by memory, from Python"] == 2.0
    assert row["noise from Python"] == 0.0


def test_a_turn_passes_the_whole_window_however_many_turns_there_are():
    asked = []

    class Rounds(FifoRounds):
        def rounds(self, count=None):
            asked.append(count)
            return super().rounds(count)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(daba, "FifoRounds", Rounds)
        daba.round_ns(Size.TINY, sash.sum(), 512, ("reactive",))
        daba.round_ns(Size.TINY, sash.sum(), 512, ("reactive",), n_turns=2)
    assert asked == [512] * 10  # a turn to warm up each, and before each turn rounds that fill the caches


def test_moves_evict_one_for_each_row_unless_told_otherwise():
    given = moves(np.arange(3), np.arange(3))
    assert given.until.tolist() == [0, 1, 2, 3]


def test_the_stream_is_the_same_however_much_of_it_is_taken():
    seconds, used = readings(90_000)
    assert len(seconds) == len(used) == 90_000
    assert np.array_equal(readings(1_000)[1], used[:1_000])


@pytest.mark.parametrize("algorithm", ["amta", "log_mta", "daba", "recalc"])
def test_an_update_that_says_how_many_may_stay_evicts_the_others(algorithm):
    needed = {"n": sash.count("limit"), "limit": sash.last("limit")}
    policed = Policed(algorithm, sash.sum("limit"), sash.policies.as_policy(to_limit, needed), 64)
    policed.pass_over({"limit": np.full(64, 128.0)}, slides=False)()
    policed.pass_over({"limit": np.array([5.0])})()
    at = policed.states[0].at
    assert int(at[1] - at[0]) == 5


@pytest.mark.parametrize("algorithm", ["amta", "log_mta", "daba", "recalc"])
def test_a_policed_loop_slides_as_the_engine_does(algorithm):
    values = np.random.default_rng(4).integers(0, 50, 200).astype(float)
    policy = sash.policies.either(sash.policies.at_most(20), sash.policies.since_maximum("x"))
    policed = Policed(algorithm, sash.max("x"), policy, 256)
    policed.pass_over({"x": values})()
    window = sash.aggregator(algorithm, sash.max("x"), policy=policy, dtype=types_of(sash.max("x"), policy))
    for value in values.tolist():
        window.insert(value)
    at = policed.states[0].at
    assert int(at[1] - at[0]) == len(window)
