"""The state of a shard in Spark's state store: a snapshot, and what the shard has received since.

A shard is deterministic, so what it received is its change. A snapshot is written when it is smaller than
what was received since the last one; a large state is then rewritten once per so much input, not at every
micro-batch, and a small one costs no more than itself. Each step has a random stamp, stored in the same
commit: a shard that a worker still holds from an earlier step is known by it, and is given what it missed.
The number of the micro-batch is stored with it, so state that is another micro-batch's is found out. A shard
of a later level also keeps when the same shard of the level before called it, and is told there which state
that one goes on from.

State calls per shard and micro-batch: one to read the head, one to write it, and one per `CHUNK` of what is
written, and of what a worker missed.
"""

import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import msgspec

from anabranch.engines.spark.assignment import Assignment
from anabranch.engines.spark.shard import Shard
from anabranch.engines.spark.transport.parcel import from_bytes
from anabranch.kernels.store.saved import StateFormatError

VERSION = 2
CHUNK = 4 << 20
"""Bytes of one value of the state store; a parcel that is longer is a value all the same."""
LEAST = 256 << 10
"""Bytes received that are never worth a snapshot."""
STEPS = 64
"""Steps after which a snapshot is written, however small they are."""
HELD = 16
"""Shards that a worker process keeps."""
DAMAGED = (
    "The checkpoint was damaged. Put the whole of it back from a copy; or begin again, with a new checkpoint "
    "and a new sink."
)


class Step(msgspec.Struct):
    """What one micro-batch added."""

    stamp: bytes
    chunks: int
    bytes: int
    check: int
    """CRC-32 of the chunks."""
    idle: tuple[tuple[str, str], ...] = ()
    """Edges with replicas that were idle; another run of the query may have others."""


class Head(msgspec.Struct):
    """What the state of a shard consists of."""

    version: int
    shards: int
    snapshot: Step
    steps: list[Step]
    ratio: float
    """Bytes of a snapshot for each byte in memory, as the last one was."""
    batch: int = -1
    """The micro-batch that wrote it; -1 where that was not known."""
    called: int = -1
    """The last micro-batch in which the shard of the level before called it; -1: none has."""


class _Versioned(msgspec.Struct):
    version: int


@dataclass(slots=True)
class Held:
    """A shard and the stamp of the step it is at."""

    stamp: bytes
    shard: Shard


_held: OrderedDict[Any, Held] = OrderedDict()


class Journal:
    """The state of the shard whose key Spark is at; the three state variables are Spark's."""

    def __init__(self, assignment: Assignment, shards: int, head: Any, snapshot: Any, parcels: Any) -> None:
        self.assignment, self.shards = assignment, shards
        self._head, self._snapshot, self._parcels = head, snapshot, parcels

    def recall(
        self,
        name: Any,
        number: int,
        batch: int = -1,
        *,
        always: bool = False,
        called: int | None = None,
    ) -> tuple[Head | None, Shard]:
        """The shard as the last micro-batch left it; ``name`` is what this process may hold it by.

        ``batch`` is the micro-batch that is run now, -1 if unknown. ``always``: every shard is called in
        every micro-batch, so its state is that of the one before. ``called``: the shard of the level before
        calls, and its state is of this micro-batch; None: it does not.
        """
        head = self._read_head()
        _check_called(head, number, batch, called, self.assignment.level.number)
        _check_batch(head, number, batch, always=always)
        held = _held.pop(name, None)
        if head is None:
            return None, Shard(self.assignment, number)
        stamps = [head.snapshot.stamp, *(step.stamp for step in head.steps)]
        if held is not None and held.stamp in stamps and held.shard.assignment == self.assignment:
            shard, done = held.shard, stamps.index(held.stamp)
        else:
            data = b"".join(_read(self._snapshot, 0, head.snapshot))
            shard, done = Shard.load(self.assignment, number, data), 0
        first = sum(step.chunks for step in head.steps[:done])
        for step in head.steps[done:]:
            parcels = [from_bytes(part) for part in _unframed(_read(self._parcels, first, step))]
            shard.receive(parcels, step.idle)
            first += step.chunks
        return head, shard

    def record(
        self,
        name: Any,
        head: Head | None,
        shard: Shard,
        parcels: list[bytes],
        batch: int = -1,
        *,
        called: bool = False,
    ) -> int:
        """Keep what a shard received, or the shard; the bytes that the state has then."""
        stamp = os.urandom(16)
        memory = max(shard.nbytes, 1)
        size = sum(map(len, parcels))
        last_called = batch if called else -1 if head is None else head.called
        since = size + sum(step.bytes for step in head.steps) if head else 0
        if head is None or (since >= max(LEAST, head.ratio * memory) or len(head.steps) >= STEPS):
            data = shard.dump()
            chunks = [data[at : at + CHUNK] for at in range(0, len(data), CHUNK)]
            for n, chunk in enumerate(chunks):
                self._snapshot.updateValue((n,), (chunk,))
            for n in range(len(chunks), head.snapshot.chunks if head else 0):
                self._snapshot.removeKey((n,))
            for n in range(sum(step.chunks for step in head.steps) if head else 0):
                self._parcels.removeKey((n,))
            ratio = len(data) / memory
            head = Head(VERSION, self.shards, Step(stamp, len(chunks), len(data), _check(chunks)), [], ratio)
        else:
            first = sum(step.chunks for step in head.steps)
            values = list(_framed(parcels))
            for n, value in enumerate(values):
                self._parcels.updateValue((first + n,), (value,))
            head.steps.append(Step(stamp, len(values), size, _check(values), self.assignment.idle))
        head.batch, head.called = batch, last_called
        self._head.update((msgspec.msgpack.encode(head),))
        _held[name] = Held(stamp, shard)
        while len(_held) > HELD:
            _held.popitem(last=False)
        return head.snapshot.bytes + sum(step.bytes for step in head.steps)

    def _read_head(self) -> Head | None:
        found = self._head.get()
        if found is None:
            return None
        try:
            version = msgspec.msgpack.decode(found[0], type=_Versioned).version
            head = msgspec.msgpack.decode(found[0], type=Head if version == VERSION else _Versioned)
        except msgspec.DecodeError as reason:
            error = StateFormatError(f"the head of a shard's state is a record, this is none: {reason}")
            error.add_note(DAMAGED)
            raise error from None
        if not isinstance(head, Head):
            error = StateFormatError(f"the state in the checkpoint has version {version}, this is {VERSION}")
            error.add_note("Restart with the version that wrote it, or begin a new checkpoint.")
            raise error
        if head.shards != self.shards:
            error = StateFormatError(
                f"the checkpoint was written with {head.shards} shards, and the query has {self.shards}"
            )
            error.add_note(f"Pass shards={head.shards}, or begin a new checkpoint.")
            raise error
        return head


