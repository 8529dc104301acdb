"""Labels of shards that Spark spreads evenly over its partitions, however many there are.

Spark puts a group into the partition `hash mod n`. With a handful of groups that is a game of dice: eight shards fall
five and three on two cores, and every micro-batch waits for the five. Spark's hash of an integer (MurmurHash3, seed 42)
is a bijection, so it can be undone: shard i is called what hashes to i, and is in the partition `i mod n`.
"""

from __future__ import annotations

BITS = 32
ALL = (1 << BITS) - 1
SEED = 42  # Spark's
N_BYTES = 4  # of what is hashed

# MurmurHash3 for 32 bits, backwards: each step of it is a bijection.
FACTORS = (0xCC9E2D51, 0x1B873593, 0x85EBCA6B, 0xC2B2AE35, 5)
INVERSES: list[int] = [pow(each, -1, ALL + 1) for each in FACTORS]
MIX_1, MIX_2, FINAL_1, FINAL_2, FIVE = INVERSES
ADDED = 0xE6546B64


def label_of(shard: int) -> int:
    """The integer whose hash in Spark is the number of a shard."""
    mixed = _unshifted(shard & ALL, 16)
    mixed = _unshifted(mixed * FINAL_2 & ALL, 13)
    mixed = _unshifted(mixed * FINAL_1 & ALL, 16) ^ N_BYTES
    mixed = _turned_back((mixed - ADDED) * FIVE & ALL, 13) ^ SEED
    label = _turned_back(mixed * MIX_2 & ALL, 15) * MIX_1 & ALL
    return label - ALL - 1 if label > ALL >> 1 else label


def _unshifted(number: int, n: int) -> int:
    """Undo `x ^ (x >> n)`, n at least a third of the bits."""
    return number ^ (number >> n) ^ (number >> 2 * n)


def _turned_back(number: int, n: int) -> int:
    return (number >> n | number << (BITS - n)) & ALL
