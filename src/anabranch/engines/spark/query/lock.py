"""One checkpoint, one query: a process that runs a query holds its checkpoint, and no other gets it.

The lock is the kernel's and ends with the process, however it ends. Where a file system has no locks, Spark's
own notes decide: of two that write the same one, the second stops.
"""

import fcntl
import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING

from anabranch.engines.spark.query.checkpoint import CheckpointError

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

FILE = "anabranch-lock"
PATIENCE = 2.0
"""Seconds in which a process that is about to let go may do so."""


class Hold:
    """A checkpoint that this process holds."""

    def __init__(self, place: Path, file: int) -> None:
        self.place, self.file = place, file
        self.query: StreamingQuery | None = None

    @property
    def is_used(self) -> bool:
        """Whether the query it is held for runs; one whose session is gone does not."""
        with suppress(Exception):
            return self.query is not None and self.query.isActive
        return False

    def release(self) -> None:
        """Let others have it."""
        with _one_at_a_time:
            if _held.get(self.place) is self:
                del _held[self.place]
                os.close(self.file)

    def until_the_end_of(self, query: "StreamingQuery") -> None:
        """Hold it as long as a query runs."""
        self.query = query
        Thread(target=self._wait, args=(query.awaitTermination,), daemon=True).start()

    def _wait(self, end: Callable[[], object]) -> None:
        with suppress(Exception):  # how a query ends is told to whoever waits for it
            end()
        self.release()


_held: dict[Path, Hold] = {}
_one_at_a_time = Lock()


def held(checkpoint: Path) -> Hold:
    """The checkpoint, held by this process; raises where another query has it."""
    place = checkpoint.resolve()
    mine = _held.get(place)
    if mine is not None:
        if mine.is_used:
            raise _busy(checkpoint, "this process")
        mine.release()
    place.mkdir(parents=True, exist_ok=True)
    file = os.open(place / FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    until = time.monotonic() + PATIENCE
    while not _locked(file):
        if time.monotonic() > until:
            owner = os.pread(file, 200, 0).decode(errors="replace").strip()
            os.close(file)
            raise _busy(checkpoint, owner or "another process")
        time.sleep(0.05)
    os.ftruncate(file, 0)
    os.pwrite(file, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
    _held[place] = Hold(place, file)
    return _held[place]


def _locked(file: int) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # no locks here
        return True
    return True


def _busy(checkpoint: Path, owner: str) -> CheckpointError:
    error = CheckpointError(f"a checkpoint is of one query at a time, and {owner} goes on from {checkpoint}")
    error.add_note("Stop that query first; this one then goes on from where it was. Nothing was written.")
    return error
