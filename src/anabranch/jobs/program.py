"""The file of a user's program: what goes wrong inside is told with its line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import extract_tb


@contextmanager
def in_program(file: Path) -> Iterator[None]:
    """What goes wrong inside is an error with the line of this file."""
    try:
        yield
    except Exception as reason:
        lines = [one.lineno for one in extract_tb(reason.__traceback__) if one.filename == str(file)]
        line = reason.lineno if isinstance(reason, SyntaxError) else lines[-1] if lines else None
        words = (str(reason).strip() or "no message").split("\n")[0]
        error = ValueError(f"{file.name}, line {line}: {type(reason).__name__}: {words}")
        for note in getattr(reason, "__notes__", []):
            error.add_note(note)
        raise error from reason
