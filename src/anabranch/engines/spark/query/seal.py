"""What a checkpoint was when its last micro-batch was written: the driver seals it, the next start looks.

Spark's notes of a micro-batch do not say which it is, so notes that changed places, or were taken from a copy
of another day, would be believed. The seal is a file of the checkpoint with the size and a checksum of each
note that the next start relies on: the offsets of the last two micro-batches, the logs of the sources
since they were last put together, and the changes and forms of the state. When it is made, Hadoop's checksums
beside the files stand for what is in them; when it is looked at, the files are read.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import msgspec

from anabranch.engines.spark.query.checkpoint import completed, damaged
from anabranch.engines.whole_file import whole_file

FILE = "anabranch-seal"
_BYTES = 512
_SUM = b"crc\0" + _BYTES.to_bytes(4, "big")


class _Sealed(msgspec.Struct):
    batch: int
    files: dict[str, tuple[int, int]]
    """Of each note its size and checksum."""


def seal(checkpoint: Path, batch: int) -> None:
    """Note what a checkpoint is, now that what micro-batch ``batch`` gives is written."""
    found = {str(file.relative_to(checkpoint)): _mark_of(file) for file in _notes(checkpoint, batch)}
    text = msgspec.json.encode(_Sealed(batch, found))
    with whole_file(str(checkpoint / FILE)) as file:
        file.write(b"%s\n%08x\n" % (text, crc32(text)))


def sealed(checkpoint: Path) -> int:
    """The last micro-batch that was written, if the checkpoint is as it was then; -1 where none is known."""
    if not (checkpoint / FILE).exists():
        return -1
    known = _read(checkpoint / FILE)
    done = completed(checkpoint) >= known.batch
    for name, mark in known.files.items():
        file = checkpoint / name
        if file.suffix == ".changelog" and not done:
            continue  # the micro-batch runs again, and may have written them again
        if not file.exists():
            if _is_needed(file):
                raise damaged(f"{file} is gone, and micro-batch {known.batch} was written with it")
        elif _mark(file) != mark:
            raise damaged(f"{file} is not what it was when micro-batch {known.batch} was written")
    return known.batch


def _read(file: Path) -> _Sealed:
    text, _, check = file.read_bytes().rstrip().rpartition(b"\n")
    if check != b"%08x" % crc32(text):
        raise damaged(
            f"{file} has a line and its CRC-32, and this is no such file",
            "It is what the rest of the checkpoint is checked by. If only this file suffered, remove it: the "
            "query goes on unchecked.",
        )
    return msgspec.json.decode(text, type=_Sealed)


def _notes(checkpoint: Path, batch: int) -> Iterator[Path]:
    offsets = (checkpoint / "offsets" / str(n) for n in (batch - 1, batch))
    changes = (checkpoint / "state").glob(f"[0-9]*/[0-9]*/{batch + 1}.changelog")
    forms = (checkpoint / "state").glob("[0-9]*/_*/*/[0-9]*")
    yield from (file for file in (*offsets, *changes, *forms) if file.is_file())
    for log in (checkpoint / "sources").glob("[0-9]*"):
        files = sorted((f for f in log.iterdir() if re.match(r"\d+(\.compact)?$", f.name)), key=_number)
        compact = max((n for n, file in enumerate(files) if file.suffix), default=0)
        yield from files[compact:]


def _is_needed(file: Path) -> bool:
    """Spark removes notes itself when there are later ones that say as much."""
    there = list(file.parent.glob("[0-9]*")) if file.parent.exists() else []
    if file.parent.parent.name == "sources":
        return not any(one.suffix and _number(one) >= _number(file) for one in there)
    return max(map(_number, there), default=-1) < _number(file) + 2


def _number(file: Path) -> int:
    return int(re.split(r"\D", file.name)[0])


def _mark_of(file: Path) -> tuple[int, int]:
    """The mark of a file without reading it, where Hadoop keeps the checksums of its parts beside it."""
    beside = file.with_name(f".{file.name}.crc")
    if beside.exists() and (sums := beside.read_bytes()).startswith(_SUM):
        return file.stat().st_size, crc32(sums)
    return _mark(file)


def _mark(file: Path) -> tuple[int, int]:
    """The size of a file, and a checksum of the checksums of its parts, as Hadoop writes them."""
    data = memoryview(file.read_bytes())
    parts = (crc32(data[at : at + _BYTES]).to_bytes(4, "big") for at in range(0, len(data), _BYTES))
    return len(data), crc32(b"".join([_SUM, *parts]))
