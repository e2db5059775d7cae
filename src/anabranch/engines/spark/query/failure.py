"""Errors of workers as the errors they were, not as what the JVM made of them.

What a worker raises reaches the driver as text inside other text. So a worker raises it with itself, as JSON,
between two marks, and the driver makes the error again. Errors of Spark itself are told by their words, where
there is something to do about them: a checkpoint that cannot be read, or not be written to, or is another
query's, or a full disk.
"""

import builtins
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec

from anabranch.engines.spark.query.checkpoint import CheckpointError, damaged, without_clock
from anabranch.errors import AnabranchError

BEGIN, END = "⟦anabranch ", "⟧"


class QueryError(AnabranchError, RuntimeError):
    """A streaming query stopped for a reason that is not one of ours; the message is the innermost cause."""


class _Told(msgspec.Struct):
    error: str
    message: str
    notes: list[str]


class WorkerError(AnabranchError):
    """An error of ours on its way from a worker to the driver."""

    def __init__(self, error: BaseException) -> None:
        notes = [str(note) for note in getattr(error, "__notes__", [])]
        told = _Told(type(error).__name__, str(error), notes)
        super().__init__(f"{error}\n{BEGIN}{msgspec.json.encode(told).hex()}{END}")


@contextmanager
def errors_to_driver() -> Iterator[None]:
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
        return _of_spark(text, str(getattr(error, "_stackTrace", "")))
    said = msgspec.json.decode(bytes.fromhex(told.group(1)), type=_Told)
    made = _made(said)
    for note in said.notes:
        made.add_note(note)
    if FULL.search(said.message) and not said.notes:
        made.add_note(SPACE)
    return made


FULL = re.compile(r"No space left on device|Disk quota exceeded|errno 28|Errno 28")
SPACE = "Free some space and start the query again: it goes on from its checkpoint, and nothing is lost."
_WRITING = re.compile(r"CANNOT_WRITE_STATE_STORE")
"""Spark does not say why where the thread that wrote is not the one that commits."""
_TWICE = re.compile(r"CONCURRENT_STREAM_LOG_UPDATE|[Cc]oncurrent update to the log|Multiple streaming jobs")
_OTHER = re.compile(r"STREAMING_STATEFUL_OPERATOR_NOT_MATCH")
_SOURCES = re.compile(r"There are \[(\d+)\] sources in the checkpoint offsets and now there are \[(\d+)\]")
_PATH = re.compile(
    r"(?:file:)?(?://)?(/[^\s'\",;()\[\]]*/(?:offsets|commits|sources|state|metadata)(?:/[^\s'\",;()\[\]]*)?)"
)
_STATE = re.compile(
    r"STATE_STORE|STATEFUL|STDS_|Checksum(Exception| error)|Incomplete log file|[Rr]ocks[Dd][Bb]|changelog"
    r"|OffsetSeq|CommitLog|offset log|from checkpoint|metadata log|batch \d+ doesn't exist"
)


_READING = re.compile(r"OperatorStateMetadata|StateSchema|MetadataLog|StreamMetadata|OffsetSeq|CommitLog")
"""What Spark reads a checkpoint with: an error from there is about what it read."""


def _of_spark(text: str, trace: str) -> BaseException:
    """An error of Spark's own as what it means here."""
    cause = _innermost(text)
    words, causes = _without_frames(text), _without_frames(trace)
    if FULL.search(words) or FULL.search(causes):
        full = OSError(f"a disk that the query writes to is full: {cause}")
        full.add_note(SPACE)
        return full
    if _WRITING.search(words):
        unwritten = OSError(f"the checkpoint could not be written to: {cause}")
        unwritten.add_note("See that its disk has room and may be written to; why is in Spark's log.")
        unwritten.add_note("Then start the query again: it goes on from its checkpoint, and nothing is lost.")
        return unwritten
    if _TWICE.search(words):
        twice = CheckpointError(
            f"a checkpoint is of one query at a time, and another goes on from it: {cause}"
        )
        twice.add_note("Stop one of the two; what was written is there once. The other goes on.")
        return twice
    if _OTHER.search(words):
        other = CheckpointError(f"the checkpoint is of a query that works in another way: {cause}")
        other.add_note(
            "An older anabranch wrote it, or a query with other stateful steps; that one goes on from it."
        )
        other.add_note(
            "Else begin again, with a new checkpoint and a new sink: all that the sources have is read."
        )
        return other
    if numbers := _SOURCES.search(words):
        if int(numbers[1]) + 1 == int(numbers[2]):
            return without_clock("its checkpoint")
        sources = CheckpointError(f"the checkpoint is of a query with other sources: {cause}")
        sources.add_note("The number of its sources is fixed; begin a new checkpoint, and a new sink.")
        return sources
    path = _PATH.search(words)
    if path is None and not (_STATE.search(words) or _READING.search(trace)):
        return QueryError(cause)
    path = path or _PATH.search(causes)
    where = "the checkpoint" if path is None else f"{path[1]} of the checkpoint"
    return damaged(f"{where} cannot be read: {cause}")


def _without_frames(text: str) -> str:
    return "\n".join(line for line in text.split("\n") if not re.match(r'\s+at |\s+File "', line))


def _made(said: _Told) -> BaseException:
    kind: Any = _ours(said.error) or getattr(builtins, said.error, QueryError)
    made = kind.__new__(kind)
    made.args = (said.message,)
    return made


def _ours(name: str) -> type[AnabranchError] | None:
    """The error of ours that has this name, of those that have been imported."""
    kinds = [AnabranchError]
    for kind in kinds:
        kinds += kind.__subclasses__()
    return next((kind for kind in kinds if kind.__name__ == name), None)


def _innermost(text: str) -> str:
    """Of the text of nested JVM errors, the last cause."""
    causes = re.findall(r"(?:Caused by: )?(?:[\w.$]+(?:Exception|Error)): (.*)", text)
    first = re.sub(r"^\[STREAM_FAILED\] Query \[[^]]*\] terminated with exception: ", "", text.strip())
    return causes[-1] if causes else first.split("\n")[0]
