"""Element rows into a folder, each micro-batch once: files are named by query, micro-batch and part.

    out/5c1f9a-000000012-0001.parquet        what went out, apart from the stable
    out/5c1f9a-000000012-stable.parquet      the stable, the last to appear
    out/_quarantine/5c1f9a-000000012-0000.jsonl

A micro-batch that runs again after a crash replaces its own files, so a row is there once; what a task wrote
before it was killed stays in ``_part`` until the query starts again, and no reader looks there. The folder
must be one that the driver and all executors see. Two queries may not share a folder.
"""

import os
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
import pyarrow.parquet
from pyspark.sql.datasource import DataSource, DataSourceStreamArrowWriter, WriterCommitMessage

from anabranch.connectors.files.local_path import local_path
from anabranch.connectors.folder.file_places import FilePlaces
from anabranch.engines.spark.hidden_rows import whole
from anabranch.engines.spark.query.begun_with import begun_with, check_begun_with
from anabranch.engines.spark.query.begun_with import folder_sink as sink_settings
from anabranch.engines.spark.query.check import went_back
from anabranch.engines.spark.query.checkpoint import begun, completed, known_query, query_id
from anabranch.engines.spark.query.disk_full import room_in
from anabranch.engines.spark.query.failure import errors_to_driver
from anabranch.engines.spark.query.provenance import check_rows_apart, numbered_by
from anabranch.engines.spark.query.seal import seal
from anabranch.engines.spark.query.start import check_elements, check_streaming, check_trigger, started
from anabranch.engines.spark.transport.frontier_rows import Frontier, least, without_frontiers
from anabranch.rows.element_columns import REFUSED
from anabranch.rows.text import text_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

NAME = "anabranch-folder-sink"
FORMATS = ("parquet", "jsonl")
PART, QUARANTINE = "_part", "_quarantine"


def write_folder(
    rows: "DataFrame",
    path: str | Path,
    *,
    checkpoint: str | Path,
    quarantine: str | Path | None = None,
    format: str = "parquet",  # noqa: A002
    available_now: bool = False,
    trigger: str | None = None,
    name: str | None = None,
) -> "StreamingQuery":
    """Start a query that writes what `merge` gives to a folder, each micro-batch once.

    ``checkpoint`` is the folder from which the query goes on after a restart. Refused rows go to
    ``quarantine`` as JSON lines (default: ``_quarantine`` inside the folder). ``available_now``: stop when
    all that is there has been read; else go on, with a micro-batch every ``trigger`` ('10 seconds') or as
    soon as the last is done.
    """
    if format not in FORMATS:
        raise ValueError(f"a format is one of {', '.join(FORMATS)}, {format!r} is none")
    check_trigger(available_now=available_now, trigger=trigger)
    check_elements(rows)
    check_streaming(rows)
    place, base = local_path(path), local_path(checkpoint)
    aside = local_path(quarantine) if quarantine is not None else place / QUARANTINE
    check_rows_apart(rows, place, base, aside)
    settings = begun_with(rows, sink_settings(format))
    check_begun_with(base, settings)
    check_folder(place, base, format)
    query = query_id(base)
    (place / PART).mkdir(parents=True, exist_ok=True)
    _mark(place, query).touch()
    rows.sparkSession.dataSource.register(FolderSink)
    writer = (
        whole(rows)
        .writeStream.format(NAME)
        .option("path", str(place))
        .option("quarantine", str(aside))
        .option("format", format)
        .option("query", query)
        .option("sealed", str(base))
    )
    if numbered := numbered_by(rows):
        writer = writer.option("numbered", msgspec.json.encode(numbered).decode())

    def first() -> None:
        _check_numbers(place, query, base)
        for left in (place / PART).glob(f"{query}-*"):
            left.unlink()

    return started(
        writer,
        base,
        available_now=available_now,
        trigger=trigger,
        name=name,
        settings=settings,
        first=first,
    )


