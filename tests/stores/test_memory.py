import pytest

import sash
from sash.errors import DeclarationError
from sash.testing.store_suite import StoreSuite


class TestMemory(StoreSuite):
    durable = False

    @pytest.fixture
    def make_store(self):
        return lambda: sash.open_store("memory:")


def test_it_has_no_address():
    with pytest.raises(DeclarationError, match="write memory: and nothing after it"):
        sash.open_store("memory:///somewhere")
