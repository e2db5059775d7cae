"""Several iterables read at once, each by a thread of its own and no further ahead than there is room.

A thread waits for room before it reads, so that what is read and not taken is never more than the room. The
thread that reads an iterator is the one that closes it: closing one from elsewhere while it is being read is
an error for a generator, and waits for ever for a file.
"""

import threading
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from anabranch.model.batch import Batch


@dataclass(frozen=True, slots=True)
class Ended:
    """An input has no more to say, because it is at its end or because it failed."""

    error: BaseException | None = None


class Inbox:
    """State: what has been read and not taken, in the order of arrival, and the threads that read."""

    def __init__(self, inputs: Mapping[str, Iterable[Any]], room: int) -> None:
        self.changed = threading.Condition()
        self.arrived: deque[tuple[str, Any]] = deque()
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

    def take(self) -> tuple[str, Any]:
        """What arrived first, once there is anything, or that an input has `Ended`; it may read one more."""
        with self.changed:
            self.changed.wait_for(lambda: self.arrived)
            name, said = self.arrived.popleft()
            if name in self.room:
                self.room[name] += 1
            self.changed.notify_all()
        return name, said

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
            self.inside.discard(name)
            self.arrived.append((name, Ended(error)))
            self.changed.notify_all()

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
                    self.inside.discard(name)
                    self.arrived.append((name, piece))
                    self.changed.notify_all()
                if not self._has_room(name):
                    return
        finally:
            close(items)

    def _has_room(self, name: str) -> bool:
        """Wait for room; there never is any for an input that is dismissed."""
        with self.changed:
            self.changed.wait_for(lambda: self.room.get(name) != 0)
            if name not in self.room:
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
