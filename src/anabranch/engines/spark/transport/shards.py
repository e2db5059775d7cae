"""Which shard an event belongs to, and the ids under which Spark keeps one shard in each state partition."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

_SEED = 42
_MASK = 0xFFFFFFFF


def shard_ids(count: int) -> tuple[int, ...]:
    """The ids of so many shards: Spark puts the n-th into the n-th of so many partitions.

    Spark takes ``hash(id)`` modulo the partitions, so consecutive ids meet in some partitions and leave
    others empty.

    >>> shard_ids(4)
    (12, 6, 2, 0)
    """
    if count < 1:
        raise ValueError(f"a level has 1 shard or more, not {count}")
    found: dict[int, int] = {}
    candidate = 0
    while len(found) < count:
        found.setdefault(_spark_hash(candidate) % count, candidate)
        candidate += 1
    return tuple(found[partition] for partition in range(count))


def shard_of(identities: NDArray[np.uint64], count: int) -> NDArray[Any]:
    """The number of the shard of each identity.

    By the upper bits of the high word: the tables inside a shard use the lower ones.
    """
    if count == 1:
        return np.zeros(len(identities), np.int64)
    return ((identities[:, 1] >> np.uint64(32)) % np.uint64(count)).astype(np.int64)


def _spark_hash(number: int) -> int:
    """Spark's ``hash`` of an int: MurmurHash3 x86 32 (Appleby, public domain) of four bytes."""
    k = _rotated(number * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK
    h = (_rotated(_SEED ^ k, 13) * 5 + 0xE6546B64) & _MASK
    h ^= 4
    h = (h ^ h >> 16) * 0x85EBCA6B & _MASK
    h = (h ^ h >> 13) * 0xC2B2AE35 & _MASK
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> 32 - bits) & _MASK
