"""What commands that run a job tell people on standard error."""

from __future__ import annotations

import argparse
import sys

ALL_REFUSED = "every row was refused, so nothing came out and the exit status is 1"


def say(words: str, options: argparse.Namespace) -> None:
    """Print a line, unless ``options`` ask for JSON."""
    if not options.json:
        print(f"anabranch: {words}", file=sys.stderr, flush=True)
