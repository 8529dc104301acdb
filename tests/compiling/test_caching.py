"""Machine code on disk: found again by other processes, never after an edit, and the user's own."""

from __future__ import annotations

import json
import math
import os
import shutil
import stat
import subprocess
import sys
import types
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core.caching import NullCache
from numba.core.dispatcher import Dispatcher

from sash.aggregators import ALGORITHMS
from sash.algebra.declaring import monoid_of
from sash.compiling import caching, jit
from sash.compiling.caching import DigestCache, Undigestible, digest
from sash.engine.aggregator import aggregator
from sash.engine.building import build
from sash.errors import UnsupportedError
from sash.testing.fifo_suite import fifo_algorithms, refusal
from sash.testing.monoids import Affine, Bloom, Max, Mean, Sum

ROOT = Path(caching.__file__).parents[2]

HELPERS = """
FACTOR = 2.0

def scaled(x):
    return x * FACTOR + 0.5

def weighted(x, weight=3.0):
    return scaled(x) * weight
"""

SETTINGS = """
OFFSET = 10.0
"""

KINDS = """
import enum

class Kind(enum.IntEnum):
    NEAR = 1
    FAR = 7
"""

AGGREGATES = """
import numpy as np
import package.settings
import kinds
from helpers import weighted
from kinds import Kind
from sash.algebra.declaring import aggregate

BONUS = 100.0
PAIR = (4.0, 5.0)
TABLE = np.array([1.0, 2.0, 3.0])

def plus(constant):
    def add(x):
        return x + constant
    return add

added = plus(1000.0)
negated = lambda x: -x

@aggregate(state="f8")
class Custom:
    identity = 0.0
    def lift(x):
        return weighted(x) + package.settings.OFFSET + Kind.FAR.value + kinds.Kind.NEAR.value
    def combine(older, newer):
        return older + newer
    def lower(total):
        return added(negated(total)) + BONUS + PAIR[1] + TABLE[2] + 0.25
"""

MAIN = """
import json, sys
from aggregates import Custom
from sash.engine.aggregator import aggregator

answers = []
for compiled in (True, False):
    window = aggregator("recalc", Custom, compiled=compiled)
    for value in (1.0, 2.0, None, 4.0):
        window.insert(value)
    answers.append(window.query())
    if compiled:
        kernels = [window._insert_row, window._insert, window._query]
        hits = sum(sum(kernel.stats.cache_hits.values()) for kernel in kernels)
        misses = sum(sum(kernel.stats.cache_misses.values()) for kernel in kernels)
print(json.dumps({"compiled": answers[0], "interpreted": answers[1], "hits": hits, "misses": misses}))
"""

EDITS = {
    "the combine": ("aggregates.py", "return older + newer", "return older + newer + older * newer"),
    "the lift": ("aggregates.py", "return weighted(x) +", "return 2.0 * weighted(x) +"),
    "a constant in the lower": ("aggregates.py", "+ 0.25", "+ 0.75"),
    "the identity": ("aggregates.py", "identity = 0.0", "identity = 8.0"),
    "a global": ("aggregates.py", "BONUS = 100.0", "BONUS = 200.0"),
    "a tuple": ("aggregates.py", "PAIR = (4.0, 5.0)", "PAIR = (4.0, 6.0)"),
    "an array": ("aggregates.py", "np.array([1.0, 2.0, 3.0])", "np.array([1.0, 2.0, 9.0])"),
    "what a closure closes over": ("aggregates.py", "plus(1000.0)", "plus(2000.0)"),
    "a lambda": ("aggregates.py", "lambda x: -x", "lambda x: -x - 1.0"),
    "a default": ("helpers.py", "weight=3.0", "weight=5.0"),
    "a helper's helper in another module": ("helpers.py", "x * FACTOR + 0.5", "x * FACTOR + 1.5"),
    "a constant in another module": ("helpers.py", "FACTOR = 2.0", "FACTOR = 4.0"),
    "a constant in a module of a package": ("package/settings.py", "OFFSET = 10.0", "OFFSET = 20.0"),
    "a member of an enumeration": ("kinds.py", "FAR = 7", "FAR = 9"),
    "a member of an enumeration reached through its module": ("kinds.py", "NEAR = 1", "NEAR = 2"),
}


