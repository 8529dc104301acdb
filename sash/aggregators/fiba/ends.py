"""Rows in order: appended at the right finger and evicted at the left one, without a search.

    left finger   | oldest | gap: entries that have left | the other entries, oldest first |
    suffixes      | the last entry + above | the last two + above | ... | all but the oldest + above |

The left finger is folded from its young end, and what comes of it on the way is kept: the aggregates of
its last 1, 2, ... entries together with all above. So after an eviction the new aggregate is there
already, without a combine. The entries that stay are not moved either, but for one: the new oldest takes
the place of the old one, where others look for it, and leaves a gap behind it. Whoever needs the entries
side by side closes the gap first.

A left finger may run down to its last entry, whatever min_arity is. As it loses that, it takes in its
neighbour whole if both fit into one, else it borrows all that the neighbour can spare. A right finger that
overflows passes its younger half on to a new one. Right aggregates end with what is youngest, so what then
stays behind is added to that of the parent for two combines.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from sash.aggregators.fiba.layout import (
    ARITY,
    COUNT,
    FLAGS,
    FREE_LEAF,
    GAP,
    HEIGHT,
    LEFT_FINGER,
    N_NODES,
    NODES_END,
    NONE,
    PARENT,
    RIGHT,
    RIGHT_FINGER,
    ROOT,
    SUFFIXES,
    Kit,
    Nodes,
    Supply,
    Tree,
)  # fmt: skip
from sash.aggregators.fiba.rebalancing import Rebalancing
from sash.aggregators.fiba.repairing import Repairing
from sash.algebra.monoid import Function


class Ends(NamedTuple):
    """The operations at both ends of the window; where they give False, nothing has been done."""

    append: Function  # (tree, key, columns, row) -> whether the row was younger than all others, and is in
    drop: Function  # (tree, key) -> whether it was the oldest key, and is gone


def ends_of(kit: Kit, nodes: Nodes, supply: Supply, repairs: Repairing, upward: Rebalancing) -> Ends:
    """Make the operations at both ends."""
    append = _appender(kit, nodes, supply, upward)
    return Ends(append, _dropper(kit, nodes, _filler(kit, nodes, supply, repairs, upward)))


def _appender(kit: Kit, nodes: Nodes, supply: Supply, upward: Rebalancing) -> Function:
    width, max_arity, combine, lift = kit.width, 2 * kit.min_arity, kit.cells.combine, kit.cells.lift
    less, load, store, get, put = kit.keys.less, kit.keys.load, kit.keys.store, nodes.get, nodes.put
    can_pass, pass_on = _passing(kit, nodes, supply)
    has_room, trim, close_gap = supply.has_room, upward.trim, nodes.close_gap

    def append(s: Tree, key: Any, columns: object, row: int) -> bool:
        node = s.at[RIGHT_FINGER]
        arity = get(s.links, node, ARITY)
        place, is_full, is_near = node * width + arity, arity == max_arity, False
        if arity == 1 or not less(load(s.keys, place - 1), key):
            return False
        if is_full:
            is_near = can_pass(s, node)
            if not is_near and not has_room(s, s.at[HEIGHT] + 2):
                return False
        store(s.keys, place, key)
        lift(s.pool, place, columns, row)
        if is_near:
            pass_on(s, node)
        elif is_full:
            put(s.links, node, ARITY, arity + 1)
            close_gap(s)  # a new root changes the left finger too
            trim(s, node)
        else:
            combine(s.pool, node * width, node * width, place)
            put(s.links, node, ARITY, arity + 1)
            put(s.links, node, COUNT, get(s.links, node, COUNT) + 1)
        return True

    return kit.jit(append)


def _passing(kit: Kit, nodes: Nodes, supply: Supply) -> tuple[Function, Function]:
    jit, width, min_arity, (begin, add, _, end, *_) = kit.jit, kit.width, kit.min_arity, kit.cells.fold
    get, put, shift, adopt, touch, new_leaf = (
        nodes.get, nodes.put, nodes.shift, nodes.adopt, nodes.touch, supply.new_leaf
    )  # fmt: skip
    fold_youngest = _youngest_folder(kit, nodes)

    @jit
    def can_pass(s: Tree, node: int) -> bool:
        at, parent = s.at, get(s.links, node, PARENT)
        has_leaf = at[FREE_LEAF] != NONE or at[NODES_END] < at[N_NODES]
        return bool(parent != NONE and get(s.links, parent, ARITY) < 2 * min_arity and has_leaf)

    @jit
    def pass_on(s: Tree, node: int) -> None:
        """Split a right finger that overflows; its parent has room (restores I2, I6 and I9)."""
        links, pool, parent, right = s.links, s.pool, get(s.links, node, PARENT), new_leaf(s)
        own, above, n_above = node * width, parent * width, get(links, parent, ARITY)
        for i in range(1, min_arity):
            shift(s, own + min_arity + 1 + i, right * width + i)
        shift(s, own + min_arity + 1, above + n_above)
        held = begin(pool, own, own + 1)
        for i in range(2, min_arity + 1):
            held = add(pool, own, held, own + i)
        end(pool, own, held)
        held = add(pool, above, begin(pool, above, above), own)
        end(pool, above, add(pool, above, held, above + n_above))
        adopt(s, parent, n_above, right)
        touch(s, parent)
        put(links, parent, ARITY, n_above + 1)
        put(links, parent, COUNT, get(links, parent, COUNT) + min_arity + 1)
        put(links, node, ARITY, min_arity + 1)
        put(links, node, COUNT, min_arity)
        put(links, node, FLAGS, 0)
        put(links, right, ARITY, min_arity)
        put(links, right, FLAGS, RIGHT)
        s.at[RIGHT_FINGER] = right
        fold_youngest(s, right, parent)

    return can_pass, pass_on


def _youngest_folder(kit: Kit, nodes: Nodes) -> Function:
    width, min_arity, get, put = kit.width, kit.min_arity, nodes.get, nodes.put
    begin, add, _, end, *_ = kit.cells.fold

    def fold_youngest(s: Tree, node: int, parent: int) -> None:
        """Fold a right finger of the smallest kind, after all above it (restores I9)."""
        pool, own, count, is_top = s.pool, node * width, min_arity - 1, parent == s.at[ROOT]
        held = begin(pool, own, own + 1 if is_top else parent * width)
        for i in range(2 if is_top else 1, min_arity):
            held = add(pool, own, held, own + i)
        end(pool, own, held)
        put(s.links, node, COUNT, count if is_top else count + get(s.links, parent, COUNT))

    return kit.jit(fold_youngest)


def _dropper(kit: Kit, nodes: Nodes, fill: Function) -> Function:
    less, get, first = kit.keys.less, nodes.get, nodes.first
    slide, slide_root = _sliding(kit, nodes)

    def drop(s: Tree, key: Any) -> bool:
        node = s.at[LEFT_FINGER]
        arity, oldest = get(s.links, node, ARITY), first(s, node)
        if arity == 1 or less(oldest, key) or less(key, oldest):
            return False
        if node == s.at[ROOT]:
            if arity == 2:
                return False
            slide_root(s, node, arity)
        elif arity > 2:
            slide(s, node, arity)
        else:
            return bool(fill(s, node))
        return True

    return kit.jit(drop)


def _sliding(kit: Kit, nodes: Nodes) -> tuple[Function, Function]:
    jit, width, combine, transfer = kit.jit, kit.width, kit.cells.combine, kit.cells.transfer
    get, put, shift = nodes.get, nodes.put, nodes.shift

    @jit
    def slide(s: Tree, node: int, arity: int) -> None:
        """Remove the oldest entry of a left finger that can spare it: its new aggregate is a suffix (I14)."""
        own, gap = node * width, s.at[GAP]
        shift(s, own + 2 + gap, own + 1)
        transfer(s.pool, own, s.pool, SUFFIXES + arity - 2)
        put(s.links, node, ARITY, arity - 1)
        put(s.links, node, COUNT, get(s.links, node, COUNT) - 1)
        s.at[GAP] = gap + 1

    @jit
    def slide_root(s: Tree, node: int, arity: int) -> None:
        """Remove the oldest entry of a root that is a leaf; it has no suffixes, for it is appended to as well."""
        pool, own = s.pool, node * width
        for place in range(own + 2, own + arity):
            shift(s, place, place - 1)
        transfer(pool, own, pool, own + 1)
        for place in range(own + 2, own + arity - 1):
            combine(pool, own, own, place)
        put(s.links, node, ARITY, arity - 1)
        put(s.links, node, COUNT, arity - 2)

    return slide, slide_root


def _filler(kit: Kit, nodes: Nodes, supply: Supply, repairs: Repairing, upward: Rebalancing) -> Function:
    width, min_arity, transfer, get, child = kit.width, kit.min_arity, kit.cells.transfer, nodes.get, nodes.child
    take_in, borrow, shift = _taker(kit, nodes, supply), _borrower(kit, nodes), nodes.shift
    repair, fold_oldest, fill_up = repairs.repair, repairs.fold_oldest, upward.fill

    def fill(s: Tree, node: int) -> bool:
        """Evict the only entry of a left finger; False if the tree must lose a level."""
        links, root, parent = s.links, s.at[ROOT], get(s.links, node, PARENT)
        right = child(s, parent, 1)
        n_right, is_pair = get(links, right, ARITY), parent == root and get(links, parent, ARITY) == 2
        if is_pair and n_right == min_arity:
            return False
        shift(s, parent * width + 1, node * width + 1)
        s.at[GAP] = 0
        if is_pair or n_right == 2 * min_arity:
            borrow(s, node, parent, right)
        else:
            take_in(s, node, parent, right)
        if parent != root and get(links, parent, ARITY) < min_arity:
            fill_up(s, parent, 1)
        else:
            if is_pair:
                transfer(s.pool, parent * width, s.pool, parent * width + 1)
            else:
                repair(s, parent)
            fold_oldest(s, node)
        return True

    return kit.jit(fill)


def _taker(kit: Kit, nodes: Nodes, supply: Supply) -> Function:
    width, get, put, shift = kit.width, nodes.get, nodes.put, nodes.shift
    close_entry, close_child, release = nodes.close, nodes.close_child, supply.release

    def take_in(s: Tree, node: int, parent: int, right: int) -> None:
        """Append all entries of the neighbour, after that of the parent."""
        links, n_right = s.links, get(s.links, right, ARITY)
        for i in range(1, n_right):
            shift(s, right * width + i, node * width + 1 + i)
        put(links, node, ARITY, n_right + 1)
        put(links, right, ARITY, 0)
        release(s, right)
        close_entry(s, parent, 0)
        close_child(s, parent, 1)

    return kit.jit(take_in)


def _borrower(kit: Kit, nodes: Nodes) -> Function:
    width, min_arity, (begin, add, _, end, *_) = kit.width, kit.min_arity, kit.cells.fold
    get, put, shift = nodes.get, nodes.put, nodes.shift

    def borrow(s: Tree, node: int, parent: int, right: int) -> None:
        """Append what the neighbour can spare, after the entry of the parent; the last of it goes to the parent.

        The neighbour has nothing above it: it is off the spines, or right below the root (restores I6 or I9).
        """
        links, own = s.links, right * width
        n = get(links, right, ARITY) - min_arity
        for i in range(1, n):
            shift(s, own + i, node * width + 1 + i)
        shift(s, own + n, parent * width + 1)
        for i in range(1, min_arity):
            shift(s, own + n + i, own + i)
        held = begin(s.pool, own, own + 1)
        for i in range(2, min_arity):
            held = add(s.pool, own, held, own + i)
        end(s.pool, own, held)
        put(links, node, ARITY, n + 1)
        put(links, right, ARITY, min_arity)
        put(links, right, COUNT, min_arity - 1)

    return kit.jit(borrow)
