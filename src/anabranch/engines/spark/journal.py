"""The state of a shard in Spark's state store: a snapshot, and what the shard has heard since.

A shard is deterministic, so what it heard is its change. A snapshot is written when it is smaller than what
has been heard since the last one; a large state is then rewritten once per so much input, not at every
micro-batch, and a small one costs no more than itself. Each step has a random stamp, stored in the same
commit: a shard that a worker still holds from an earlier step is known by it, and hears what it missed.

State calls per shard and micro-batch: one to read the head, one to write it, and one per `CHUNK` of what is
written, and of what a worker missed.
"""

import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import msgspec

from anabranch.engines.spark.fragment import Fragment
from anabranch.engines.spark.parcel import from_bytes
from anabranch.engines.spark.shard import Shard, StateFormatError

VERSION = 1
CHUNK = 4 << 20
"""Bytes of one value of the state store, about."""
LEAST = 256 << 10
"""Bytes heard that are never worth a snapshot."""
STEPS = 64
"""Steps after which a snapshot is written, however small they are."""
HELD = 16
"""Shards that a worker process keeps."""


class Step(msgspec.Struct):
    """What one micro-batch added."""

    stamp: bytes
    chunks: int
    bytes: int
    check: int
    """CRC-32 of the chunks."""


class Head(msgspec.Struct):
    """What the state of a shard consists of."""

    version: int
    shards: int
    snapshot: Step
    steps: list[Step]
    ratio: float
    """Bytes of a snapshot for each byte in memory, as the last one was."""


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

    def __init__(self, fragment: Fragment, shards: int, head: Any, snapshot: Any, heard: Any) -> None:
        self.fragment, self.shards = fragment, shards
        self._head, self._snapshot, self._heard = head, snapshot, heard

    def recall(self, name: Any, number: int) -> tuple[Head | None, Shard]:
        """The shard as the last micro-batch left it; ``name`` is what this process may hold it by."""
        head = self._read_head()
        held = _held.pop(name, None)
        if head is None:
            return None, Shard(self.fragment, number)
        stamps = [head.snapshot.stamp, *(step.stamp for step in head.steps)]
        if held is not None and held.stamp in stamps and held.shard.fragment == self.fragment:
            shard, done = held.shard, stamps.index(held.stamp)
        else:
            data = b"".join(_read(self._snapshot, 0, head.snapshot))
            shard, done = Shard.load(self.fragment, number, data), 0
        first = sum(step.chunks for step in head.steps[:done])
        for step in head.steps[done:]:
            shard.hear([from_bytes(part) for part in _unframed(_read(self._heard, first, step))])
            first += step.chunks
        return head, shard

    def record(self, name: Any, head: Head | None, shard: Shard, heard: list[bytes]) -> int:
        """Keep what a shard heard, or the shard; the bytes that the state has then."""
        stamp = os.urandom(16)
        memory = max(shard.nbytes, 1)
        size = sum(map(len, heard))
        since = size + sum(step.bytes for step in head.steps) if head else 0
        if head is None or (since >= max(LEAST, head.ratio * memory) or len(head.steps) >= STEPS):
            data = shard.dump()
            chunks = [data[at : at + CHUNK] for at in range(0, len(data), CHUNK)]
            for n, chunk in enumerate(chunks):
                self._snapshot.updateValue((n,), (chunk,))
            for n in range(len(chunks), head.snapshot.chunks if head else 0):
                self._snapshot.removeKey((n,))
            for n in range(sum(step.chunks for step in head.steps) if head else 0):
                self._heard.removeKey((n,))
            ratio = len(data) / memory
            head = Head(VERSION, self.shards, Step(stamp, len(chunks), len(data), _check(chunks)), [], ratio)
        else:
            first = sum(step.chunks for step in head.steps)
            values = list(_framed(heard))
            for n, value in enumerate(values):
                self._heard.updateValue((first + n,), (value,))
            head.steps.append(Step(stamp, len(values), size, _check(values)))
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
            error.add_note("The checkpoint was damaged; restart from an earlier one, or begin a new one.")
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


def forget_all() -> None:
    """Let this process hold no shard, as if it had just begun."""
    _held.clear()


def _read(variable: Any, first: int, step: Step) -> list[bytes]:
    """The chunks of a step, which are those that were written."""
    found = [variable.getValue((n,)) for n in range(first, first + step.chunks)]
    values = [bytes(value[0]) for value in found if value is not None]
    if len(values) != step.chunks or _check(values) != step.check:
        error = StateFormatError(
            f"the state has {step.chunks} chunks with CRC-32 {step.check:08x} here, and {len(values)} with "
            f"{_check(values):08x} were found"
        )
        error.add_note("The checkpoint was damaged; restart from an earlier one, or begin a new one.")
        raise error
    return values


def _check(chunks: Iterable[bytes]) -> int:
    check = 0
    for chunk in chunks:
        check = crc32(chunk, check)
    return check


def _framed(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Parts with their lengths, several to a value as long as they are small."""
    waiting: list[bytes] = []
    held = 0
    for part in parts:
        if held and held + len(part) > CHUNK:
            yield b"".join(waiting)
            waiting, held = [], 0
        waiting += [len(part).to_bytes(8, "little"), part]
        held += 8 + len(part)
    if held:
        yield b"".join(waiting)


def _unframed(values: Iterable[bytes]) -> Iterator[memoryview]:
    for value in values:
        view, position = memoryview(value), 0
        while position < len(view):
            length = int.from_bytes(view[position : position + 8], "little")
            yield view[position + 8 : position + 8 + length]
            position += 8 + length
