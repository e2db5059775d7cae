"""The formats a stream is written in, and how a file's name tells them apart."""

from enum import Enum
from pathlib import Path


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


_SUFFIXES = {
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


class UnknownFormatError(ValueError):
    """A file's name does not tell its format."""


def format_of(path: str) -> Format:
    """The format that a name tells; JSON lines for standard input and output."""
    if path == STANDARD:
        return Format.JSON_LINES
    found = _SUFFIXES.get(Path(path).suffix.lower())
    if found is None:
        error = UnknownFormatError(f"the name of {path!r} does not tell its format")
        error.add_note(f"Known endings are {', '.join(_SUFFIXES)}; or name the format.")
        raise error
    return found
