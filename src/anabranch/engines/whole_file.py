"""A file that is there when all of it is."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO


@contextlib.contextmanager
def whole_file(path: str) -> Iterator[IO[bytes]]:
    """A file to write to that appears under its name when all is written.

    What is there and no plain file (a pipe, a device) is written to directly; a link stays a link.
    """
    target = Path(path).resolve()
    if target.exists() and not target.is_file():
        with target.open("wb") as file:
            yield file
        return
    hidden = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        try:
            file = hidden.open("wb")
        except OSError as reason:
            raise type(reason)(reason.errno, reason.strerror, path) from None
        with file:
            yield file
        if target.exists():
            hidden.chmod(target.stat().st_mode & 0o7777)
        hidden.replace(target)
    finally:
        hidden.unlink(missing_ok=True)
