"""Where a query is, by its checkpoint: Spark notes each micro-batch as it begins and as it is complete."""

import uuid
from pathlib import Path
from zlib import crc32

from anabranch.errors import AnabranchError

_ID = "anabranch-query"


class CheckpointError(AnabranchError, ValueError):
    """A checkpoint is not as the query left it, or is another's now."""


def damaged(what: str, *way_out: str) -> CheckpointError:
    """What is wrong with a checkpoint, and what can be done in any case; better ways out come first."""
    error = CheckpointError(what)
    for note in way_out:
        error.add_note(note)
    error.add_note(
        "Put the whole checkpoint back from a copy; or begin again, with a new checkpoint and a new sink: "
        "all that the sources still have is then read."
    )
    return error


def without_clock(checkpoint: Path | str) -> CheckpointError:
    """A checkpoint of the time before queries had a clock; the number of sources of one is fixed."""
    error = CheckpointError(
        f"a query has a clock among its sources, and {checkpoint} was begun by an older anabranch"
    )
    error.add_note("The anabranch that began it goes on from it.")
    error.add_note(
        "Else begin again, with a new checkpoint and a new sink: all that the sources have is read."
    )
    return error


def begun(checkpoint: Path) -> int:
    """The last micro-batch that was begun; -1 for none."""
    return _last(checkpoint / "offsets")


def completed(checkpoint: Path) -> int:
    """The last micro-batch that is complete; -1 for none."""
    return _last(checkpoint / "commits")


def query_id(checkpoint: Path) -> str:
    """What the query is called where it writes: made with the checkpoint, and kept in it."""
    known = known_query(checkpoint)
    if known is not None:
        return known
    last = max(begun(checkpoint), completed(checkpoint))
    if last >= 0:
        raise damaged(
            f"{checkpoint / _ID} is gone, and the checkpoint has come to micro-batch {last}",
            f"If the sink is a folder, its files begin with the name of the query: write it into {_ID}.",
        )
    checkpoint.mkdir(parents=True, exist_ok=True)
    name = uuid.uuid4().hex[:8]
    (checkpoint / _ID).write_text(f"{name} {crc32(name.encode()):08x}\n")
    return query_id(checkpoint)


def known_query(checkpoint: Path) -> str | None:
    """What the query of a checkpoint is called where it writes, if it has written."""
    file = checkpoint / _ID
    if not file.exists():
        return None
    name, _, check = file.read_bytes().decode(errors="replace").strip().partition(" ")
    if not (name.isalnum() and name.isascii()) or (check and check != f"{crc32(name.encode()):08x}"):
        raise damaged(
            f"{file} has the name of a query and its CRC-32, and this is {name!r} {check!r}",
            f"If the sink is a folder, its files begin with the name of the query: write it into {_ID}.",
        )
    return name


def _last(log: Path) -> int:
    return max((int(file.name) for file in log.glob("[0-9]*") if file.name.isdecimal()), default=-1)
