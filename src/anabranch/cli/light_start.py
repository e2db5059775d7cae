"""Commands that read a few recorded rows start without what is made for many.

Nothing here may import what is heavy: loops are run as Python only where they are imported after that.
"""

from __future__ import annotations

import argparse
import sys
from importlib.abc import MetaPathFinder
from pathlib import Path

from anabranch.model.compiled import LOOPS

INPUTS = {
    "check": ("files", "output"),
    "convert": ("source",),
    "diff": ("left", "right"),
    "merge": ("files",),
    "show": ("file",),
}
"""The arguments that name what a command reads; these commands run no program of a user's."""
TEXTS = (".csv", ".json", ".jsonl", ".ndjson", ".txt")
"""The endings of files whose size bounds how many rows they have."""
FEW_BYTES = 256 * 1024
"""Of all inputs together: 10,000 rows, over which Python takes as long as it takes to load compiled loops.

Compiling them for the first time takes twelve seconds (``./run bench cold_start``).
"""


class _WithoutPandas(MetaPathFinder):
    """Finds no pandas, so that Arrow takes it for not installed."""

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("these commands need no pandas", name=fullname)


def start_lightly(options: argparse.Namespace) -> None:
    """Leave out pandas, which Arrow would import for a list, and Numba if the inputs are small."""
    arguments = INPUTS.get(options.command)
    if arguments is None:
        return
    sys.meta_path.insert(0, _WithoutPandas())
    named = [getattr(options, argument) or [] for argument in arguments]
    paths = [path for one in named for path in ([one] if isinstance(one, str) else one)]
    if are_small(paths) and "numba" not in sys.modules:
        import numpy as np

        np.seterr(over="ignore")
        LOOPS.as_python = True


def are_small(paths: list[str]) -> bool:
    """They are files of text, which may have a name before them, with few bytes in all."""
    files = [Path(path if Path(path).exists() else path.partition("=")[2]) for path in paths]
    if any(file.suffix not in TEXTS or not file.is_file() for file in files):
        return False
    return sum(file.stat().st_size for file in files) <= FEW_BYTES
