"""A calendar: things to be taken once a time has passed, each moved a few times on the way, none compared.

What is kept is at or after a time, the base. It stands on the level of the highest byte in which its time
differs from the base, in the page of that byte. When the base moves on, all that stands in pages before it is
taken, and the one page that the base has entered is divided among the levels below. So a thing comes closer
level by level, at most eight times, whatever times there are; no width of pages is chosen (a radix heap:
Ahuja, Mehlhorn, Orlin and Tarjan 1990, with bytes for bits).

Memory: 16 bytes for each thing, in blocks of 16 of one page, of which each page has at most one that is not
full. Cost: as many moves as levels; a look at the pages of levels on which something stands.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from anabranch.model.compiled import compiled, inlined, inner
from anabranch.model.pool import Pool, give_place, grown, take_place
from anabranch.model.slots import NONE
from anabranch.model.time import BEGINNING, FOREVER

_LEVELS, _PAGES, _BITS = 8, 256, 8
_BLOCK = 16
"""Things in a block."""


class Calendar(NamedTuple):
    """State: what is to come, by page.

    >>> calendar = Calendar.empty().with_room(3)
    >>> calendar.add(np.array([70_000, 5, 300]), np.array([0, 1, 2]))
    >>> [column.tolist() for column in calendar.take_before(300)], calendar.size
    ([[5], [1]], 2)
    """

    first: NDArray[np.int32]
    """By page: its first block, the only one that may not be full."""
    sizes: NDArray[np.int64]
    """By page: how many things stand there."""
    totals: NDArray[np.int64]
    """By level: how many things stand there."""
    things: NDArray[np.int64]
    """By block: times and places, in turn."""
    following: NDArray[np.int32]
    """By block: the next one of its page."""
    pool: Pool
    base: NDArray[np.int64]
    """The time that has passed, as an array of one."""
    moved: NDArray[np.int64]
    """How many things have been taken or moved, as an array of one."""

    @classmethod
    def empty(cls) -> "Calendar":
        """One with nothing in it, of which no time has passed."""
        pages = _LEVELS * _PAGES
        return cls(
            np.full(pages, NONE, np.int32),
            np.zeros(pages, np.int64),
            np.zeros(_LEVELS, np.int64),
            np.zeros((0, 2 * _BLOCK), np.int64),
            np.zeros(0, np.int32),
            Pool.of_capacity(0),
            np.array([BEGINNING], np.int64),
            np.zeros(1, np.int64),
        )

    @property
    def size(self) -> int:
        """How many things there are."""
        return int(self.totals.sum())

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return sum(part.nbytes for part in self)

    def with_room(self, more: int) -> "Calendar":
        """The same calendar, with room for so many things more, wherever they stand.

        Each page has a block that is not full, at most one for each thing; one block more is read while the
        page that it was of is divided.
        """
        count = self.size + more
        blocks = count // _BLOCK + min(count, len(self.first)) + 1
        pool = self.pool.with_room(blocks - self.pool.used)
        if pool is self.pool:
            return self
        things, following = grown(self.things, pool.capacity), grown(self.following, pool.capacity)
        return self._replace(things=things, following=following, pool=pool)

    def add(self, times: NDArray[np.int64], places: NDArray[np.int64]) -> None:
        """Note places by their times, none of which has passed; room has been made."""
        _add(self, times, places)

    def take_before(self, time: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The times and the places before a time that has not passed, in no order; all at the end."""
        room = self.size if time == FOREVER else _most(self, time)
        times, places = np.empty(room, np.int64), np.empty(room, np.int64)
        count = _take(self, time, time == FOREVER, times, places)
        return times[:count], places[:count]

    def all(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The times and the places of all, which stay."""
        times, places = np.empty(self.size, np.int64), np.empty(self.size, np.int64)
        _copy(self, times, places)
        return times, places


@inner
def _level(time: Any, base: Any) -> Any:
    """The highest byte in which two times differ; 0 where none does."""
    apart, level = time ^ base, 0
    while level < _LEVELS - 1 and apart >> _BITS != 0:
        apart >>= _BITS
        level += 1
    return level


@inlined
def _page(time: Any, level: Any) -> Any:
    """The page of a time on a level; the highest byte has a sign, and times before zero come first."""
    digit = (time >> (_BITS * level)) & (_PAGES - 1)
    return level * _PAGES + (digit ^ (_PAGES >> 1) if level == _LEVELS - 1 else digit)


@inner
def _put(calendar: Calendar, time: Any, place: Any) -> None:
    level = _level(time, calendar.base[0])
    page = _page(time, level)
    at = calendar.sizes[page] % _BLOCK
    if at == 0:
        block = take_place(calendar.pool)
        calendar.following[block] = calendar.first[page]
        calendar.first[page] = block
    block = calendar.first[page]
    calendar.things[block, 2 * at], calendar.things[block, 2 * at + 1] = time, place
    calendar.sizes[page] += 1
    calendar.totals[level] += 1


@compiled
def _add(calendar: Calendar, times: Any, places: Any) -> None:
    for i in range(len(times)):
        _put(calendar, times[i], places[i])


@compiled
def _most(calendar: Calendar, time: int) -> Any:
    """How many things stand in the pages that a move of the base to a time takes from, or divides."""
    top, count = _level(time, calendar.base[0]), 0
    for level in range(top):
        count += calendar.totals[level]
    for page in range(_page(calendar.base[0], top), _page(time, top) + 1):
        count += calendar.sizes[page]
    return count


@inner
def _turn(calendar: Calendar, page: Any, before: Any, times: Any, places: Any, count: Any) -> Any:
    """Empty a page: what is before a time is taken, the rest put where it now stands; how many are taken."""
    block, size = np.int64(calendar.first[page]), calendar.sizes[page]
    calendar.first[page], calendar.sizes[page] = NONE, 0
    calendar.totals[page // _PAGES] -= size
    calendar.moved[0] += size
    held = (size - 1) % _BLOCK + 1
    while block >= 0:
        for at in range(held):
            time, place = calendar.things[block, 2 * at], calendar.things[block, 2 * at + 1]
            if time < before:
                times[count], places[count] = time, place
                count += 1
            else:
                _put(calendar, time, place)
        following = np.int64(calendar.following[block])
        give_place(calendar.pool, block)
        block, held = following, _BLOCK
    return count


@compiled
def _take(calendar: Calendar, time: int, everything: bool, times: Any, places: Any) -> Any:
    """Move the base to a time, and write what was before it; how many things that are.

    What is on a level below the highest byte in which the base and the time differ is before the time, and
    on that level what is in a page before that of the time; of this page some may be.
    """
    count = 0
    top = _LEVELS - 1 if everything else _level(time, calendar.base[0])
    for level in range(top):
        if calendar.totals[level] > 0:
            for page in range(level * _PAGES, (level + 1) * _PAGES):
                if calendar.sizes[page] > 0:
                    count = _turn(calendar, page, time, times, places, count)
    last = _page(time, top)
    if calendar.totals[top] > 0:
        for page in range(_page(calendar.base[0], top), last):
            if calendar.sizes[page] > 0:
                count = _turn(calendar, page, time, times, places, count)
    calendar.base[0] = time
    if top > 0 and calendar.sizes[last] > 0:
        count = _turn(calendar, last, time, times, places, count)
    return count


@compiled
def _copy(calendar: Calendar, times: Any, places: Any) -> None:
    count = 0
    for page in range(len(calendar.first)):
        block, held = np.int64(calendar.first[page]), (calendar.sizes[page] - 1) % _BLOCK + 1
        while block >= 0:
            for at in range(held):
                times[count], places[count] = (
                    calendar.things[block, 2 * at],
                    calendar.things[block, 2 * at + 1],
                )
                count += 1
            block, held = np.int64(calendar.following[block]), _BLOCK
