"""Draw the algorithms: python docs/drawings.py [directory].

Each drawing is of a real window: the algorithm runs, interpreted, over letters whose combine is concatenation, so that
every partial says by itself which elements it aggregates; then its state is read and drawn. A test draws them again and
compares, so that no drawing can tell of anything the code does not do.
"""
# ruff: noqa: SLF001, N805 - state is private, and nowhere else laid open; the functions of an aggregate have no self

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import sash
from sash.aggregators import amta as amta_module
from sash.aggregators import daba as daba_module
from sash.aggregators import daba_lite as daba_lite_module
from sash.aggregators import log_mta as log_mta_module
from sash.aggregators import sba as sba_module
from sash.aggregators import slick_deque as slick_module
from sash.aggregators.contract import END, MASK, OLDEST
from sash.aggregators.fiba.layout import FLAGS, FRESH, LEFT, RIGHT, ROOT
from sash.aggregators.levels import in_rings
from sash.compiling.jit import interpreted

TARGET = Path(__file__).parent / "explanation" / "algorithms"
LABEL, COLUMN, ROW, PAD = 128, 62, 30, 14  # width of labels and columns, height of rows, room around
BACK = 3  # the register of two_stacks, two_stacks_lite and aba

STYLE = """
    text { font: 13px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: #22252b; }
    .page { fill: #fbfaf7; stroke: #dcd9d1; } .said { font-weight: 600; } .soft { fill: #666b74; font-size: 12px; }
    .mono { font: 11.5px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; text-anchor: middle; }
    rect.value { fill: #eceae4; stroke: #8d8a82; } rect.ready { fill: #cfe3f5; stroke: #1f6fb2; }
    rect.young { fill: #f9ddd0; stroke: #c4542f; } rect.total { fill: #d5ecd9; stroke: #2f7d46; }
    rect.gone { fill: none; stroke: #a9a69d; stroke-dasharray: 4 4; } .gone.mono { fill: #8d8a82; }
    .line { stroke: #8d8a82; fill: none; } .mark { fill: #22252b; } rect.new { stroke-width: 3; }
    @media (prefers-color-scheme: dark) {
      text, .mark { fill: #e6e4df; } .page { fill: #1d1f24; stroke: #3a3d45; } .soft { fill: #a3a8b2; }
      rect.value { fill: #33363d; stroke: #8b8f98; } rect.ready { fill: #17405f; stroke: #6cb1ee; }
      rect.young { fill: #5a2f20; stroke: #f0906f; } rect.total { fill: #1e4a2b; stroke: #6fc487; }
      rect.gone { stroke: #6a6d75; } .gone.mono { fill: #8b8f98; } .line { stroke: #8b8f98; }
    }
"""

joined: list[tuple[str, str]] = []  # what combine was called with, since somebody looked


@sash.aggregate(state=object)
class Letters:
    """Concatenation: associative, not commutative, and a partial shows what it is made of."""

    identity = ""

    def lift(x: Any) -> Any:
        """A letter is its own partial."""
        return x

    def combine(older: Any, newer: Any) -> Any:
        """Put two texts together, and note which."""
        joined.append((older, newer))
        return older + newer

    def invert(total: Any, oldest: Any) -> Any:
        """Take the oldest part away."""
        return total[len(oldest) :]


LETTERS = sash.agg(Letters)


@dataclass(frozen=True)
class Box:
    """A partial over the columns first to end - 1; `look` is how it is drawn."""

    first: float
    end: float
    text: str
    look: str


@dataclass(frozen=True)
class Band:
    """A line of boxes with a label; low ones are for partials that would need many lines."""

    label: str
    boxes: list[Box]
    height: int = ROW


@dataclass(frozen=True)
class Marks:
    """Names of places between columns, under the band before."""

    places: dict[str, int]


@dataclass(frozen=True)
class Ties:
    """Lines from the band before to the band after, each from a column to a column."""

    pairs: list[tuple[float, float]]


@dataclass(frozen=True)
class Said:
    """A sentence above what follows."""

    text: str


Item = Band | Marks | Ties | Said


def main(target: Path) -> None:
    """Write all drawings."""
    for name, picture in drawings().items():
        (target / f"{name}.svg").write_text(picture, encoding="utf-8")