def run(project):
    """Run the script of a project in a process of its own."""
    environment = {**os.environ, "SASH_CACHE_DIR": str(project / "cache"), "SASH_JIT": "1"}
    environment["PYTHONPATH"] = os.pathsep.join([str(project), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-c", MAIN], capture_output=True, text=True, env=environment, cwd=project, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A project that has been run once."""
    root = tmp_path_factory.mktemp("project")
    (root / "package").mkdir()
    (root / "package/__init__.py").write_text("")
    for name, text in {
        "helpers.py": HELPERS,
        "package/settings.py": SETTINGS,
        "kinds.py": KINDS,
        "aggregates.py": AGGREGATES,
    }.items():
        (root / name).write_text(text)
    first = run(root)
    assert first["hits"] == 0
    assert first["misses"] > 0
    assert first["compiled"] == first["interpreted"]
    return root, first


def test_another_process_finds_what_the_first_one_compiled(project):
    root, first = project
    n_files = len(list((root / "cache").iterdir()))
    second = run(root)
    assert (second["hits"], second["misses"]) == (first["misses"], 0)
    assert second["compiled"] == first["compiled"]
    assert len(list((root / "cache").iterdir())) == n_files, "a hit writes nothing"


def test_a_project_that_has_moved_and_gained_comments_still_hits(project, tmp_path):
    root, first = project
    moved = tmp_path / "elsewhere"
    shutil.copytree(root, moved)
    for name in ("helpers.py", "aggregates.py"):
        (moved / name).write_text("# A comment is no code.\n\n" + (moved / name).read_text())
    again = run(moved)
    assert (again["hits"], again["misses"]) == (first["misses"], 0)


@pytest.mark.parametrize("edit", EDITS)
def test_no_stale_code_after_an_edit_of(edit, project, tmp_path):
    root, before = project
    edited = tmp_path / "edited"
    shutil.copytree(root, edited)
    name, old, new = EDITS[edit]
    text = (edited / name).read_text()
    assert text.count(old) == 1
    (edited / name).write_text(text.replace(old, new))
    after = run(edited)
    assert after["misses"] > 0
    assert after["compiled"] != before["compiled"]
    if edit != "the identity":  # which interpreted code does not need; a wrong one shows in machine code
        assert after["compiled"] == after["interpreted"]


def test_processes_that_compile_the_same_at_once_do_not_disturb_each_other(project, tmp_path):
    root, first = project
    fresh = tmp_path / "fresh"
    shutil.copytree(root, fresh, ignore=shutil.ignore_patterns("cache"))
    environment = {**os.environ, "SASH_CACHE_DIR": str(fresh / "cache"), "SASH_JIT": "1"}
    environment["PYTHONPATH"] = os.pathsep.join([str(fresh), str(ROOT)])
    command = [sys.executable, "-c", MAIN]
    running = [subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, cwd=fresh) for _ in range(2)]
    told = [json.loads(process.communicate()[0]) for process in running]
    assert [each["compiled"] for each in told] == [first["compiled"]] * 2
    assert run(fresh)["misses"] == 0


def test_every_kernel_of_an_algorithm_is_kept_on_disk(monkeypatch):
    caches, of = [], DigestCache.of
    monkeypatch.setattr(DigestCache, "of", staticmethod(lambda kernel: caches.append(of(kernel)) or caches[-1]))
    for name in fifo_algorithms():
        for aggregate in (Sum, Max, Mean, Bloom):
            if not refusal(ALGORITHMS[name].card, monoid_of(aggregate), compiled=True):
                build.__wrapped__(ALGORITHMS[name], (monoid_of(aggregate),), True, ())
    assert len(caches) > 4 * len(fifo_algorithms())
    assert not any(isinstance(cache, NullCache) for cache in caches)


SLIDING = """
import json
import numpy as np
import sash
from sash.compiling.caching import DigestCache

caches, of = [], DigestCache.of
DigestCache.of = staticmethod(lambda kernel: caches.append(of(kernel)) or caches[-1])
values = np.arange(50.0)
for aggregate in (sash.sum(), sash.max(), sash.mean(), sash.count(), sash.var()):
    sash.slide(values, aggregate, rows=5)
sash.slide(values, sash.sum(), times=np.arange(50), span=7)
print(json.dumps([type(cache).__name__ for cache in caches]))
"""


def test_every_kernel_of_slide_is_kept_on_disk():
    done = subprocess.run([sys.executable, "-c", SLIDING], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stderr
    kinds = json.loads(done.stdout)
    assert kinds
    assert set(kinds) == {"DigestCache"}


def test_lambdas_that_read_alike_share_machine_code_and_others_do_not():
    def made(k):
        return lambda x: x + k

    assert digest(made(1)) == digest(made(1))
    assert digest(made(1)) != digest(made(2))
    assert digest(made(1)) != digest(made(1.0)), "1 and 1.0 make different code"
    assert digest(made(0.0)) != digest(made(-0.0))
    assert digest(made(True)) != digest(made(1))


def test_a_digest_covers_functions_that_call_one_another():
    space = {}
    exec("def even(n): return n == 0 or odd(n - 1)\ndef odd(n): return n != 0 and even(n - 1)", space)
    first = digest(space["even"])
    exec("def odd(n): return n != 1 and even(n - 1)", space)
    assert digest(space["even"]) != first


def test_a_digest_covers_the_options_of_a_kernel():
    def kernel(x):
        return x + 1

    assert digest(numba.njit(kernel)) != digest(numba.njit(error_model="numpy")(kernel))


def test_what_cannot_be_named_is_not_cached():
    thing = object()

    def kernel():
        return thing

    with pytest.raises(Undigestible):
        digest(kernel)
    assert isinstance(DigestCache.of(numba.njit(kernel)), NullCache)


def test_a_class_whose_methods_could_be_edited_is_not_named_by_its_name():
    class Anything:
        pass

    with pytest.raises(Undigestible):
        digest(lambda: Anything)


def test_modules_that_import_one_another_are_digested():
    first, second = types.ModuleType("first"), types.ModuleType("second")
    first.second, second.first, second.LIMIT = second, first, 1
    space = {"first": first, "second": second}
    exec("def kernel(): return first.second.LIMIT + second.first.second.LIMIT", space)
    before = digest(space["kernel"])
    second.LIMIT = 2
    assert digest(space["kernel"]) != before


def test_the_cache_directory_is_private_whatever_the_umask(tmp_path, monkeypatch):
    place = tmp_path / "a" / "b"
    monkeypatch.setenv("SASH_CACHE_DIR", str(place))
    old = os.umask(0)
    try:
        kernel = jit.entry(lambda x: x + 1.5)
        assert kernel(1.0) == 2.5
    finally:
        os.umask(old)
    assert stat.S_IMODE(place.stat().st_mode) == 0o700
    assert list(place.iterdir())


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o707, 0o755, 0o1777])
def test_a_directory_that_others_may_enter_is_refused(tmp_path, monkeypatch, mode):
    place = tmp_path / "shared"
    place.mkdir()
    place.chmod(mode)
    monkeypatch.setenv("SASH_CACHE_DIR", str(place))
    with pytest.raises(PermissionError, match=r"must belong to you alone.*chmod 700"):
        jit.entry(lambda x: x + 2.5)
    assert not list(place.iterdir())