@contextmanager
def kept_by_spark() -> Iterator[None]:
    """Where Spark's state server goes away in the midst of a call, its reason is in Spark's log alone."""
    try:
        yield
    except (EOFError, ConnectionError) as reason:
        error = OSError(f"Spark did not take or give the state of a shard ({type(reason).__name__})")
        error.add_note(
            "Most often the disk of the checkpoint or of spark.local.dir is full; Spark's log has the reason."
        )
        error.add_note(
            "Free some space and start the query again: it goes on from its checkpoint, and nothing is lost."
        )
        raise error from reason


def forget_all() -> None:
    """Let this process hold no shard, as if it had just begun."""
    _held.clear()


def _check_batch(head: Head | None, shard: int, batch: int, *, always: bool) -> None:
    """Raise where state is not that of the micro-batch before."""
    if batch < 0 or (head is not None and head.batch < 0):
        return
    written = -1 if head is None else head.batch
    if written < batch - 1 and not always:
        return
    if written != batch - 1:
        what = "there is none" if head is None else f"this is that of {written}"
        error = StateFormatError(
            f"micro-batch {batch} goes on from the state of {batch - 1}, and of shard {shard} {what}"
        )
        error.add_note(DAMAGED)
        raise error


def _check_called(head: Head | None, shard: int, batch: int, called: int | None, level: int) -> None:
    """Raise where the shard of the level before has another state than that which called this one last."""
    if batch < 0 or called is None:
        return
    known = -1 if head is None else head.called
    if called != known:
        own, other = (("none" if one < 0 else f"that of micro-batch {one}") for one in (called, known))
        error = StateFormatError(
            f"the states of shard {shard} in levels {level - 1} and {level} belong together: the one goes on "
            f"from {own}, and the other was called last by {other}"
        )
        error.add_note(DAMAGED)
        raise error


def _read(variable: Any, first: int, step: Step) -> list[bytes]:
    """The chunks of a step, which are those that were written."""
    found = [variable.getValue((n,)) for n in range(first, first + step.chunks)]
    values = [bytes(value[0]) for value in found if value is not None]
    if len(values) != step.chunks or _check(values) != step.check:
        error = StateFormatError(
            f"the state has {step.chunks} chunks with CRC-32 {step.check:08x} here, and {len(values)} with "
            f"{_check(values):08x} were found"
        )
        error.add_note(DAMAGED)
        raise error
    return values


def _check(chunks: Iterable[bytes]) -> int:
    check = 0
    for chunk in chunks:
        check = crc32(chunk, check)
    return check


def _framed(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Parts with their lengths, as many to a value as fit; one that is longer has a value of its own."""
    waiting: list[bytes] = []
    held = 0
    for part in parts:
        size = 8 + len(part)
        if held and held + size > CHUNK:
            yield b"".join(waiting)
            waiting, held = [], 0
        waiting += [len(part).to_bytes(8, "little"), part]
        held += size
    if held:
        yield b"".join(waiting)


def _unframed(values: Iterable[bytes]) -> Iterator[memoryview]:
    for value in values:
        view, position = memoryview(value), 0
        while position < len(view):
            length = int.from_bytes(view[position : position + 8], "little")
            yield view[position + 8 : position + 8 + length]
            position += 8 + length
