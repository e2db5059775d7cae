"""Dense numbers for identities: each key is looked up once for a row, and all else is arrays by its number.

A number stands for one identity until it is given back, and the least that are free are given out first, so
that arrays by number are as long as there were identities at once.

Memory: 36 bytes per number, and at most twice as many numbers as there were at once.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anabranch.kernels.store.ahead import ahead
from anabranch.model.compiled import compiled, inlined, inner
from anabranch.model.identity import Words
from anabranch.model.slots import NONE, TAG_MASK, link_all, node_in, slot_of, tag_in, vacate_slot

_AHEAD = 8


class Numbers(NamedTuple):
    """State: the identities by number, the slots that lead to them, and a stack of the numbers that are free.

    >>> words = np.array([[1, 2], [3, 4], [1, 2]], np.uint64)
    >>> numbers, found = Numbers.of_capacity(4).number(words)
    >>> found.tolist(), numbers.used
    ([0, 1, 0], 2)
    """

    slots: NDArray[np.int64]
    words: Words
    free: NDArray[np.int32]
    unused: NDArray[np.int64]
    """How high the stack of free numbers is, as an array of one."""

    @classmethod
    def of_capacity(cls, capacity: int) -> "Numbers":
        """None, with room for this many (a power of two)."""
        return cls(
            np.full(2 * capacity, NONE, np.int64),
            np.zeros((capacity, 2), np.uint64),
            np.arange(capacity, dtype=np.int32)[::-1].copy(),
            np.array([capacity], np.int64),
        )

    @property
    def capacity(self) -> int:
        """How many fit."""
        return len(self.free)

    @property
    def used(self) -> int:
        """How many there are."""
        return self.capacity - int(self.unused[0])

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(column.nbytes for column in self)

    def with_room(self, more: int) -> "Numbers":
        """The same numbers for the same identities, with room for so many more."""
        if more <= self.unused[0]:
            return self
        larger = Numbers.of_capacity(1 << (self.used + more - 1).bit_length())
        larger.words[: self.capacity] = self.words
        new, unused = larger.capacity - self.capacity, int(self.unused[0])
        larger.free[new : new + unused] = self.free[:unused]
        larger.unused[0] = new + unused
        link_all(self.slots, larger.slots)
        return larger

    def number(self, words: Words) -> tuple["Numbers", NDArray[np.int32]]:
        """The number of each identity, new ones for those that have none."""
        numbers, found, done = self, np.empty(len(words), np.int32), 0
        while (done := number_all(numbers, words, found, done)) < len(words):
            numbers = numbers.with_room(numbers.capacity)
        return numbers, found

    def give_back(self, numbers: NDArray[np.int64]) -> None:
        """Forget these numbers."""
        for number in numbers.tolist():
            give_back(self, number)


@inlined
def _tag(low: Any, high: Any) -> Any:
    """31 bits of an identity, whose words are hashes; the lowest of them are its home among the slots."""
    return np.int64((low ^ (high >> np.uint64(32))) & TAG_MASK)


@inner
def _slot(numbers: Numbers, tag: int, low: Any, high: Any) -> Any:
    """The slot of an identity, or the empty slot where it would go."""
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
    """The number of an identity, or NONE."""
    return node_in(numbers.slots[_slot(numbers, _tag(low, high), low, high)])


@inner
def number_for(numbers: Numbers, low: Any, high: Any) -> Any:
    """The number of an identity, a new one if it has none; the caller has made room."""
    tag = _tag(low, high)
    slot = _slot(numbers, tag, low, high)
    number = node_in(numbers.slots[slot])
    if number == NONE:
        numbers.unused[0] -= 1
        number = np.int64(numbers.free[numbers.unused[0]])
        numbers.slots[slot] = slot_of(tag, number)
        numbers.words[number, 0], numbers.words[number, 1] = low, high
    return number


@compiled
def number_all(numbers: Numbers, words: Any, found: Any, begin: int) -> int:
    """Write the number of each identity to ``found``, from one on; how many are done when room runs out."""
    mask = len(numbers.slots) - 1
    for i in range(begin, len(words)):
        if numbers.unused[0] == 0:
            return i
        if i + 2 * _AHEAD < len(words):
            ahead(numbers.slots, _tag(words[i + 2 * _AHEAD, 0], words[i + 2 * _AHEAD, 1]) & mask)
        if i + _AHEAD < len(words):
            likely = numbers.slots[_tag(words[i + _AHEAD, 0], words[i + _AHEAD, 1]) & mask]
            ahead(numbers.words, np.int64(max(node_in(likely), 0)))
        found[i] = number_for(numbers, words[i, 0], words[i, 1])
    return len(words)


@compiled
def give_back(numbers: Numbers, number: int) -> None:
    """Forget one number."""
    low, high = numbers.words[number, 0], numbers.words[number, 1]
    vacate_slot(numbers.slots, _slot(numbers, _tag(low, high), low, high))
    numbers.free[numbers.unused[0]] = number
    numbers.unused[0] += 1