def _check_numbers(place: Path, query: str, checkpoint: Path) -> None:
    """Raise where the folder has micro-batches that the checkpoint does not know."""
    numbers = [int(file.name.split("-")[1]) for file in place.glob(f"{query}-*-*.*")]
    last = begun(checkpoint)
    if max(numbers, default=-1) > last:
        error = went_back(checkpoint, last, f"{place} has files of micro-batch {max(numbers)}")
        error.add_note(f"Or go on from {last}: move the files of later micro-batches out of the folder.")
        raise error


def _mark(place: Path, query: str) -> Path:
    """A file that says that a query writes to a folder, before it has."""
    return place / PART / f".{query}"


def check_folder(place: Path, checkpoint: Path, form: str) -> None:
    """Raise where a folder is not the checkpoint's, or has files of other queries or formats."""
    query = known_query(checkpoint)
    if query is None and begun(checkpoint) >= 0:
        return  # `query_id` says what is gone
    goes_on = query is not None and completed(checkpoint) >= 0
    marked = query is not None and _mark(place, query).exists()
    if goes_on and not marked and not any(place.glob(f"{query}-*")):
        gone = FileNotFoundError(f"the checkpoint goes on with another folder: nothing of it is in {place}")
        gone.add_note("Give the folder that it wrote to, or begin a new checkpoint.")
        raise gone
    files = sorted(f.name for f in place.iterdir() if f.is_file()) if place.is_dir() else []
    own = [name for name in files if query is not None and name.startswith(f"{query}-")]
    others = [name for name in files if name not in own and name[0] != "."]
    if others:
        error = FileExistsError(f"{place} has files that are not of this query, {others[0]} among them")
        error.add_note(
            "Give each query a folder of its own, or the checkpoint that the files were written with."
        )
        raise error
    strange = [name for name in own if not name.endswith(f".{form}")]
    if strange:
        error = FileExistsError(f"{place} has {strange[0]}, and this query would write {form} beside it")
        error.add_note("Go on in the format of the files; or begin anew, with a new checkpoint and folder.")
        raise error


class FolderSink(DataSource):
    """A folder that element rows are written to."""

    @classmethod
    def name(cls) -> str:
        """What the format is called."""
        return NAME

    def streamWriter(self, schema: Any, overwrite: bool) -> "FolderWriter":  # noqa: N802
        """A writer of the folder."""
        return FolderWriter(dict(self.options))


@dataclass
class Written(WriterCommitMessage):
    """What one task wrote, under names of its own."""

    task: int
    elements: list[str]
    stables: list[str]
    refused: list[str]
    frontiers: dict[Frontier, str]
    """Of shards that are at frontiers of their own, where they are, and the file of that stable."""


