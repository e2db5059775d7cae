"""The Python that Spark's workers would run, which need not be the one of this command."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import version

from anabranch.cli.doctor.finding import Finding, Request, note, ok, trouble
from anabranch.extras import is_installed

SECONDS = 120
_PROGRAM = (
    "import json, platform, anabranch, anabranch.spark; from importlib.metadata import version; "
    "print(json.dumps([platform.python_version(), version('anabranch')]))"
)


def interpreter(asked: Request) -> Iterator[Finding]:
    """It is there, of the same minor version, and imports the same anabranch."""
    if not is_installed("pyspark"):
        return
    named = os.environ.get("PYSPARK_PYTHON")
    python = named or sys.executable
    way_out = (
        f"Set PYSPARK_PYTHON to a Python {_minor(platform.python_version())} with anabranch in it",
        f"(this one: {sys.executable}), or leave it unset.",
    )
    if shutil.which(python) is None:
        yield trouble("workers", f"PYSPARK_PYTHON is {python}, and that is no program", *way_out)
        return
    try:
        said = subprocess.run(
            [python, "-c", _PROGRAM], capture_output=True, text=True, check=False, timeout=SECONDS
        )
    except (OSError, subprocess.TimeoutExpired) as reason:
        yield trouble("workers", f"{python} does not start: {reason}", *way_out)
        return
    if said.returncode:
        last = (said.stderr.strip() or f"it ended with status {said.returncode}").split("\n")[-1]
        yield trouble("workers", f"{python} does not import anabranch: {last}", *way_out)
        return
    theirs, package = json.loads(said.stdout.splitlines()[-1])
    if _minor(theirs) != _minor(platform.python_version()):
        yield trouble(
            "workers", f"{python} is Python {theirs}, the driver {platform.python_version()}", *way_out
        )
    elif package != version("anabranch"):
        has = f"{python} has anabranch {package}, the driver {version('anabranch')}"
        yield trouble("workers", has, *way_out)
    else:
        by = ", by PYSPARK_PYTHON" if named else ""
        yield ok("workers", f"Python {theirs} imports anabranch {package}: {python}{by}")
    if not asked.master.startswith("local"):
        yield note("workers", f"on {asked.master} they run elsewhere; doctor --spark asks them")


def _minor(python: str) -> str:
    return ".".join(python.split(".")[:2])