def drawings() -> dict[str, str]:
    """Every drawing by its name."""
    return {draw.__name__: picture(draw.__doc__ or "", draw()) for draw in DRAWN}


# --- from items to a picture ------------------------------------------------------------------------


def picture(title: str, items: list[Item]) -> str:
    """The SVG of some items, one below the other."""
    columns = max(box.end for item in items if isinstance(item, Band) for box in item.boxes)
    width, y, parts = round(4 * PAD + LABEL + COLUMN * columns), PAD, list[str]()
    for item in items:
        drawn, height = drawn_item(item, y)
        parts += drawn
        y += height
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y + PAD}" width="{width}" role="img"'
    page = f'<rect class="page" x=".5" y=".5" width="{width - 1}" height="{y + PAD - 1}" rx="8"/>'
    return "\n".join([f'{head} aria-label="{escape(title)}">', f"  <style>{STYLE}  </style>", f"  {page}",
                      *(f"  {part}" for part in parts), "</svg>", ""])  # fmt: skip


def drawn_item(item: Item, y: int) -> tuple[list[str], int]:
    """The elements of an item, and how high it is."""
    if isinstance(item, Said):
        return [f'<text class="said" x="{PAD}" y="{y + 20}">{escape(item.text)}</text>'], 32
    if isinstance(item, Marks):
        return drawn_marks(item, y), 30
    if isinstance(item, Ties):
        return [f'<path class="line" d="M{x_of(a):g} {y - 6} L{x_of(b):g} {y + 12}"/>' for a, b in item.pairs], 12
    label = f'<text class="soft" x="{PAD}" y="{y + item.height / 2 + 4:g}">{escape(item.label)}</text>'
    boxes = [part for box in item.boxes for part in drawn_box(box, y, item.height)]
    return [label, *boxes], item.height + 6


def x_of(column: float) -> float:
    """Where a column begins."""
    return PAD + LABEL + COLUMN * column


def drawn_box(box: Box, y: int, height: int) -> list[str]:
    """A rectangle and its text."""
    x, width = x_of(box.first), COLUMN * (box.end - box.first)
    shape = f'<rect class="{box.look}" x="{x + 2:g}" y="{y}" width="{width - 4:g}" height="{height}" rx="4"/>'
    look = "mono gone" if box.look == "gone" else "mono"
    said = f'<text class="{look}" x="{x + width / 2:g}" y="{y + height / 2 + 4:g}">{escape(box.text)}</text>'
    return [shape, said] if box.text else [shape]


def drawn_marks(marks: Marks, y: int) -> list[str]:
    """Little arrows with names; places that are the same share one."""
    parts, names = [], dict[int, list[str]]()
    for name, place in marks.places.items():
        names.setdefault(place, []).append(name)
    for place, here in names.items():
        x = x_of(place)
        parts.append(f'<path class="mark" d="M{x:g} {y - 4} l4 8 h-8 z"/>')
        parts.append(f'<text class="soft" x="{x:g}" y="{y + 17}" text-anchor="middle">{", ".join(here)}</text>')
    return parts


# --- reading windows --------------------------------------------------------------------------------


def window(name: str, letters: str, **options: Any) -> Any:
    """A window of an algorithm with some letters in it."""
    made = sash.aggregator(name, LETTERS, **options)
    for letter in letters:
        made.insert(letter)
    return made


def calls(operation: Callable[..., Any], *arguments: Any) -> int:
    """Do something; how often it called combine."""
    joined.clear()
    operation(*arguments)
    return len(joined)


def times(n: int, what: str = "combine") -> str:
    """So many of something."""
    return f"{n} {what}{'s' * (n != 1)}"


def pool_of(made: Any) -> Any:
    """The cells of a window, without the counts that stand beside aggregates with an inverse."""
    pool = made._state.pool
    return pool[1] if isinstance(pool, tuple) else pool


def registers(made: Any) -> list[int]:
    """The registers of a window."""
    return [int(each) for each in made._state.at]


def over(text: str, look: str) -> Box:
    """A partial drawn over the elements it aggregates, which stand in the columns of the alphabet."""
    first = ord(text[0]) - ord("a")
    return Box(first, first + len(text), text, look)


