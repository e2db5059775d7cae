"""A file system of a few kilobytes, mounted in a folder; whoever may not mount one skips."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

_AS_ROOT = () if os.geteuid() == 0 else ("sudo", "-n")


def _done(*command: str) -> bool:
    try:
        return subprocess.run([*_AS_ROOT, *command], capture_output=True, check=False).returncode == 0
    except FileNotFoundError:
        return False


@contextmanager
def small_disk(folder: Path, kilobytes: int) -> Iterator[Path]:
    """A disk with so much room; `grown` gives it more."""
    folder.mkdir(parents=True, exist_ok=True)
    owner = f"uid={os.getuid()},gid={os.getgid()},mode=755"
    if not _done("mount", "-t", "tmpfs", "-o", f"size={kilobytes}k,{owner}", "small", str(folder)):
        pytest.skip("a small file system takes root to mount")
    try:
        yield folder
    finally:
        _done("umount", "-l", str(folder))


def grown(folder: Path, kilobytes: int) -> None:
    assert _done("mount", "-o", f"remount,size={kilobytes}k", str(folder))
