"""Whether a query may go on from a checkpoint: what its parts say of each other, before anything is read.

Spark begins wherever the last offsets are. Where they are gone, or older than what was written with them, it
would read again what is in the sink already, and say nothing; so the numbers in a checkpoint are compared
first. Files that Spark cannot read stop it by themselves.
"""

import re
from pathlib import Path

import msgspec

from anabranch.engines.spark.query.checkpoint import CheckpointError, begun, completed, damaged
from anabranch.engines.spark.query.seal import sealed


def check_sound(checkpoint: Path) -> None:
    """Raise where the parts of a checkpoint do not belong together."""
    last, done, written = begun(checkpoint), completed(checkpoint), sealed(checkpoint)
    if done > last:
        raise went_back(checkpoint, last, f"micro-batch {done} is complete")
    if written > last:
        raise went_back(checkpoint, last, f"micro-batch {written} has been written")
    state = _last_state(checkpoint)
    if state > last:
        raise went_back(checkpoint, last, f"there is state of micro-batch {state}")
    if last < 0:
        return
    _check_identity(checkpoint / "metadata")
    needed = [last] if last in (done, 0) else [last - 1, last]
    for number in needed:
        _check_note(checkpoint / "offsets" / str(number), 2)
    if done >= 0:
        _check_note(checkpoint / "commits" / str(done), 1)


def _last_state(checkpoint: Path) -> int:
    """The last micro-batch that state is of; -1 for none."""
    files = (checkpoint / "state").glob("[0-9]*/[0-9]*/[0-9]*.*")
    versions = (re.match(r"\d+", file.name) for file in files)
    return max((int(version[0]) for version in versions if version), default=0) - 1


def went_back(checkpoint: Path, last: int, proof: str) -> CheckpointError:
    """A checkpoint whose last offsets are older than what was done with later ones."""
    where = "no micro-batch was begun" if last < 0 else f"micro-batch {last} was begun last"
    return damaged(
        f"by the offsets in {checkpoint} {where}, and {proof}: what came after it would be written twice"
    )


def _check_identity(file: Path) -> None:
    if not file.exists():
        raise damaged(f"{file} is gone, which says whose checkpoint it is")
    try:
        found = msgspec.json.decode(file.read_bytes())
    except msgspec.DecodeError as reason:
        raise damaged(
            f"{file} is an object that says whose checkpoint it is, this is none: {reason}"
        ) from None
    if not isinstance(found, dict) or "id" not in found:
        raise damaged(f"{file} says whose checkpoint it is, and this has no 'id'")


def _check_note(file: Path, least: int) -> None:
    """Raise where a note of Spark's is not a version and then an object, or a dash, in each line."""
    if not file.exists():
        raise damaged(f"{file} is gone, and the micro-batch after it is to be run again")
    version, *lines = file.read_bytes().splitlines() or [b""]
    if not re.fullmatch(rb"v\d+", version) or len(lines) < least:
        raise damaged(f"{file} has its version and {least} lines or more, and this is cut short")
    for line in lines:
        try:
            if line != b"-":
                msgspec.json.decode(line)
        except msgspec.DecodeError as reason:
            raise damaged(f"{file} has an object in each line, and here is none: {reason}") from None