def slots(made: Any, ring: int, per_slot: int, which: int, looks: Callable[[int], str]) -> list[Box]:
    """The slots of a ring in the order of their elements; dashed those of elements that left."""
    at, pool = registers(made), pool_of(made)
    gone = [Box(i, i + 1, chr(97 + i), "gone") for i in range(at[OLDEST])]
    return gone + [Box(i, i + 1, pool[ring + per_slot * (i & at[MASK]) + which], looks(i))
                   for i in range(at[OLDEST], at[END])]  # fmt: skip


def asked(made: Any) -> Band:
    """What a query combines: the operands of its last call, side by side."""
    n = calls(made.query)
    older, newer = joined[-1]
    return Band(f"query, {times(n)}", [over(older, "ready"), over(newer, "young")])


# --- the algorithms ---------------------------------------------------------------------------------


def recalc() -> list[Item]:
    """Recalculation: a window of six values, and the five combines of a query."""
    made = window("recalc", "abcdefgh")
    made.bulk_evict(2)
    n = calls(made.query)
    folded = [Band(f"query, {times(n)}" if k == 0 else "", [over(older + newer, "ready")], 22)
              for k, (older, newer) in enumerate(joined)]  # fmt: skip
    return [Said("inserted a to h, evicted a and b"), Band("slots", slots(made, 1, 1, 0, lambda i: "value")), *folded]


def subtract_on_evict() -> list[Item]:
    """Subtract-on-evict: the total before and after the oldest value is taken away from it."""
    made, items = window("subtract_on_evict", "abcdefgh"), list[Item]()
    for said in ("inserted a to h", "evicted a: it is taken away from the total"):
        band = Band("slots", slots(made, 1, 1, 0, lambda i: "value"))
        items += [Said(said), band, Band("TOTAL, the answer", [over(pool_of(made)[0], "total")])]
        made.evict()
    return items


def two_stacks() -> list[Item]:
    """Two-Stacks: both stacks in one array, before a flip, after it, and two inserts later."""
    made = window("two_stacks", "abcdef")
    items = [Said("inserted a to f: all on the back stack"), *_array(made)]
    n = calls(made.evict)
    items += [Said(f"evicted a: the flip pops all onto the front stack, {times(n)}"), *_array(made)]
    made.bulk_insert("gh")
    return [*items, Said("inserted g and h"), *_array(made), asked(made)]


def _array(made: Any) -> list[Item]:
    """The array of two_stacks as it lies in memory: the stacks grow towards each other."""
    at, pool = registers(made), pool_of(made)
    n_front, n_back, size = at[BACK] - at[OLDEST], at[END] - at[BACK], at[MASK] + 1
    used = [(k, "ready") for k in range(n_front)] + [(k, "young") for k in range(size - n_back, size)]
    free = [Box(k, k + 1, "", "gone") for k in range(n_front, size - n_back)]
    values, sums = ([Box(k, k + 1, pool[1 + 2 * k + which], "value" if which == 0 else look) for k, look in used]
                    for which in (0, 1))  # fmt: skip
    tops = {"front top": n_front} if n_front else {}
    tops |= {"back top": size - n_back} if n_back else {}
    return [Band("values", values + free), Band("aggregates", sums + free), Marks(tops)]


def two_stacks_lite() -> list[Item]:
    """Two-Stacks Lite: one ring, before a flip, after it, and two inserts later."""
    made = window("two_stacks_lite", "abcdef")
    items = [Said("inserted a to f: all in the back"), *_ring(made)]
    n = calls(made.evict)
    items += [Said(f"evicted a: the flip makes suffixes of all, {times(n)}"), *_ring(made)]
    made.bulk_insert("gh")
    return [*items, Said("inserted g and h"), *_ring(made), asked(made)]


def _ring(made: Any) -> list[Item]:
    at, pool = registers(made), pool_of(made)
    band = Band("slots", slots(made, 2, 1, 0, lambda i: "ready" if i < at[BACK] else "value"))
    marks = Marks({"OLDEST": at[OLDEST], "BACK": at[BACK], "END": at[END]})
    return [band, *([Band("BACK_TOTAL", [over(pool[0], "young")])] if at[BACK] < at[END] else []), marks]


