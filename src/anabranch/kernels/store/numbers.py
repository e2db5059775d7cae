"""Dense numbers for keys: each key is looked up once for a row, and all else is arrays by its number.

A key is two words: an identity, or a value and whether it is null. A number stands for one key until it is
given back, and those that were given back are given out first, so that arrays by number are as long as there
were keys at once, to the next power of two.

Memory: 36 bytes per number, and at most twice as many numbers as there were at once.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anabranch.kernels.store.ahead import ahead
from anabranch.model.compiled import compiled, inlined, inner
from anabranch.model.identity import Words
from anabranch.model.murmur import mix
from anabranch.model.pool import Pool, give_place, grown, take_place
from anabranch.model.slots import (
    NONE,
    TAG_MASK,
    empty_slots,
    more_slots,
    node_in,
    slot_of,
    tag_in,
    vacate_slot,
)

_AHEAD = 8
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


class Numbers(NamedTuple):
    """State: the keys by number, the slots that lead to them, and the numbers that are free.

    >>> words = np.array([[1, 2], [3, 4], [1, 2]], np.uint64)
    >>> numbers, found, rows = Numbers.of_capacity(4).number(words)
    >>> found.tolist(), rows.tolist(), numbers.used
    ([0, 1, 0], [0, 1], 2)
    """

    slots: NDArray[np.int64]
    words: Words
    pool: Pool

    @classmethod
    def of_capacity(cls, capacity: int) -> "Numbers":
        """None, with room for this many (a power of two)."""
        return cls(empty_slots(capacity), np.zeros((capacity, 2), np.uint64), Pool.of_capacity(capacity))

    @property
    def capacity(self) -> int:
        """How many fit."""
        return self.pool.capacity

    @property
    def used(self) -> int:
        """How many there are."""
        return self.pool.used

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self.slots.nbytes + self.words.nbytes + self.pool.nbytes

    def with_room(self, more: int) -> "Numbers":
        """The same numbers for the same keys, with room for so many more."""
        pool = self.pool.with_room(more)
        if pool is self.pool:
            return self
        return Numbers(more_slots(self.slots, pool.capacity), grown(self.words, pool.capacity), pool)

    def number(self, words: Words) -> tuple["Numbers", NDArray[np.int32], NDArray[np.int64]]:
        """The number of each key, and the rows whose keys had none and have a new one."""
        numbers, done, new = self, 0, 0
        found, rows = np.empty(len(words), np.int32), np.empty(len(words), np.int64)
        while True:
            done, new = number_all(numbers, words, found, rows, done, new)
            if done == len(words):
                return numbers, found, rows[:new]
            numbers = numbers.with_room(numbers.capacity)


@inlined
def _tag(low: Any, high: Any) -> Any:
    """31 bits of the hash of a key; the lowest of them are its home among the slots."""
    return np.int64(mix(low ^ (high * _SPREAD)) & TAG_MASK)


@inner
def _slot(numbers: Numbers, tag: int, low: Any, high: Any) -> Any:
    """The slot of a key, or the empty slot where it would go."""
    mask = len(numbers.slots) - 1
    slot = tag & mask
    while True:
        entry = numbers.slots[slot]
        if entry < 0:
            return slot
        if tag_in(entry) == tag:
            number = node_in(entry)
            if numbers.words[number, 0] == low and numbers.words[number, 1] == high:
                return slot
        slot = (slot + 1) & mask


@inner
def number_of(numbers: Numbers, low: Any, high: Any) -> Any:
    """The number of a key, or NONE."""
    return node_in(numbers.slots[_slot(numbers, _tag(low, high), low, high)])


@inlined
def slot_ahead(numbers: Numbers, low: Any, high: Any) -> None:
    """Ask for the slots where a key is looked for."""
    ahead(numbers.slots, _tag(low, high) & (len(numbers.slots) - 1))


@inner
def number_for(numbers: Numbers, low: Any, high: Any) -> Any:
    """The number of a key, a new one if it has none; NONE where there is no room for that."""
    tag = _tag(low, high)
    slot = _slot(numbers, tag, low, high)
    number = node_in(numbers.slots[slot])
    if number == NONE and numbers.pool.height[0] > 0:
        number = number_apart(numbers, low, high)
        numbers.slots[slot] = slot_of(tag, number)
    return number


@inlined
def number_apart(numbers: Numbers, low: Any, high: Any) -> Any:
    """A new number for a key that is found by other means than the slots; the caller has made room."""
    number = take_place(numbers.pool)
    numbers.words[number, 0], numbers.words[number, 1] = low, high
    return number


@compiled
def number_all(numbers: Numbers, words: Any, found: Any, rows: Any, begin: int, new: int) -> tuple[int, int]:
    """Write the number of each key to ``found``, from one row on, and to ``rows`` those whose keys are new.

    Returns how many rows are done when room runs out, and how many of them had new keys: at most each.
    """
    mask = len(numbers.slots) - 1
    for i in range(begin, len(words)):
        if i + 2 * _AHEAD < len(words):
            ahead(numbers.slots, _tag(words[i + 2 * _AHEAD, 0], words[i + 2 * _AHEAD, 1]) & mask)
        if i + _AHEAD < len(words):
            likely = numbers.slots[_tag(words[i + _AHEAD, 0], words[i + _AHEAD, 1]) & mask]
            ahead(numbers.words, np.int64(max(node_in(likely), 0)))
        free = numbers.pool.height[0]
        number = number_for(numbers, words[i, 0], words[i, 1])
        if number == NONE:
            return i, new
        if numbers.pool.height[0] < free:
            rows[new] = i
            new += 1
        found[i] = number
    return len(words), new


@inner
def leave_slots(numbers: Numbers, number: int) -> None:
    """Let a key no longer be found by the slots, if it was; its number is still taken."""
    low, high = numbers.words[number, 0], numbers.words[number, 1]
    slot = _slot(numbers, _tag(low, high), low, high)
    if numbers.slots[slot] >= 0:
        vacate_slot(numbers.slots, slot)


@inner
def give_back(numbers: Numbers, number: int) -> None:
    """Forget one number."""
    leave_slots(numbers, number)
    give_place(numbers.pool, number)
