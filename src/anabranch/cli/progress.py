"""What a person who waits sees on standard error: a progress bar, and why nothing happens yet."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(what: str) -> Iterator[Callable[[float], object]]:
    """Something to tell how much is done, from 0 to 1."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=1.0)
        yield lambda done: bar.update(task, completed=done)


@contextmanager
def said_if_slow(words: str, seconds: float = 3.0) -> Iterator[Callable[[], object]]:
    """Words that are said unless what is given is called, or all is done, before that."""
    timer = threading.Timer(seconds, lambda: print(f"anabranch: {words}", file=sys.stderr))
    timer.daemon = True
    timer.start()
    try:
        yield timer.cancel
    finally:
        timer.cancel()
