"""The reference of the field's authors, in C++, on the same rounds: queues at any window, finger trees at any distance.

It is used as it is: a clone of IBM/sliding-window-aggregators where ENGINES says, compiled for this machine together
with bench/engines/reference.cc. Its rounds and ours then take turns in one process, over the same numbers and times,
under the same clock. The answers are compared before anything is timed.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import sash
from bench.experiments.contract import Axes, Claim, Experiment, Row, Size, point
from bench.experiments.daba import warm_rounds
from bench.experiments.engines import ENGINES, PROGRAMS
from bench.experiments.fiba import ARITIES, label
from bench.experiments.fitting import Curves
from bench.fifo_rounds import BLOCK, FifoRounds, blocks_of
from bench.measuring import in_turns
from bench.tree_rounds import LateMoves, Moves, TreeRounds, trees_of

CLONE = "IBM/sliding-window-aggregators"
FLAGS = ("-std=gnu++17", "-O3", "-march=native", "-DNDEBUG", "-shared", "-fPIC")  # its own, and this machine's vectors
OURS, THEIRS = "sash", "C++"
QUEUES = ("two_stacks", "two_stacks_lite", "daba", "daba_lite", "reactive")
FUNCTIONS: dict[str, Any] = {"max": sash.max(), "sum": sash.sum(), "geomean": sash.geomean()}
TREES_OF = ("sum", "geomean")  # as in fiba-fig11-distance: each kind of tree takes half a minute to compile
FEW = 1_000  # rounds whose answers are compared
ADDRESS = ctypes.c_void_p
SCATTERED = "scattered"
FAR_APART = (
    "likely, because rows that come anywhere among many find little of the tree in the caches: a node of the reference "
    "is one piece of memory, one of ours a piece of each array, and a partial of two numbers is in two; asking ahead "
    "for what is read on the way down made up for a tenth, nodes in one piece for 5 % of geomean and nothing of sum"
)
FEW_PLACES = (
    "rows a few places late, into nodes of two to four children: every other one splits a leaf; by hand the reference "
    "took 0.88 to 1.03 times our time"
)


def headers() -> Path:
    """Where the headers of the reference are, if there is a clone."""
    return ENGINES / "reference" / "cpp" / "src"


def lack() -> str:
    """What there must be to compile it; nothing if all is there."""
    if shutil.which(_compiler()) is None:
        return f"there is no compiler {_compiler()!r} for C++"
    if not (headers() / "FiBA.hpp").exists():
        return f"there is no clone of {CLONE} in {ENGINES / 'reference'}: git clone https://github.com/{CLONE} there"
    return ""


def _compiler() -> str:
    return os.environ.get("CXX", "g++")


@cache
def library() -> Any:
    """The reference with the functions of reference.cc; compiled when they, it or the flags have changed."""
    program = PROGRAMS / "reference.cc"
    sources = [program, *sorted(headers().glob("*.h*"))]
    digest = hashlib.sha256(b"".join(each.read_bytes() for each in sources) + repr((_compiler(), FLAGS)).encode())
    built = ENGINES / f"reference-{digest.hexdigest()[:16]}.so"
    if not built.exists():
        command = [_compiler(), *FLAGS, "-I", str(headers()), str(program), "-o", str(built)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr[-2_000:]}")
    found = ctypes.CDLL(str(built.absolute()))
    found.open_window.argtypes, found.open_window.restype = [ctypes.c_char_p, ctypes.c_char_p], ADDRESS
    found.insert.argtypes, found.insert.restype = [ADDRESS, ADDRESS, ADDRESS, ctypes.c_int64], None
    found.rounds.argtypes, found.rounds.restype = [ADDRESS, ADDRESS, ADDRESS, ctypes.c_int64, ADDRESS], None
    found.close_window.argtypes, found.close_window.restype = [ADDRESS], None
    return found


class Window:
    """A window of the reference: rows in, answers out."""

    _window: Any = None  # until it is open

    def __init__(self, algorithm: str, function: str) -> None:
        self._library = library()
        self._window = self._library.open_window(algorithm.encode(), function.encode())
        if self._window is None:
            raise LookupError(f"the reference has no {algorithm!r} of {function!r}")

    def insert(self, times: Any, values: Any) -> None:
        self._library.insert(self._window, times.ctypes.data, values.ctypes.data, len(values))

    def rounds(self, times: Any, values: Any, answers: Any) -> None:
        """Each row comes, the oldest leaves, and there is an answer."""
        self._library.rounds(self._window, times.ctypes.data, values.ctypes.data, len(values), answers.ctypes.data)

    def __del__(self) -> None:
        if self._window is not None:
            self._library.close_window(self._window)


class TheirQueue:
    """What FifoRounds is, of the reference: it is filled with the same numbers, and moves on over them."""

    def __init__(self, algorithm: str, function: str, like: FifoRounds) -> None:
        self.window, self.values = Window(algorithm, function), np.ascontiguousarray(_first(like.columns))
        self.answers = np.empty(len(self.values))
        for length in blocks_of(like.n, len(self.values)):
            self.window.insert(self.values[:0], self.values[:length])

    def rounds(self, count: int) -> Callable[[], None]:
        """Prepare so many rounds."""
        lengths = blocks_of(count, len(self.values))

        def take() -> None:
            for length in lengths:
                self.window.rounds(self.values[:0], self.values[:length], self.answers)

        return take

    def move(self) -> None:
        """Stay: its memory is its own."""


class TheirTree(LateMoves):
    """What TreeRounds is, of the reference."""

    def __init__(self, arity: int, function: str, n: int, chunk: int) -> None:
        self.window, self.answers = Window(label("fiba", arity), function), np.empty(chunk)
        super().__init__(n, chunk)

    def ready(self, given: Moves) -> Callable[[], None]:
        """Prepare any rows: those of rounds, or those that fill the window."""
        (values,) = given.columns
        if not len(given.old):
            return partial(self.window.insert, given.new, values)
        return partial(self.window.rounds, given.new, values, self.answers)


def _first(columns: Any) -> Any:
    """The one column that is there, however deep."""
    return _first(columns[0]) if isinstance(columns, tuple) else columns


def _queues(size: Size) -> Iterator[Row]:
    for name in FUNCTIONS:
        for n in size.of((2**10, 2**14, 2**17, 2**20), (2**10, 2**14), (8,)):
            for algorithm in QUEUES[: size.of(5, 5, 2)]:
                yield from _queue(size, name, algorithm, n)


def _queue(size: Size, name: str, algorithm: str, n: int) -> Iterator[Row]:
    ours = FifoRounds(algorithm, FUNCTIONS[name], n)
    theirs = TheirQueue(algorithm, name, ours)
    few = min(FEW, BLOCK)
    ours.rounds(few)()
    theirs.rounds(few)()
    _require_same(f"{algorithm} of {name}", ours.answers[:few], theirs.answers[:few])
    count = max(1, round(size.of(40_000, 8_000, 16) / n)) * n  # whole windows, so that each has its share of flips
    ways = {OURS: partial(warm_rounds, ours, count), THEIRS: partial(warm_rounds, theirs, count)}
    for series, spent in in_turns(ways, count, n_turns=size.of(9, 3, 1)).items():
        yield point(name, f"{series}, {algorithm}", n, spent)


def _trees(size: Size) -> Iterator[Row]:
    for name in TREES_OF[: size.of(2, 1)]:
        for arity in size.of(ARITIES, (8,)):
            for panel, are_scattered in ((name, False), (f"{name}, {SCATTERED}", True)):
                yield from _tree(size, panel, name, arity, are_scattered)


def _tree(size: Size, panel: str, name: str, arity: int, are_scattered: bool) -> Iterator[Row]:
    n, chunk = 1 << size.of(22, 16, 9), size.of(5_000, 1_000, 8)
    ours = TreeRounds(trees_of("fiba", FUNCTIONS[name], arity), n, chunk)
    theirs = TheirTree(arity, name, n, chunk)
    our_rounds, their_rounds = (each.scattered if are_scattered else each.at for each in (ours, theirs))
    for d in [*reversed(size.powers(20, 14, 4)), 0]:  # from far to near: see LateMoves.at
        our_rounds(d)()
        their_rounds(d)()
        _require_same(f"fiba of {panel}, {d} rows late", ours.answers, theirs.answers)
        ways = {OURS: partial(our_rounds, d), THEIRS: partial(their_rounds, d)}
        for series, spent in in_turns(ways, chunk, n_turns=size.of(9, 3, 1)).items():
            yield point(panel, f"{series}, {label('fiba', arity)}", max(d, 0.5), spent)


def _require_same(what: str, ours: Any, theirs: Any) -> None:
    if not np.allclose(ours, theirs, rtol=1e-9):
        raise AssertionError(f"{what}: the reference answers {theirs[:3]}..., and Sash {ours[:3]}...")


def _claims(rows: Sequence[Row]) -> list[Claim]:
    curves, claims = Curves(rows), []
    for name in curves.panels:
        for ours in (each for each in curves.series(name) if each.startswith(OURS)):
            algorithm = ours.removeprefix(f"{OURS}, ")
            ratio = curves.ratio(name, f"{THEIRS}, {algorithm}", ours)
            said = f"{name}: {algorithm} takes at most what the reference takes, at every {_axis(algorithm)}"
            why = "" if _axis(algorithm) == "window" else FAR_APART if name.endswith(SCATTERED) else FEW_PLACES
            claims.append(Claim(said, f"the reference takes {ratio}", ratio.low >= 1, why))
    return claims


def _axis(algorithm: str) -> str:
    return "distance" if algorithm.startswith("fiba") else "window"


EXPERIMENTS = (
    Experiment(
        "peers-reference-queues",
        "Windows in order, beside the C++ reference",
        _queues,
        "DESIGN.md",
        "what it must reach",
        "at or below the C++ reference for the same algorithm, in windows of 2^10 to 2^20",
        _claims,
        Axes("window", log_y=True),
        needs="reference",
    ),
    Experiment(
        "peers-reference-trees",
        "Finger trees, beside the C++ reference",
        _trees,
        "DESIGN.md",
        "what it must reach",
        "at or below the C++ reference, for rows 0 to 2^20 places late",
        _claims,
        Axes("distance", log_y=True),
        needs="reference",
    ),
)
