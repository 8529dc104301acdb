"""What the tests of tables share."""

from __future__ import annotations

import pytest


@pytest.fixture(scope="module")
def interpreted():
    """The same source, interpreted: the engine's own tests run it compiled, here it is tables that are tested."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SASH_JIT", "0")
        yield
