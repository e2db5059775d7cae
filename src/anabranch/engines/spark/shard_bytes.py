"""The state of a shard as bytes: a mark with a version, a head as JSON, and the parts that it counts."""

from collections.abc import Mapping, Sequence

import msgspec

from anabranch.errors import AnabranchError

MARK = b"anabranch-shard-1\n"


class StateFormatError(AnabranchError, ValueError):
    """State that this version cannot read."""


class Head(msgspec.Struct):
    """How far a shard is, and how many bytes its parts have; those of the merge come last."""

    frontiers: dict[str, dict[str, int]]
    agreed: int
    settings: dict[str, str] = {}
    tables: dict[str, int] = {}
    """The bytes of the table of each replica; they come first."""
    beginnings: dict[str, int] = {}
    """The bytes of each replica that has begun with a snapshot and not met the merge; they come next."""
    since_snapshot: dict[str, tuple[int, int]] = {}


def whole(head: Head, parts: Sequence[bytes]) -> bytes:
    """A head and its parts as bytes."""
    text = msgspec.json.encode(head)
    return b"".join([MARK, len(text).to_bytes(4, "little"), text, *parts])


def parted(data: bytes) -> tuple[Head, list[bytes]]:
    """The head and the parts that bytes hold."""
    if not data.startswith(MARK):
        error = StateFormatError(
            f"the state of a shard begins with {MARK!r}, this begins with {data[: len(MARK)]!r}"
        )
        error.add_note("Restart with the version that wrote the checkpoint, or begin a new one.")
        raise error
    begin = len(MARK) + 4
    position = begin + int.from_bytes(data[len(MARK) : begin], "little")
    head, parts = msgspec.json.decode(data[begin:position], type=Head), []
    for size in (*head.tables.values(), *head.beginnings.values()):
        parts.append(data[position : position + size])
        position += size
    return head, [*parts, data[position:]]


def check_settings(before: Mapping[str, str], now: Mapping[str, str]) -> None:
    """Raise where a fragment means something else than the one whose state it is given."""
    for name, value in before.items():
        if now.get(name) != value:
            error = StateFormatError(
                f"the checkpoint was begun with {name} {value}, this query has {now.get(name)}"
            )
            error.add_note("Go on as before, or begin a new checkpoint.")
            raise error
