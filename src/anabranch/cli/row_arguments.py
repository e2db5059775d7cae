"""The arguments that tell what the columns of files of plain rows mean, as `anabranch.source` takes them."""

from __future__ import annotations

import argparse

from anabranch.cli.arguments import span_argument
from anabranch.cli.inputs import names_argument

ROW_OPTIONS = ("end", "duration", "disorder", "payload", "key", "schema", "zone")
"""The arguments that say something only beside ``--start``."""


def add_rows(parser: argparse.ArgumentParser) -> None:
    """How plain rows are read."""
    rows = parser.add_argument_group(
        "plain rows", "what the columns of files of rows mean, as anabranch.source takes it"
    )
    rows.add_argument(
        "--start", metavar="COLUMN", help="when the event of a row starts; files then hold rows"
    )
    rows.add_argument(
        "--end", metavar="COLUMN", help="when it ends (without --end and --duration it is a point)"
    )
    rows.add_argument(
        "--duration", type=span_argument, metavar="SPAN", help="how long each event lasts, as '5 minutes'"
    )
    rows.add_argument(
        "--disorder",
        type=span_argument,
        metavar="SPAN",
        help="how late a row may come after rows that start later, as '1 minute' or 0",
    )
    rows.add_argument(
        "--payload",
        type=names_argument,
        metavar="COLUMN,…",
        help="the columns that are compared (default all others)",
    )
    rows.add_argument(
        "--key",
        type=names_argument,
        metavar="COLUMN,…",
        help="columns that, with the start, name at most one event",
    )
    rows.add_argument(
        "--schema",
        type=_typed_column,
        action="append",
        metavar="COLUMN=TYPE",
        help="the type of a column, as string or 'timestamp[us, tz=UTC]' (default: that of the first rows)",
    )
    rows.add_argument(
        "--zone", metavar="ZONE", help="the time zone of times that name none, as Europe/Berlin"
    )


def _typed_column(text: str) -> tuple[str, str]:
    name, equals, dtype = text.rpartition("=")
    if "tz=" in text:
        name, equals, dtype = text.partition("=")
    if not (name and equals and dtype):
        raise argparse.ArgumentTypeError(f"a type is given as COLUMN=TYPE, not {text!r}")
    return name, dtype
