"""What the tests of streams share."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module")
def interpreted():
    """The same source, interpreted: compiling takes longer than these tables; test_parity has one test compiled."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SASH_JIT", "0")
        yield