def test_a_directory_opened_to_others_after_the_start_is_refused_before_it_is_written(tmp_path, monkeypatch):
    place = tmp_path / "opened"
    monkeypatch.setenv("SASH_CACHE_DIR", str(place))
    kernel = jit.entry(lambda x: x + 3.5)
    place.mkdir(mode=0o777)
    place.chmod(0o777)
    with pytest.raises(PermissionError):
        kernel(1.0)
    assert not list(place.iterdir())


def test_without_a_choice_the_cache_is_in_the_home_of_the_user(monkeypatch):
    monkeypatch.delenv("SASH_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/home/somebody/.cache")
    assert caching.directory() == Path("/home/somebody/.cache/sash/machine-code")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/somebody")
    assert caching.directory() == Path("/home/somebody/.cache/sash/machine-code")


def kernels_in(value, seen):
    """Every compiled function reachable from a value."""
    if id(value) in seen:
        return
    seen[id(value)] = value
    if isinstance(value, Dispatcher):
        yield value
        yield from kernels_in(value.py_func, seen)
    elif isinstance(value, types.FunctionType):
        for cell in value.__closure__ or ():
            yield from kernels_in(cell.cell_contents, seen)
        for name in value.__code__.co_names:
            yield from kernels_in(value.__globals__.get(name), seen)
    elif isinstance(value, tuple):
        for item in value:
            yield from kernels_in(item, seen)