def aba() -> list[Item]:
    """ABA: values and aggregates in one queue, before a flip, after it, and two inserts later."""
    made = window("aba", "abcdef")
    items = [Said("inserted a to f: prefixes in the back"), *_queue(made)]
    n = calls(made.evict)
    items += [Said(f"evicted a: the flip writes suffixes in place, {times(n)}"), *_queue(made)]
    made.bulk_insert("gh")
    return [*items, Said("inserted g and h"), *_queue(made), asked(made)]


def _queue(made: Any) -> list[Item]:
    at = registers(made)
    sums = slots(made, 1, 2, 1, lambda i: "ready" if i < at[BACK] else "young")
    marks = Marks({"OLDEST": at[OLDEST], "BACK": at[BACK], "END": at[END]})
    return [Band("values", slots(made, 1, 2, 0, lambda i: "value")), Band("aggregates", sums), marks]


THIN = 0.62  # columns of trees hold a letter each
PARTS = {"ready": "ready", "left": "value", "right": "value", "accum.": "total", "back": "young"}


def daba() -> list[Item]:
    """DABA: a window of eight right after a flip, and in the two rounds of insert and evict that follow."""
    return _reversal("daba", daba_module, 2)


def daba_lite() -> list[Item]:
    """DABA Lite: a window of eight right after a flip, and in the two rounds of insert and evict that follow."""
    return _reversal("daba_lite", daba_lite_module, 1)


def _reversal(name: str, module: Any, per_slot: int) -> list[Item]:
    made = window(name, "abcdefg")
    n = calls(made.insert, "h")
    items = [Said(f"inserted a to h: the last of them flipped, {times(n)}"), *_five_parts(made, module, per_slot)]
    for letter in "ij":
        n, m = calls(made.insert, letter), calls(made.evict)
        said = f"inserted {letter}, {times(n)}; evicted the oldest, {times(m)}"
        items += [Said(said), *_five_parts(made, module, per_slot)]
    return [*items, asked(made)]


def _five_parts(made: Any, module: Any, per_slot: int) -> list[Item]:
    at, pool = registers(made), pool_of(made)
    borders = [at[each] for each in (OLDEST, module.LEFT, module.RIGHT, module.ACCUMULATOR, module.BACK, END)]

    def look(i: int) -> str:
        return next(look for look, end in zip(PARTS.values(), borders[1:], strict=True) if i < end)

    bands: list[Item] = []
    if per_slot == 2:
        bands.append(Band("values", slots(made, module.RING, 2, 0, lambda i: "value")))
    bands.append(Band("aggregates" if per_slot == 2 else "slots",
                      slots(made, module.RING, per_slot, per_slot - 1, look)))  # fmt: skip
    bands.append(Band("parts", [Box(first, end, name, "gone") for name, first, end in
                                zip(PARTS, borders, borders[1:], strict=False) if end > first], 22))  # fmt: skip
    if borders[1] < borders[2]:
        bands.append(Band("MIDDLE" if per_slot == 1 else "RIGHT_TO_BACK", [over(pool[0], "total")]))
    if per_slot == 1 and borders[4] < borders[5]:
        bands.append(Band("BACK_TOTAL", [over(pool[module.BACK_TOTAL], "young")]))
    return bands


def flat_fat() -> list[Item]:
    """FlatFAT: a tree over eight locations, and what a change of one of them rewrites."""
    made = sash.aggregator("flat_fat", LETTERS, values="abcdefgh")
    made.query()
    before = list(pool_of(made))
    items = [Said("eight locations"), *_levels_of(made, before)]
    n = calls(made.update, {2: "X"})
    return [*items, Said(f"location 2 becomes X: its way to the root, {times(n)}"), *_levels_of(made, before)]


def _levels_of(made: Any, before: list[Any]) -> list[Item]:
    """The nodes of a FlatFAT, level by level; thick where they are no longer what they were."""
    pool, at = pool_of(made), registers(made)
    n, bands = at[MASK] + 1, list[Item]()
    in_use = {i % n for i in range(at[OLDEST], at[END])}
    for nodes in (1, 2, 4, 8):
        boxes, wide = list[Box](), n // nodes
        for k, text in enumerate(pool[nodes : 2 * nodes]):
            is_used = bool(text) and not in_use.isdisjoint(range(k * wide, (k + 1) * wide))
            look = "gone" if not is_used else "value" if nodes == n else "ready"
            new = " new" if text != before[nodes + k] else ""
            boxes.append(Box(k * wide, (k + 1) * wide, text if is_used else "", look + new))
        bands.append(Band({1: "root", n: "leaves"}.get(nodes, f"nodes {nodes} to {2 * nodes - 1}"), boxes))
    return bands


