"""The formats a stream is written in, and how a file's name tells them apart."""

from enum import Enum
from pathlib import Path

from anabranch.errors import AnabranchError
from anabranch.model.dialects import DIALECTS


class Format(Enum):
    """A file format, by its name on the command line."""

    JSON_LINES = "jsonl"
    NOTATION = "text"
    PARQUET = "parquet"
    ARROW = "arrow"

    @property
    def is_lines(self) -> bool:
        """One element per line of text."""
        return self in (Format.JSON_LINES, Format.NOTATION)


SUFFIXES = {
    ".jsonl": Format.JSON_LINES,
    ".ndjson": Format.JSON_LINES,
    ".json": Format.JSON_LINES,
    ".txt": Format.NOTATION,
    ".parquet": Format.PARQUET,
    ".arrow": Format.ARROW,
    ".arrows": Format.ARROW,
    ".feather": Format.ARROW,
    ".ipc": Format.ARROW,
}

STANDARD = "-"
"""The name that stands for standard input or output."""


class UnknownFormatError(AnabranchError, ValueError):
    """A file's name does not tell its format."""


def checked_format(path: str, name: str | None, dialect: str | None) -> Format:
    """The format given by name or told by the path, if it goes with the dialect."""
    names = [known.value for known in Format]
    if name is not None and name not in names:
        raise UnknownFormatError(f"a format is one of {', '.join(names)}, not {name!r}")
    chosen = format_of(path) if name is None else Format(name)
    if dialect is not None and dialect not in DIALECTS:
        raise UnknownFormatError(f"a dialect is one of {', '.join(DIALECTS)}, not {dialect!r}")
    if dialect is not None and chosen is not Format.JSON_LINES:
        error = UnknownFormatError(f"a dialect is written as JSON lines, {path!r} is {chosen.value}")
        error.add_note("Give the file an ending of JSON lines, or leave the dialect out.")
        raise error
    return chosen


def format_of(path: str) -> Format:
    """The format that a name tells; JSON lines for standard input and output."""
    if path == STANDARD:
        return Format.JSON_LINES
    found = SUFFIXES.get(Path(path).suffix.lower())
    if found is None:
        error = UnknownFormatError(f"the name of {path!r} does not tell its format")
        error.add_note(f"Known endings are {', '.join(SUFFIXES)}; or name the format.")
        raise error
    return found
