"""What a query was begun with: written beside its checkpoint, and compared before it goes on.

State and sink go with the settings that they were made with. The state has its own, and compares them when
rows come; here they are compared when a query is started, and by whoever asks whether it may be. They are
fixed once a micro-batch has begun.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Any
from zlib import crc32

import msgspec

from anabranch.engines.settings import check_settings
from anabranch.engines.spark.frame_metadata import CLOCK, SETTINGS, SHARDS
from anabranch.engines.spark.query.checkpoint import CheckpointError, begun, damaged, without_clock
from anabranch.engines.whole_file import whole_file
from anabranch.rows.layout import names_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FILE = "anabranch-settings"


class BegunWith(msgspec.Struct, frozen=True):
    """The settings that hold for as long as a checkpoint does."""

    sink: dict[str, str]
    """Which kind of sink it is, and how it is written."""
    merge: dict[str, str] | None = None
    """What the state depends on; None where rows do not tell."""
    shards: int | None = None
    clock: bool = False
    """The clock is among its sources, whose number is fixed."""


def folder_sink(form: str) -> dict[str, str]:
    """What is fixed of a folder."""
    return {"sink": "a folder", "format": form}


def table_sink(kind: str, form: str, key: Any, *, open_only: bool, final: bool) -> dict[str, str]:
    """What is fixed of a table."""
    flags = {"open_only": str(open_only).lower(), "final": str(final).lower()}
    return {"sink": "a table", "format": form, "kind": kind, "key": _words(key), **flags}


def topic_sink(topic: str, values: str, key: Any) -> dict[str, str]:
    """What is fixed of a topic: an event stays in its partition, and readers know the form of values."""
    return {"sink": "a topic", "topic": topic, "values": values, "key": _words(key)}


def _words(names: Any) -> str:
    return ", ".join(names_of(names) or ()) or "none"


def begun_with(rows: "DataFrame", sink: dict[str, str]) -> BegunWith:
    """What a query of merged rows would be begun with."""
    told = next((field.metadata for field in rows.schema.fields if field.name == "kind"), {})
    merge = told.get(SETTINGS)
    settings = None if merge is None else msgspec.json.decode(merge)
    return BegunWith(sink, settings, told.get(SHARDS), told.get(CLOCK, False))


def check_begun_with(checkpoint: Path, now: BegunWith) -> None:
    """Raise where a checkpoint was begun with settings that do not go with these."""
    before = _read(checkpoint / FILE)
    if before is None or begun(checkpoint) < 0:
        return
    if now.clock and not before.clock:
        raise without_clock(checkpoint)
    for name in dict.fromkeys([*before.sink, *now.sink]):
        was, found = before.sink.get(name, "none"), now.sink.get(name, "none")
        if was != found:
            raise _other_sink(checkpoint, name, was, found)
    if before.shards is not None and now.shards is not None and before.shards != now.shards:
        error = CheckpointError(
            f"the checkpoint was begun with {before.shards} shards, and this query has {now.shards}"
        )
        error.add_note(f"Pass shards={before.shards}, or begin a new checkpoint.")
        raise error
    if before.merge is not None and now.merge is not None:
        check_settings(before.merge, now.merge, state="checkpoint", reader="query")


def keep_begun_with(checkpoint: Path, now: BegunWith) -> None:
    """Compare, and write down what a query is begun with."""
    check_begun_with(checkpoint, now)
    text = msgspec.json.encode(now)
    with whole_file(str(checkpoint / FILE)) as file:
        file.write(b"%s\n%08x\n" % (text, crc32(text)))


def _other_sink(checkpoint: Path, name: str, was: str, now: str) -> CheckpointError:
    what = "" if name == "sink" else f"{name} "
    error = CheckpointError(
        f"what the checkpoint {checkpoint} has written is {what}{was}, and this query would write {what}{now}"
    )
    error.add_note(
        f"Go on with {what}{was}; or begin anew, with a new checkpoint and a new place to write to: all that "
        "the sources still have is then read."
    )
    return error


def _read(file: Path) -> BegunWith | None:
    """What was written down; None where nothing was, and the state itself will tell."""
    if not file.exists():
        return None
    text, _, check = file.read_bytes().rstrip().rpartition(b"\n")
    try:
        if check == b"%08x" % crc32(text):
            return msgspec.json.decode(text, type=BegunWith)
    except msgspec.DecodeError:
        pass
    raise damaged(
        f"{file} has a line and its CRC-32, and this is no such file",
        "It has the settings that the query was begun with. If only this file suffered, remove it: they are "
        "then compared when rows come.",
    )