def reactive() -> list[Item]:
    """Reactive Aggregator: a window that runs around the leaves of a FlatFAT, one element gone from its middle."""
    made = window("reactive", "abcdefgh")
    made.query()
    made.bulk_evict(4)
    made.bulk_insert("ijk")
    made.evict_at(1)
    n = calls(made.query)
    older, newer = joined[-1]
    at, half = registers(made), 4
    size = at[MASK] + 1
    halves = [Box(0, half, newer, "young"), Box(half, size, older, "ready")]
    return [Said("a to d left, i to k took their places, f left from the middle"),
            *_levels_of(made, list(pool_of(made))), Marks({"END": at[END] % size, "OLDEST": at[OLDEST] % size}),
            Band(f"query, {times(n)}", halves)]  # fmt: skip


def flat_fit() -> list[Item]:
    """FlatFIT: how far each slot reaches, before a query and after it."""
    made = window("flat_fit", "abcdef")
    made.query()
    made.evict()
    made.bulk_insert("gh")
    items = [Said("inserted a to f, asked, evicted a, inserted g and h"), *_reaches(made)]
    n = calls(made.query)
    return [*items, Said(f"asked: {times(n)}, and the slots it met reach up to the youngest"), *_reaches(made)]


def _reaches(made: Any) -> list[Item]:
    at, pool = registers(made), pool_of(made)
    return [Band(f"slot {chr(97 + i)}", [over(pool[1 + (i & at[MASK])], "ready" if i == at[OLDEST] else "value")], 20)
            for i in range(at[OLDEST], at[END])]  # fmt: skip


def slick_deque() -> list[Item]:
    """SlickDeque: the maximum of a window; only values that no younger one beats are kept."""
    made, values = sash.aggregator("slick_deque", sash.max()), [3, 1, 4, 1, 5, 9, 2, 6]
    made.bulk_insert(values)
    items = [Said("inserted 3 1 4 1 5 9 2 6: of each pair the younger stays longer"), *_deque(made, values)]
    made.insert(7)
    items += [Said("inserted 7: it beats 6, and nothing older needs 6 any more"), *_deque(made, [*values, 7])]
    made.bulk_evict(6)
    return [*items, Said("evicted six: 9 leaves with its place, 7 is the answer"), *_deque(made, [*values, 7])]


def _deque(made: Any, values: list[int]) -> list[Item]:
    at, state = registers(made), made._state
    pool = state.pool[1] if isinstance(state.pool, tuple) else state.pool
    kept = [d & at[MASK] for d in range(at[slick_module.FIRST], at[slick_module.LAST])]
    entries = [Box(int(state.links[k]), int(state.links[k]) + 1, str(pool[1 + k]), "ready") for k in kept]
    shown = [Box(i, i + 1, str(x), "value" if i >= at[OLDEST] else "gone") for i, x in enumerate(values)]
    return [Band("window", shown), Band("deque", entries)]


class Later:
    """A second thread of which nobody knows yet when it will run."""

    waited = 0

    def __init__(self) -> None:
        self.due: list[tuple[Any, ...]] = []

    def start(self, first: int, finish: Any, state: Any) -> None:
        """Note what is to be done."""
        self.due.append((finish, state, first))

    def wait_before(self, start: int) -> None:
        """Do what is needed before a slice, and nothing else."""
        while self.due and self.due[0][2] < start:
            finish, state, first = self.due.pop(0)
            finish(state, first)


def sba() -> list[Item]:
    """SBA: chunks of five slices; a window of eight is a suffix of one and the prefix of another."""
    made = window("sba", "abcdefgh", range=8)
    items = [Said("inserted a to h: the window is two chunks, one of them not full"), *_chunks(made)]
    made.insert("i")
    n = calls(made.insert, "j")
    items += [Said(f"inserted i, j: the chunk is full, its suffixes are made, {times(n)}"), *_chunks(made)]
    made.insert("k")
    return [*items, Said("inserted k"), *_chunks(made)]


