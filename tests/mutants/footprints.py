"""Which lines each test runs, and how long it takes: what is changed in a line concerns those that run it."""

import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any

import msgspec

LOOKS = 16
"""Calls of a function that are followed line by line in one test; more would take long, and show little."""


class Footprint(msgspec.Struct):
    """What one test ran."""

    test: str
    seconds: float
    passed: bool
    lines: dict[str, list[int]]
    """Of each source file, by its path."""
    why: str = ""
    """It did not pass: it takes too long, or needs loops that are compiled."""


class TooSlowError(BaseException):
    """A test that takes longer than it may; what catches any `Exception` must not catch this."""


@dataclass
class Tracer:
    """State: the lines below a folder that have been run, and how often each function has been called."""

    folder: str

    def __post_init__(self) -> None:
        self.lines: dict[str, set[int]] = {}
        self.calls: dict[CodeType, int] = {}

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        code = frame.f_code
        if not code.co_filename.startswith(self.folder):
            return None
        calls = self.calls[code] = self.calls.get(code, 0) + 1
        if calls > LOOKS:
            return None
        lines = self.lines.setdefault(code.co_filename, set())

        def local(frame: FrameType, event: str, _: Any) -> Any:
            if event == "line":
                lines.add(frame.f_lineno)
            return local

        return local


@contextmanager
def traced(folder: str) -> Iterator[Tracer]:
    """What is run meanwhile, by this thread."""
    tracer = Tracer(folder)
    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        yield tracer
    finally:
        sys.settrace(before)


@contextmanager
def no_longer_than(seconds: float) -> Iterator[None]:
    """Raise in what uses the processor for longer."""

    def stop(*_: Any) -> None:
        raise TooSlowError

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def cpu_seconds() -> float:
    """What this process has used, which does not depend on what else the machine does."""
    return time.process_time()
