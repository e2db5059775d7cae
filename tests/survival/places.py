"""Where in a micro-batch a query can be stopped: functions that call before or after their work.

Each call names the place, the query, the micro-batch and the process, and waits until it is answered on the
socket that ``ANABRANCH_HOLD`` names. Whoever listens there decides what is killed in the meantime.

    reading      rows have been read and packed by a task, and not handed on
    merging      a shard has got its rows, and not heard them
    merged       a shard has put its state in the store, and Spark has not written it
    writing      merged rows reach the task that writes them
    sent         all rows of a task are with the broker, in a transaction that is open
    written      a task has written its rows, or ended its transaction, and the driver does not know
    committing   all tasks are done, and the micro-batch does not count in the sink
    committed    the micro-batch counts in the sink, and Spark has not noted it
"""

import json
import os
import socket
from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any

ADDRESS = "ANABRANCH_HOLD"
IN_TASKS = ("reading", "merging", "merged", "writing", "written")
AT_THE_END = ("committing", "committed")
_QUERY, _BATCH = "sql.streaming.queryId", "streaming.sql.batchId"


def call(place: str, query: str, batch: int, words: str = "") -> bytes:
    """Say where this process is and wait for an answer; none, where nobody listens."""
    said = {"place": place, "query": query, "batch": batch, "pid": os.getpid(), "words": words}
    try:
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(os.environ[ADDRESS])
            line.sendall(json.dumps(said).encode() + b"\n")
            return line.recv(1)
    except OSError:
        return b""


def _call_from_task(place: str) -> None:
    from pyspark import TaskContext

    context = TaskContext.get()
    query = context.getLocalProperty(_QUERY) if context else None
    if query:
        call(place, query, int(context.getLocalProperty(_BATCH) or 0))


def _reader(name: str) -> Callable[[ModuleType], None]:
    def arm(module: ModuleType) -> None:
        reader = getattr(module, name)
        read = reader.read
        reader.read = lambda self, partition: _each(read(self, partition), "reading")

    return arm


def _packing(module: ModuleType) -> None:
    reads = module._reads

    @wraps(reads)
    def held(*args: Any) -> Iterator[Any]:
        return _each(reads(*args), "reading")

    module._reads = held  # type: ignore[attr-defined]


def _writer(name: str, sink: Callable[[Any], str]) -> Callable[[ModuleType], None]:
    def arm(module: ModuleType) -> None:
        writer = getattr(module, name)
        write = writer.write
        writer.write = lambda self, rows: write(self, _each(rows, "writing"))
        _around(writer, "write", after="written")
        _around_commit(writer, "commit", sink)

    return arm


def _kafka_sink(module: ModuleType) -> None:
    _writer("KafkaWriter", lambda writer: writer.sending.topic)(module)
    _around(module, "_commit", before="sent")


ARMS: dict[str, Callable[[ModuleType], None]] = {
    "anabranch.connectors.folder.source": _reader("FolderReader"),
    "anabranch.connectors.kafka.source": _reader("KafkaReader"),
    "anabranch.engines.spark.parcel_rows": _packing,
    "anabranch.engines.spark.processor": lambda m: _around(m.ShardProcessor, "answer", "merging"),
    "anabranch.engines.spark.journal": lambda m: _around(m.Journal, "record", after="merged"),
    "anabranch.connectors.folder.sink": _writer("FolderWriter", lambda writer: str(writer.path)),
    "anabranch.connectors.kafka.sink": _kafka_sink,
    "anabranch.connectors.tables.delta": lambda m: _around_commit(
        m.DeltaTarget, "_commit", lambda target: str(target.path)
    ),
    "anabranch.connectors.tables.parquet": lambda m: _around_commit(
        m.ParquetTarget, "_publish", lambda target: str(target.path), batch=1
    ),
}
"""What is done to a module when it has been imported."""


class Arming:
    """Finds the modules that call, and lets them."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """The module as it is found otherwise, armed as soon as it has run."""
        spec = PathFinder.find_spec(name, path, target) if name in ARMS else None
        if spec is not None and spec.loader is not None:
            run = spec.loader.exec_module

            def armed(module: ModuleType) -> None:
                run(module)
                ARMS[name](module)

            spec.loader.exec_module = armed
        return spec


def _each(batches: Iterable[Any], place: str) -> Iterator[Any]:
    for batch in batches:
        _call_from_task(place)
        yield batch


def _around(owner: Any, name: str, before: str = "", after: str = "") -> None:
    plain = getattr(owner, name)

    @wraps(plain)
    def held(*args: Any, **kwargs: Any) -> Any:
        if before:
            _call_from_task(before)
        done = plain(*args, **kwargs)
        if after:
            _call_from_task(after)
        return done

    setattr(owner, name, held)


def _around_commit(owner: Any, name: str, sink: Callable[[Any], str], batch: int = -1) -> None:
    """Call before and after a method, of whose arguments one is the micro-batch."""
    plain = getattr(owner, name)

    @wraps(plain)
    def held(self: Any, *args: Any) -> Any:
        call("committing", sink(self), args[batch])
        done = plain(self, *args)
        call("committed", sink(self), args[batch])
        return done

    setattr(owner, name, held)
