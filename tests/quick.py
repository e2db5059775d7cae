"""A quick run (`./run test --quick`): tests without JVM, broker or command, with an eighth of their cases.

A file that is named on the command line is run whatever it needs.
"""

from functools import cache
from pathlib import Path

from tiers import ROOT, SPARK, tier_of

PLACES = tuple(
    f"tests/{name}/"
    for name in (
        *("model", "rows", "expressions", "oracle", "kernels", "laws"),
        *("progress", "plan", "jobs", "engines", "testing"),
    )
)
LONG = ("tests/laws/test_campaign.py",)
"""Left out: it finds what takes thousands of seeds."""
LESS = 8
share = 1
"""One of so many cases is run; a quick run sets it to `LESS` before tests are imported."""


def cases(count: int) -> int:
    """How many of a law's seeds, blocks of seeds or examples are run: all, or in a quick run an eighth."""
    return max(1, count // share)


@cache
def is_quick(path: Path) -> bool:
    """Whether a quick run takes the tests of a file."""
    file = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else ""
    taken = file.startswith(PLACES) and file.endswith(".py") and file not in LONG
    if not taken or tier_of(file) is SPARK:
        return False
    text = path.read_text(encoding="utf-8")
    return "subprocess" not in text and "broker" not in text


class Quick:
    """Leaves out files before they are imported, and with them what only they import."""

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        return True if collection_path.is_file() and not is_quick(collection_path) else None