@pytest.mark.parametrize("algorithm", fifo_algorithms())
@pytest.mark.parametrize("aggregate", [Sum, Max, Mean, Affine, Bloom], ids=lambda cls: cls.__name__)
def test_no_kernel_uses_fastmath_or_parallel(algorithm, aggregate):
    card, monoid = ALGORITHMS[algorithm].card, monoid_of(aggregate)
    if refusal(card, monoid, compiled=True):
        with pytest.raises(UnsupportedError, match="needs an inverse"):
            build(ALGORITHMS[algorithm], (monoid,), True, ())
        return
    built = build(ALGORITHMS[algorithm], (monoid,), True, ())
    kernels = list(kernels_in((*built.fifo, built.cells.lower), {}))
    assert len(kernels) > 10
    for kernel in kernels:
        options = kernel.targetoptions
        assert not options.get("fastmath"), kernel
        assert not options.get("parallel"), kernel
        assert options["error_model"] == "numpy", kernel
        assert options["_nrt"] is False, kernel


def test_division_by_zero_follows_ieee_in_machine_code():
    ratio = jit.entry(lambda x, y: x / y)
    assert ratio(1.0, 0.0) == math.inf
    assert math.isnan(ratio(0.0, 0.0))


def test_a_sum_in_machine_code_is_the_plain_left_fold_bit_for_bit():
    values = np.random.default_rng(7).normal(size=200) * 1e6
    window = aggregator("recalc", Mean, compiled=True)
    window.bulk_insert(values.tolist())
    total = 0.0
    for value in values.tolist():
        total += value
    assert window.query() == total / 200


NOWHERE = """
import numpy as np
import sash

space = {"sash": sash}
exec('''
@sash.aggregate(state="f8")
class Total:
    identity = 0.0
    def lift(x): return x
    def combine(older, newer): return older + newer
''', space)
print(sash.slide(np.arange(4.0), space["Total"], rows=2).tolist())
"""


def test_functions_of_no_importable_module_are_found_again(tmp_path):
    environment = {**os.environ, "SASH_CACHE_DIR": str(tmp_path / "cache"), "SASH_JIT": "1"}
    for _ in range(2):
        run = subprocess.run(
            [sys.executable, "-c", NOWHERE], capture_output=True, text=True, env=environment, check=False
        )
        assert run.stdout.strip() == "[0.0, 1.0, 3.0, 5.0]", run.stderr
        assert "made again" not in run.stderr
        files = sorted(path.name for path in (tmp_path / "cache").iterdir())
    assert sum(name.endswith(".nbi") for name in files) == 1, files


def test_damaged_machine_code_is_made_again(tmp_path):
    environment = {**os.environ, "SASH_CACHE_DIR": str(tmp_path / "cache"), "SASH_JIT": "1"}
    for _ in range(2):
        run = subprocess.run(
            [sys.executable, "-c", NOWHERE], capture_output=True, text=True, env=environment, check=False
        )
        assert run.stdout.strip() == "[0.0, 1.0, 3.0, 5.0]", run.stderr
        for path in (tmp_path / "cache").glob("*.nbc"):
            path.write_bytes(b"nonsense")
    assert "made again" in run.stderr


COLLIDING = """
import sys
import numpy as np
import sash

values = np.array([1.0, 0.0, 1.0, 1.0])
for name in sys.argv[1:]:
    print(name, sash.slide(values, getattr(sash, name)(), rows=3).tolist())
"""


def test_machine_code_read_back_does_not_call_what_another_kernel_made(tmp_path):
    """Two kernels of one factory have inner functions of the same name, numbered alike in two processes."""
    environment = {**os.environ, "SASH_CACHE_DIR": str(tmp_path / "cache"), "SASH_JIT": "1"}
    for names in (["sum"], ["max", "sum"], ["min", "max", "sum"]):
        command = [sys.executable, "-c", COLLIDING, *names]
        run = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
        assert "sum [1.0, 1.0, 2.0, 2.0]" in run.stdout, run.stdout + run.stderr
