"""Where a window may live: stores of bytes.

contract   what a store is and what it guarantees
chunks     how window data lie in one: 4,080 bytes, checked
opening    open_store(url); one module for each kind of store beside it
"""

from sash.stores.contract import Store
from sash.stores.opening import open_store

__all__ = ["Store", "open_store"]