def pba() -> list[Item]:
    """PBA: a chunk is full, and its suffixes are made while the next one is filled."""
    made = sash.aggregator("pba", LETTERS, range=8)
    made._suffixes.close()
    made._suffixes = Later()
    for letter in "abcdefghijk":
        made.insert(letter)
    items = [Said("inserted a to k: j filled a chunk; its total is there, its suffixes are the second thread's work"),
             *_chunks(made)]  # fmt: skip
    made._suffixes.wait_before(26)
    return [*items, Said("the second thread is done, before any window begins inside that chunk"), *_chunks(made)]


def _chunks(made: Any) -> list[Item]:
    at, pool = registers(made), pool_of(made)
    length, end, ring = at[sba_module.CHUNK], at[END], sba_module.RING
    texts = {j: pool[ring + (j & at[MASK])] for j in range(end)}
    boxes = [Box(j, j + 1, text, "ready" if j < end // length * length and (len(text) > 1 or j % length == length - 1)
                 else "value") for j, text in texts.items()]  # fmt: skip
    named = [Box(first, min(first + length, 12), "chunk", "gone") for first in range(0, end, length)]
    return [
        Band("", named, 20),
        Band("slots", boxes),
        Band("PREFIX", [over(pool[sba_module.PREFIX], "young")]),
        asked(made),
    ]


def log_mta() -> list[Item]:
    """Log MTA: the levels of a window of ten, with a head and a tail on each."""
    made = window("log_mta", "abcdefghijkl")
    n = calls(made.bulk_evict, 3)
    at, pool = registers(made), pool_of(made)
    module, top = log_mta_module, at[log_mta_module.TOP]
    bands: list[Item] = [Said(f"inserted a to l, evicted a to c at once: the heads are renewed, {times(n)}")]
    for level in range(top, -1, -1):
        head = over(pool[module.HEAD + level], "ready")
        last = (at[END] - 1) >> level
        nodes = _nodes(made, module, level, range((at[OLDEST] >> level) + 1, at[END] >> level))
        tail = [over(pool[module.TAIL + level], "young")] if level and at[END] & ((1 << level) - 1) else []
        whole = [Box(each.first, each.end, each.text, "young" if each.first >> level == last else "value")
                 for each in nodes]  # fmt: skip
        bands.append(Band(f"level {level}", [head, *whole, *tail]))
    return [*bands, asked(made)]


def _nodes(made: Any, module: Any, level: int, numbers: range) -> list[Box]:
    place = in_rings(interpreted, module.SHAPE.n_scratch)
    cells = [(node, pool_of(made)[place(made._state, level, node)]) for node in numbers]
    return [Box(node << level, (node + 1) << level, text, "value") for node, text in cells]


def amta() -> list[Item]:
    """AMTA: the forest of a window, its two halves, and the stack of what the left one will be."""
    made = window("amta", "abcdefghijkl")
    made.query()
    items = [Said("inserted a to l"), *_forest(made)]
    n = calls(made.evict)
    items += [Said(f"evicted a: the top of the stack becomes LEFT, {times(n)}"), *_forest(made)]
    n = calls(made.bulk_evict, 4)
    return [*items, Said(f"evicted b to e at once: {times(n)}"), *_forest(made), asked(made)]


def _forest(made: Any) -> list[Item]:
    at, pool, module, bands = registers(made), pool_of(made), amta_module, list[Item]()
    for level in range(at[module.TOP], -1, -1):
        definite, whole = module.n_definite(at[END], level), (at[OLDEST] + (1 << level) - 1) >> level
        dead = [Box(k << level, (k + 1) << level, "", "gone") for k in range(min(whole, definite))]
        bands.append(Band(f"level {level}", [*dead, *_nodes(made, module, level, range(whole, definite))]))
    right = [over(pool[module.RIGHT], "young")] if at[module.FRONT] < at[END] else []
    bands.append(Band("LEFT, RIGHT", [over(pool[module.LEFT], "ready"), *right]))
    stack = [pool[module.STACK + k] for k in range(at[module.DEPTH])]
    return [*bands, *(Band("stack, top first" if k == 0 else "", [over(text, "total")], 20)
                      for k, text in enumerate(reversed(stack)))]  # fmt: skip


def btree() -> list[Item]:
    """B-tree: what one row changes; every aggregate on the way to the root."""
    return _tree_drawing("btree")


