"""The arguments that several commands take, so that each means the same everywhere."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import timedelta

    from anabranch.connectors.files.reading import Source
    from anabranch.model.validity import Policy

FORMATS = ("jsonl", "text", "parquet", "arrow")
READ_FORMATS = (*FORMATS, "csv")
DIALECTS = ("modify", "open-close", "cedr", "external-cti", "change-rows")


def add_reading(parser: argparse.ArgumentParser) -> None:
    """How the files that are read are written."""
    parser.add_argument(
        "--format",
        choices=READ_FORMATS,
        help="format of the files; their endings tell it otherwise ('-' is jsonl)",
    )
    parser.add_argument(
        "--dialect", choices=DIALECTS, help="dialect of the lines, where they are not our own elements"
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """The same answer for programs."""
    parser.add_argument(
        "--json",
        action="store_true",
        help="print the answer as JSON (on standard error where standard output is the stream)",
    )


def add_policy(parser: argparse.ArgumentParser) -> None:
    """What is done with elements that break a rule."""
    parser.add_argument(
        "--on-violation",
        choices=("raise", "drop"),
        default="raise",
        help="stop at the first invalid element (raise), or leave invalid ones out (drop); default raise",
    )
    add_quarantine(parser)


def add_quarantine(parser: argparse.ArgumentParser) -> None:
    """Where invalid elements can be read afterwards."""
    parser.add_argument(
        "--quarantine", metavar="FILE", help="leave invalid elements out and write them here, with reasons"
    )


def whole_number(text: str) -> int:
    """An argument that counts something."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of 0 or more")
    return int(text)


def span_argument(text: str) -> int | timedelta:
    """An argument that is a number of ticks or a length of time."""
    from anabranch.model.span import span

    if text.isdecimal():
        return int(text)
    try:
        found = span(text, "a span")
    except ValueError as reason:
        raise argparse.ArgumentTypeError(f"{reason}; write '30 seconds', '5m' or a number") from None
    assert found is not None, "a text is a span or refused"
    return found


def check_standard_input(paths: Sequence[str]) -> None:
    """Standard input can be read once."""
    if sum(path == "-" for path in paths) > 1:
        raise ValueError("standard input can be read once, - is given twice")


def policy_of(options: argparse.Namespace) -> Policy:
    """The policy that was asked for."""
    from anabranch.model.validity import Drop, Quarantine, Raise

    if options.quarantine:
        return Quarantine()
    return Drop() if options.on_violation == "drop" else Raise()


def check_elements(path: str, format: str | None, dialect: str | None) -> None:  # noqa: A002
    """Raise where a file that is read for its elements holds plain rows; print which types CSV has."""
    from anabranch.connectors.files.formats import STANDARD, Format, checked_format
    from anabranch.connectors.files.rows_or_elements import holds_rows
    from anabranch.connectors.files.sampled_columns import csv_columns, in_words

    if dialect is not None or path == STANDARD or not Path(path).is_file():
        return
    if holds_rows(path, format):
        error = ValueError(f"{path} holds plain rows, and the elements of a recorded stream are asked for")
        error.add_note("Make elements of them, with the column of their start:")
        error.add_note(f"anabranch merge {path} --start COLUMN --disorder '1 minute' --lossy none -o FILE")
        raise error
    if checked_format(path, format, None) is Format.CSV:
        print(f"anabranch: {in_words([path], csv_columns(path))}", file=sys.stderr)


def source_of(options: argparse.Namespace, path: str) -> Source:
    """A file that is read, in the format that was given or that its name tells."""
    from anabranch.connectors.files.reading import Source

    return Source.named(path, options.format, options.dialect)
