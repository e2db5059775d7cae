"""The memory that is left for Spark's driver and its Python workers."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from anabranch.cli.doctor.finding import Finding, Request, note, ok, trouble

DRIVER = 2 << 30
"""What a session of ours gives the driver."""
WORKERS = 1 << 30
"""What the Python workers of a small job take beside it."""
_UNITS = {"": 20, "b": 0, "k": 10, "m": 20, "g": 30, "t": 40}


def available(asked: Request) -> Iterator[Finding]:
    """There is as much as the driver may take, and some for the workers."""
    least = _bytes(asked.setting("spark.driver.memory")) + WORKERS
    there = least_of(of_machine(Path("/proc/meminfo")), of_container(Path("/proc/self/cgroup")))
    if there is None:
        yield note("memory", "this system does not say how much is available")
    elif there < least:
        yield trouble(
            "memory",
            f"{gigabytes(there)} available, and driver and workers take {gigabytes(least)}",
            "End other programs, raise the limit of the container, or give the driver less:",
            "spark.driver.memory = '1g' in [spark] config will do for small jobs.",
        )
    else:
        yield ok("memory", f"{gigabytes(there)} available, {gigabytes(least)} needed")


def gigabytes(size: int) -> str:
    """A size for people."""
    return f"{size / 2**30:,.1f} GB"


def least_of(*sizes: int | None) -> int | None:
    """The smallest of those that are known."""
    return min((size for size in sizes if size is not None), default=None)


def _bytes(setting: str | None) -> int:
    """A size as Spark writes it: 2g, 512m; a number alone is mebibytes."""
    found = re.fullmatch(r"(\d+)([bkmgt]?)b?", (setting or "").strip().lower())
    return int(found.group(1)) << _UNITS[found.group(2)] if found else DRIVER


def of_machine(meminfo: Path) -> int | None:
    """What the system would give; all it has, where it does not say what of it is free."""
    try:
        found = re.search(r"^MemAvailable: +(\d+) kB", meminfo.read_text(), re.MULTILINE)
        return int(found.group(1)) << 10 if found else None
    except OSError:
        pass
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return None


def of_container(groups: Path, mount: Path = Path("/sys/fs/cgroup")) -> int | None:
    """What the limits of this process's control groups leave; cached files are given back when needed."""
    try:
        own = next(line[3:] for line in groups.read_text().splitlines() if line.startswith("0::"))
    except (OSError, StopIteration):
        return None
    place = mount / own.strip("/")
    left = None
    for folder in (place, *place.parents):
        if not folder.is_relative_to(mount):
            break
        try:
            limit = (folder / "memory.max").read_text().strip()
            used = int((folder / "memory.current").read_text())
            cached = re.search(r"^inactive_file (\d+)", (folder / "memory.stat").read_text(), re.MULTILINE)
        except OSError:
            continue
        if limit != "max":
            left = least_of(left, int(limit) - used + int(cached.group(1) if cached else 0))
    return left