class FolderWriter(DataSourceStreamArrowWriter):
    """Tasks write parts under names of their own; the driver gives them their names when all are there."""

    def __init__(self, options: dict[str, str]) -> None:
        self.path, self.quarantine = Path(options["path"]), Path(options["quarantine"])
        self.format, self.query, self.sealed = options["format"], options["query"], options["sealed"]
        self.numbered = msgspec.json.decode(options.get("numbered", "{}"), type=dict[str, str])

    def write(self, iterator: Iterator[pa.RecordBatch]) -> Written:
        """Write the rows of one task."""
        from pyspark import TaskContext

        context = TaskContext.get()
        task = context.partitionId() if context else 0
        with errors_to_driver(), room_in(self.path):
            parts = _Parts(self.path / PART / f"{self.query}-{uuid.uuid4().hex}", self.format)
            for batch in iterator:
                parts.add(batch)
            return Written(task, *parts.close())

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Give the files of a micro-batch their names, the stable last, in place of an earlier attempt's."""
        with errors_to_driver(), room_in(self.path):
            self._commit(messages, batchId)

    def _commit(self, messages: list[WriterCommitMessage | None], batch: int) -> None:
        written = sorted((m for m in messages if isinstance(m, Written)), key=lambda one: one.task)
        prefix = f"{self.query}-{batch:09}-"
        elements = [file for one in written for file in one.elements]
        refused = [file for one in written for file in one.refused]
        stables = [file for one in written for file in one.stables]
        frontiers = {frontier: file for one in written for frontier, file in one.frontiers.items()}
        if (behind := least(frontiers)) is not None:
            stables.append(frontiers.pop(behind))
        for file in frontiers.values():
            Path(file).unlink()
        assert len(stables) <= 1, "one shard says the stable"
        if refused:
            self.quarantine.mkdir(parents=True, exist_ok=True)
        if refused and self.numbered:
            places = FilePlaces(self.numbered, Path(self.sealed), batch)
            for file in refused:
                _place(Path(file), places)
        _named(elements, self.path, prefix, self.format)
        _named(refused, self.quarantine, prefix, "jsonl")
        stable = self.path / f"{prefix}stable.{self.format}"
        for file in stables:
            os.replace(file, stable)
        if not stables:
            stable.unlink(missing_ok=True)
        seal(Path(self.sealed), batch)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Remove what the tasks of a micro-batch wrote."""
        for one in messages:
            if isinstance(one, Written):
                for file in (*one.elements, *one.stables, *one.refused, *one.frontiers.values()):
                    Path(file).unlink(missing_ok=True)


def _place(file: Path, places: FilePlaces) -> None:
    """Write refused rows anew with the files and lines they stand for."""
    part = file.with_suffix(".placed")
    with file.open("rb") as rows, part.open("w", encoding="utf-8") as out:
        out.writelines(f"{text_of(places.placed(msgspec.json.decode(row)))}\n" for row in rows)
    part.replace(file)


def _named(files: list[str], place: Path, prefix: str, ending: str) -> None:
    names = [f"{prefix}{n:04}.{ending}" for n in range(len(files))]
    for file, name in zip(files, names, strict=True):
        os.replace(file, place / name)
    stable = f"{prefix}stable.{ending}"
    for old in place.glob(f"{prefix}*"):
        if old.name not in names and old.name != stable:
            old.unlink()


class _Parts:
    """The files of one task: elements, stables and refused rows apart."""

    def __init__(self, stem: Path, form: str) -> None:
        self.stem, self.format = str(stem), form
        self.writers: dict[str, Any] = {}
        self.frontiers: list[Frontier] = []

    def add(self, batch: pa.RecordBatch) -> None:
        if REFUSED in batch.schema.names and batch.column(REFUSED).null_count < len(batch):
            refused = batch.filter(batch.column(REFUSED).is_valid())
            self._write_lines("refused", refused.column(REFUSED).to_pylist())
            batch = batch.filter(batch.column(REFUSED).is_null())
        if REFUSED in batch.schema.names:
            batch = batch.drop_columns([REFUSED])
        batch, frontiers = without_frontiers(batch)
        for frontier, stable in frontiers.items():
            self.frontiers.append(frontier)
            self._write(f"stable-{frontier.shard}", stable)
        is_stable = pa.compute.equal(batch.column("kind"), "stable")
        if pa.compute.any(is_stable).as_py():
            self._write("stables", batch.filter(is_stable))
            batch = batch.filter(pa.compute.invert(is_stable))
        if len(batch):
            self._write("elements", batch)

    def _write(self, what: str, batch: pa.RecordBatch) -> None:
        if self.format == "jsonl":
            self._write_lines(what, batch.to_pylist(maps_as_pydicts="strict"))
            return
        if what not in self.writers:
            file = f"{self.stem}-{what}.parquet"
            self.writers[what] = pa.parquet.ParquetWriter(file, batch.schema), file
        self.writers[what][0].write_batch(batch)

    def _write_lines(self, what: str, rows: Iterable[dict[str, Any]]) -> None:
        if what not in self.writers:
            file = f"{self.stem}-{what}.jsonl"
            self.writers[what] = Path(file).open("w", encoding="utf-8"), file  # noqa: SIM115
        self.writers[what][0].writelines(f"{text_of(row)}\n" for row in rows)

    def close(self) -> tuple[list[str], list[str], list[str], dict[Frontier, str]]:
        for writer, _ in self.writers.values():
            writer.close()
        files = {what: file for what, (_, file) in self.writers.items()}
        elements, stables, refused = (
            [files[w]] if w in files else [] for w in ("elements", "stables", "refused")
        )
        frontiers = {one: files[f"stable-{one.shard}"] for one in self.frontiers}
        return elements, stables, refused, frontiers
