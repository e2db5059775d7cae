"""The file of a user's program: what goes wrong inside is told with its line, and the name that was meant."""

from __future__ import annotations

import builtins
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from traceback import extract_tb
from types import TracebackType

from anabranch.extras import without_spark
from anabranch.model.spelling import did_you_mean, keyword_meant, unexpected_keyword


@contextmanager
def in_program(file: Path) -> Iterator[None]:
    """What goes wrong inside is an error with the line of this file."""
    try:
        yield
    except Exception as reason:
        lines = [one.lineno for one in extract_tb(reason.__traceback__) if one.filename == str(file)]
        line = reason.lineno if isinstance(reason, SyntaxError) else lines[-1] if lines else None
        error = ValueError(f"{file.name}, line {line}: {type(reason).__name__}: {_words(reason)}")
        for note in getattr(reason, "__notes__", []):
            error.add_note(note)
        raise error from reason


def _words(reason: Exception) -> str:
    """The message of an error, with the name that was meant where one is misspelt."""
    if isinstance(reason, SyntaxError) and reason.text:
        return f"{reason.msg}: {reason.text.strip()}"
    if missing := without_spark(reason):
        return missing
    words = (str(reason).strip() or "no message").split("\n")[0]
    return words if "did you mean" in words.lower() else f"{words}{_meant(reason, words)}"


def _meant(reason: Exception, words: str) -> str:
    match reason:
        case NameError(name=str(name)):
            own = did_you_mean(name, _names_at(reason.__traceback__))
            return own or did_you_mean(name, dir(builtins))
        case AttributeError(name=str(name)) if reason.obj is not None:
            return did_you_mean(name, _public(reason.obj))
        case ModuleNotFoundError(name=str(name)):
            return did_you_mean(name, ["anabranch"])
        case ImportError(name=str(module)):
            odd = re.match(r"cannot import name '(\w+)'", words)
            return did_you_mean(odd[1], _public(import_module(module))) if odd else ""
        case TypeError():
            return _keyword_meant(reason)
    return ""


def _names_at(trace: TracebackType | None) -> list[str]:
    """The names that are known where an error was raised."""
    if trace is None:
        return []
    while trace.tb_next is not None:
        trace = trace.tb_next
    return [*trace.tb_frame.f_locals, *trace.tb_frame.f_globals]


def _public(thing: object) -> list[str]:
    return [name for name in getattr(thing, "__all__", dir(thing)) if not name.startswith("_")]


def _keyword_meant(reason: TypeError) -> str:
    """The end of the message where a function of ours was called with a keyword that it has not."""
    unexpected = unexpected_keyword(reason)
    if unexpected is None:
        return ""
    found: object = import_module("anabranch")
    for part in unexpected[0].removesuffix(".__init__").split("."):
        found = getattr(found, part, None)
    return keyword_meant(reason, found) if callable(found) else ""
