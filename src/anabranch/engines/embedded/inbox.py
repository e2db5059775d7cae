"""Several iterables read at once, each by a thread of its own and no further ahead than there is room.

A thread waits for room before it reads, so that what is read and not taken is never more than the room. Rows
and elements that an input gives one by one are gathered: those that have not been taken are one piece, and of
an input that gave one a moment ago the next is taken only when the moment is over. The
thread that reads an iterator is the one that closes it: closing one from elsewhere while it is being read is
an error for a generator, and waits for ever for a file.
"""

import threading
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from time import monotonic
from typing import Any

from anabranch.engines.embedded.gathering import MOST, sort_of
from anabranch.engines.embedded.stopping import Stop
from anabranch.model.batch import Batch

LOOK = 0.5
"""Seconds after which a wait looks whether it was asked to stop."""
MOMENT = 0.1
"""Seconds for which rows of an input are gathered before the next of them are taken."""


@dataclass(frozen=True, slots=True)
class Ended:
    """An input has no more to say, because it is at its end or because it failed."""

    error: BaseException | None = None


@dataclass(slots=True, eq=False)
class _Arrived:
    """State: a piece that was read, and of gathered rows or elements what they are while more may come."""

    name: str
    piece: Any
    gathers: str = ""


class Inbox:
    """State: what has been read and not taken, in the order of arrival, and the threads that read."""

    def __init__(
        self,
        inputs: Mapping[str, Iterable[Any]],
        room: int,
        stop: Stop | None = None,
        *,
        again: Collection[str] = (),
    ) -> None:
        """``again``: the inputs that can be read again, so that nothing of them is taken after a stop."""
        self.stop = Stop() if stop is None else stop
        self.changed = self.stop.changed
        self.arrived: deque[_Arrived] = deque()
        self.gathering: dict[str, _Arrived] = {}
        self.taken: dict[str, float] = {}
        """When gathered rows of an input were taken last."""
        self.again = frozenset(again)
        self.room = dict.fromkeys(inputs, room)
        self.inside: set[str] = set()
        """The inputs whose iterators are being read just now: nobody knows for how long."""
        self.threads = {
            name: threading.Thread(
                target=self._read, args=(name, source), name=f"anabranch reads {name}", daemon=True
            )
            for name, source in inputs.items()
        }

    def open(self) -> None:
        """Begin to read."""
        for thread in self.threads.values():
            thread.start()

    def take(self, until: float | None = None) -> tuple[str, Any] | None:
        """What arrived first, once there is anything, or that an input has `Ended`; it may read one more.

        None: it was asked to stop, perhaps because it is ``until`` that time, and all is taken that cannot be
        read again.
        """
        with self.changed:
            while (found := self._first()) is None:
                if self.stop.asked():
                    return None
                times = [self.taken[name] + MOMENT for name in self.gathering if name in self.taken]
                times += [] if until is None else [until]
                # The handler of a signal may ask for a stop here, and what it wakes does not wait yet.
                self.changed.wait(max(min([*times, monotonic() + LOOK]) - monotonic(), 0.0))
                if until is not None and monotonic() >= until:
                    self.stop.ask()
            self.arrived.remove(found)
            if self.gathering.get(found.name) is found:
                del self.gathering[found.name]
                self.taken[found.name] = monotonic()
            if found.name in self.room:
                self.room[found.name] += 1
            self.changed.notify_all()
        return found.name, found.piece

    def _first(self) -> _Arrived | None:
        """What arrived first of all that need not wait."""
        now = monotonic()
        for one in self.arrived:
            if self.stop.asked():
                if one.name not in self.again or (isinstance(one.piece, Ended) and one.piece.error):
                    return one
            elif self.gathering.get(one.name) is not one or now >= self.taken.get(one.name, 0.0) + MOMENT:
                return one
        return None

    def dismiss(self, name: str) -> None:
        """Read an input no further; what it has brought is still taken."""
        with self.changed:
            self.room.pop(name, None)
            self.changed.notify_all()

    def close(self) -> None:
        """Read nothing further; every iterator is closed that is not in the middle of being read.

        The others close when they return to their thread, which keeps no process alive.
        """
        with self.changed:
            self.stop.ask()
            self.room.clear()
            self.changed.notify_all()
            free = [thread for name, thread in self.threads.items() if name not in self.inside]
        for thread in free:
            # A generator that nobody closed is closed by the garbage collector, in whichever thread that is.
            if thread.ident is not None and thread is not threading.current_thread():
                thread.join()

    def _read(self, name: str, source: Iterable[Any]) -> None:
        error = None
        try:
            self._read_all(name, source)
        except BaseException as reason:
            error = reason
        with self.changed:
            self._put(name, Ended(error))

    def _read_all(self, name: str, source: Iterable[Any]) -> None:
        if not self._has_room(name):
            return
        items = items_of(source)
        try:
            while True:
                try:
                    piece = next(items)
                except StopIteration:
                    return
                with self.changed:
                    self._put(name, piece)
                if not self._has_room(name):
                    return
        finally:
            close(items)

    def _put(self, name: str, piece: Any) -> None:
        """A piece has arrived; a row or an element is put to those that wait."""
        self.inside.discard(name)
        sort, waiting = sort_of(piece), self.gathering.get(name)
        if waiting is not None and waiting.gathers == sort:
            waiting.piece.append(piece)
            if name in self.room:
                self.room[name] += 1
            if len(waiting.piece) == MOST:
                del self.gathering[name]
                self.changed.notify_all()
            return
        self.gathering.pop(name, None)
        arrived = _Arrived(name, [piece] if sort else piece, sort)
        self.arrived.append(arrived)
        if sort:
            self.gathering[name] = arrived
        self.changed.notify_all()

    def _has_room(self, name: str) -> bool:
        """Wait for room; there never is any for an input that is dismissed, nor after a stop."""
        with self.changed:
            self.changed.wait_for(
                lambda: self.stop.asked() or self.room.get(name, 1) > 0 or name in self.gathering
            )
            if self.stop.asked() or name not in self.room:
                return False
            self.room[name] -= 1
            self.inside.add(name)
            return True


def items_of(source: Iterable[Any]) -> Iterator[Any]:
    """What an input says, piece by piece; a batch or a table by itself is one piece."""
    speaks_arrow = hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__")
    if isinstance(source, Batch) or (speaks_arrow and not hasattr(source, "__next__")):
        return iter([source])
    return iter(source)


def close(items: Iterator[Any]) -> None:
    """Let go of what an iterator holds, if it can be told to."""
    if hasattr(items, "close"):
        items.close()
