"""The formats a stream is written in, and how a file's name tells them apart."""

from enum import Enum
from pathlib import Path

from anabranch.errors import AnabranchError
from anabranch.model.dialects import DIALECTS
from anabranch.model.spelling import did_you_mean


class Format(Enum):
    """A file format, by its name on the command line."""

    JSON_LINES = "jsonl"
    NOTATION = "text"
    PARQUET = "parquet"
    ARROW = "arrow"
    CSV = "csv"

    @property
    def is_lines(self) -> bool:
        """One element per line of text."""
        return self in (Format.JSON_LINES, Format.NOTATION)

    @property
    def is_text(self) -> bool:
        """Rows are lines of text, to which others may be appended."""
        return self.is_lines or self is Format.CSV


ENDINGS = {
    ".jsonl": Format.JSON_LINES,
    ".ndjson": Format.JSON_LINES,
    ".json": Format.JSON_LINES,
    ".txt": Format.NOTATION,
    ".parquet": Format.PARQUET,
    ".arrow": Format.ARROW,
    ".arrows": Format.ARROW,
    ".feather": Format.ARROW,
    ".ipc": Format.ARROW,
    ".csv": Format.CSV,
}
ROW_ENDINGS = tuple(ending for ending, form in ENDINGS.items() if form is not Format.NOTATION)
"""The endings of files of plain rows."""

STANDARD = "-"
"""The name that stands for standard input or output."""


class UnknownFormatError(AnabranchError, ValueError):
    """A file's name does not tell its format."""


def checked_format(path: str, name: str | None, dialect: str | None) -> Format:
    """The format given by name or told by the path, if it goes with the dialect."""
    names = [known.value for known in Format]
    if name is not None and name not in names:
        raise UnknownFormatError(
            f"a format is one of {', '.join(names)}, not {name!r}{did_you_mean(name, names)}"
        )
    chosen = format_of(path) if name is None else Format(name)
    if dialect is not None and dialect not in DIALECTS:
        raise UnknownFormatError(
            f"a dialect is one of {', '.join(DIALECTS)}, not {dialect!r}{did_you_mean(dialect, DIALECTS)}"
        )
    if dialect is not None and chosen is not Format.JSON_LINES:
        error = UnknownFormatError(f"a dialect is written as JSON lines, {path!r} is {chosen.value}")
        error.add_note("Give the file an ending of JSON lines, or leave the dialect out.")
        raise error
    return chosen


def written_format(path: str, name: str | None, dialect: str | None) -> Format:
    """The format in which a stream is written, if it is one that is."""
    chosen = checked_format(path, name, dialect)
    if chosen is Format.CSV:
        error = UnknownFormatError(f"CSV is read and not written, and {path!r} is CSV")
        error.add_note("Write .parquet, .arrow or .jsonl; other tools make CSV of Parquet.")
        raise error
    return chosen


def format_of(path: str | Path) -> Format:
    """The format that the ending of a name says; JSON lines for standard input and output."""
    if path == STANDARD:
        return Format.JSON_LINES
    found = ENDINGS.get(Path(path).suffix.lower())
    if found is None:
        error = UnknownFormatError(
            f"the name of {path!r} does not tell its format{did_you_mean(Path(path).suffix, ENDINGS)}"
        )
        error.add_note(f"Known endings are {', '.join(ENDINGS)}; or name the format.")
        raise error
    return found
