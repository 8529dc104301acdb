"""What the tests of streams share."""

from __future__ import annotations

import pytest

from sash.streams import waiting


@pytest.fixture(scope="module")
def interpreted():
    """The same source, interpreted: compiling takes longer than these tables; test_parity has one test compiled."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SASH_JIT", "0")
        yield


@pytest.fixture(scope="module")
def joined_pieces():
    """So few rows in a piece, and so few pieces before they are joined, that a handful of rows has all of it."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("ROWS", 8), ("JOINED", 5), ("FEW", 2)):
            patch.setattr(waiting, name, value)
        yield
