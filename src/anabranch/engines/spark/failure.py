"""Errors of workers as the errors they were, not as what the JVM made of them.

What a worker raises reaches the driver as text inside other text. So a worker raises it with itself, as JSON,
between two marks, and the driver makes the error again.
"""

import builtins
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec

from anabranch.engines.spark.parcel import ParcelError
from anabranch.engines.spark.shard import StateFormatError
from anabranch.kernels.merge.merger import BrokenPropertyError
from anabranch.model.identity import UnsupportedTypeError
from anabranch.model.schema import SchemaError
from anabranch.model.validity import InvalidElementError

BEGIN, END = "⟦anabranch ", "⟧"
_KNOWN: dict[str, type[BaseException]] = {
    error.__name__: error
    for error in (
        BrokenPropertyError,
        InvalidElementError,
        ParcelError,
        SchemaError,
        StateFormatError,
        UnsupportedTypeError,
    )
}


Error = TypeVar("Error", bound=type[BaseException])


def known(error: Error) -> Error:
    """Let an error be made again that a worker raised; a decorator of its class."""
    _KNOWN[error.__name__] = error
    return error


class QueryError(RuntimeError):
    """A streaming query stopped for a reason that is not one of ours; the message is the innermost cause."""


class _Told(msgspec.Struct):
    error: str
    message: str
    notes: list[str]


class WorkerError(Exception):
    """An error of ours on its way from a worker to the driver."""

    def __init__(self, error: BaseException) -> None:
        notes = [str(note) for note in getattr(error, "__notes__", [])]
        told = _Told(type(error).__name__, str(error), notes)
        super().__init__(f"{error}\n{BEGIN}{msgspec.json.encode(told).hex()}{END}")


@contextmanager
def told_to_driver() -> Iterator[None]:
    """What is raised inside can be made again by `failure`."""
    try:
        yield
    except (ValueError, TypeError, OverflowError, OSError, KeyError) as error:
        raise WorkerError(error) from error


def failure(error: BaseException) -> BaseException:
    """The error that stopped a query, as our worker raised it where it was ours."""
    text = str(error)
    told = re.search(rf"{BEGIN}([0-9a-f]+){END}", text)
    if told is None:
        return QueryError(_innermost(text))
    said = msgspec.json.decode(bytes.fromhex(told.group(1)), type=_Told)
    made = _made(said)
    for note in said.notes:
        made.add_note(note)
    return made


def _made(said: _Told) -> BaseException:
    kind: Any = _KNOWN.get(said.error) or getattr(builtins, said.error, QueryError)
    made = kind.__new__(kind)
    made.args = (said.message,)
    return made


def _innermost(text: str) -> str:
    """Of the text of nested JVM errors, the last cause."""
    causes = re.findall(r"(?:Caused by: )?(?:[\w.$]+(?:Exception|Error)): (.*)", text)
    return causes[-1] if causes else text.strip().split("\n")[0]