def fiba() -> list[Item]:
    """FiBA: aggregates look inward on both spines, so that a row near an end changes little."""
    return _tree_drawing("fiba")


def _tree_drawing(name: str) -> list[Item]:
    made = sash.aggregator(name, LETTERS, min_arity=2)
    for time, letter in enumerate("abcdefghijklmnopqrst"):
        made.insert(time, letter)
    n, before = calls(made.query), _aggregates(made)
    items = [Said(f"rows a to t; below the entries of a node stands its aggregate; query: {times(n)}"),
             *_tree(made, before)]  # fmt: skip
    n = calls(made.insert, 18.5, "X")
    changed = sum(before[node] != text for node, text in _aggregates(made).items())
    return [*items, Said(f"X comes late, before t: {times(n)}, {times(changed, 'aggregate')} changed"),
            *_tree(made, before)]  # fmt: skip


def _aggregates(made: Any) -> dict[int, str]:
    opened = made._opened()
    return {node: opened._read(node * opened._width) for node, _ in opened.nodes()}


def _tree(made: Any, before: dict[int, str]) -> list[Item]:
    """Entries over the aggregates of their nodes, a level at a time; thick where one has changed."""
    opened, root, texts = made._opened(), int(made._tree.at[ROOT]), _aggregates(made)
    column = {place: k * THIN for k, (_, place) in enumerate(opened.entries())}
    looks = {0: "value", LEFT: "ready", RIGHT: "young"}
    bands, levels = list[Item](), dict[int, list[int]]()
    for node, level in opened.nodes():
        levels.setdefault(level, []).append(node)
    middle = {node: (column[opened.places(node)[0]] + column[opened.places(node)[-1]] + THIN) / 2 for node in texts}
    for level, nodes in levels.items():
        entries = [Box(column[place], column[place] + THIN, opened._read(place), "value")
                   for node in nodes for place in opened.places(node)]  # fmt: skip
        sums = []
        for node in nodes:
            look = "total" if node == root else looks[opened.field(node, FLAGS) & ~FRESH]
            half = max(middle[node] - column[opened.places(node)[0]], 0.07 * len(texts[node]) + 0.1)
            new = " new" if before[node] != texts[node] else ""
            sums.append(Box(middle[node] - half, middle[node] + half, texts[node], look + new))
        ties = [(middle[node], middle[child]) for node in nodes for child in opened.children(node)]
        bands += [Band(f"level {level}", entries, 24), Band("", sums, 24), *([Ties(ties)] if ties else [])]
    return bands


def daba_behind_fiba() -> list[Item]:
    """DABA Lite behind FiBA: settled rows in a queue, those that others may still precede in a tree."""
    made = sash.aggregator("daba_behind_fiba", LETTERS, lateness=4, min_arity=2)
    for time, letter in enumerate("abcdefghijkl"):
        made.insert(time, letter)
    made.query()
    queue, opened = made._window.queue, made._opened()
    at = [int(each) for each in queue.at]
    ring, back = daba_lite_module.RING, at[daba_lite_module.BACK]
    settled = [Box(i, i + 1, queue.pool[ring + (i & at[MASK])], "ready" if i < back else "value")
               for i in range(at[OLDEST], at[END])]  # fmt: skip
    keys = [(int(key), opened._read(place)) for key, place in opened.entries()]
    young = [Box(key, key + 1, text, "young") for key, text in keys]
    n = calls(made.query)
    return [Said("rows a to l came, none may be later than 4: what is older than l less 4 is settled"),
            Band("elements", [Box(i, i + 1, chr(97 + i), "value") for i in range(12)]),
            Band("DABA Lite", settled), Band("FiBA", young), Marks({"horizon": 11 - 4}),
            Band(f"query, {times(n)}", [over(joined[-1][0], "ready"), over(joined[-1][1], "young")])]  # fmt: skip


DRAWN: tuple[Callable[[], list[Item]], ...] = (
    recalc, subtract_on_evict, two_stacks, two_stacks_lite, aba, daba, daba_lite, flat_fat, reactive, flat_fit,
    slick_deque, sba, pba, log_mta, amta, btree, fiba, daba_behind_fiba,
)  # fmt: skip


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else TARGET)
