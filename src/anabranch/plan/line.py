"""The line of a user's program that made a part of a plan, so that an error can name it."""

import linecache
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

_PACKAGE = str(Path(__file__).parents[1])


@dataclass(frozen=True, slots=True)
class Line:
    """A place in a program."""

    file: str
    number: int

    def __str__(self) -> str:
        words = linecache.getline(self.file, self.number).strip()
        return f"{self.file}:{self.number}" + (f": {words}" if words else "")

    @contextmanager
    def named(self) -> Iterator[None]:
        """Note this line in whatever is raised here, unless a part of the plan has been named already."""
        try:
            yield
        except Exception as error:
            self.note(error)
            raise

    def note(self, error: Exception) -> None:
        """Note this line in an error, unless a part of the plan has been named already."""
        if self != NO_LINE and not any(note.startswith(_MARK) for note in getattr(error, "__notes__", ())):
            error.add_note(f"{_MARK}{self}")


NO_LINE = Line("", 0)
"""That of a plan which a command makes: no program has a line of it."""
_MARK = "In the plan at "


_told: ContextVar[Line | None] = ContextVar("told", default=None)


@contextmanager
def told(line: Line) -> Iterator[None]:
    """What is made of a plan here comes from this line, of a file that is no program."""
    before = _told.set(line)
    try:
        yield
    finally:
        _told.reset(before)


def users_line() -> Line:
    """The line that was `told`, or the innermost that is not of this package."""
    known = _told.get()
    if known is not None:
        return known
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith((_PACKAGE, "<string>")):
        frame = frame.f_back
    return Line(frame.f_code.co_filename, frame.f_lineno)
