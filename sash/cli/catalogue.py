"""The cards of the algorithms, as a table."""

from __future__ import annotations

from rich.table import Table

from sash.engine.cards import algorithms
from sash.errors import UnknownNameError

COLUMNS = ("name", "algorithm", "order", "asks of combine", "a round", "at worst", "partials")


def table(order: str | None = None) -> Table:
    """All algorithms, or those for one order of rows."""
    cards = algorithms()
    orders = sorted({card.order for card in cards})
    if order is not None and order not in orders:
        raise UnknownNameError.among("order", order, orders)
    shown = Table(*COLUMNS, title="calls of combine for a round of insert, evict and query, n rows in the window")
    for card in cards:
        if order in (None, card.order):
            shown.add_row(card.name, card.title, card.order, card.needs, card.amortised, card.worst, card.space)
    return shown
