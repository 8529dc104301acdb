"""Partials that are texts, for scans over whole columns: rows lost, repeated or swapped show, and wrong counts too."""

from __future__ import annotations

from sash.compiling.cells import Values


def texts(calls):
    """Values whose partials are texts, and whether their parts were as long as said; calls of combine are noted."""

    def combine(older, newer, n_older, n_newer):
        calls.append(1)
        is_told = (len(older[0]), len(newer[0])) == (n_older, n_newer)
        return older[0] + newer[0], older[1] and newer[1] and is_told

    def lower(results, i, partial, n):
        assert partial[1]
        assert len(partial[0]) == n
        results[0][i] = partial[0]

    def load(pool, i):
        assert i >= 0
        return pool[i]

    def store(pool, i, partial):
        assert i >= 0
        pool[i] = partial

    return Values(
        load=load, store=store, lift=lambda column, i: (column[i], True), combine=combine, lower=lower, slice=None,
        allocate=lambda n: [("", False)] * n, results=lambda n: [[None] * n],
    )  # fmt: skip


def text_of(n):
    """A text of different letters."""
    return "".join(chr(0x4E00 + i) for i in range(n))


def windows_of(column, rows):
    """The windows of all rows of a column."""
    return [column[max(0, i + 1 - rows) : i + 1] for i in range(len(column))]
