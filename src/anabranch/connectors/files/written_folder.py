"""The folder that `anabranch run` or `write_folder` has written, as a recorded stream.

    5c1f9a-000000012-0001.parquet        in the order of names: query, micro-batch, part,
    5c1f9a-000000012-stable.parquet      and the stable of a micro-batch after the rest

Rows are elements as in `model.arrow`. In JSON lines they have the same columns, and times are ISO 8601 where
they were timestamps or dates: ticks are microseconds, or days.
"""

import re
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from anabranch.connectors.files.formats import Format, UnknownFormatError
from anabranch.model.arrow import RESERVED
from anabranch.model.clock import Clock
from anabranch.model.clock_columns import clock_of_elements
from anabranch.model.elements import Adjust, Element, Insert, Stable
from anabranch.model.time import FOREVER, ticks

_WRITTEN = re.compile(r"[0-9a-f]{8}-\d{9,}-(\d{4,}|stable)\.(parquet|jsonl|arrow)")
_PART = "_part"
_TIMES = ("start", "end", "old_end")
_EPOCH = date(1970, 1, 1).toordinal()
_DAY = "2026-01-01"


def format_of_written(path: str, format: str | None, dialect: str | None) -> Format:  # noqa: A002
    """The format of the files in a folder that a sink wrote."""
    if dialect is not None:
        error = UnknownFormatError(f"a dialect is of a file, and {path} is a folder")
        error.add_note("Leave the dialect out: what a run writes are our own elements.")
        raise error
    files = written_files(path)
    found = Format(files[0].suffix[1:]) if files else Format.PARQUET
    if files and format is not None and format != found.value:
        error = UnknownFormatError(f"the files in {path} are {found.value}, not {format}")
        error.add_note("Leave the format out: their names tell it.")
        raise error
    return found


def written_files(path: str) -> list[Path]:
    """The files of a folder that a sink wrote, in the order of the stream."""
    place = Path(path)
    files = sorted(file for file in place.iterdir() if file.name[0] not in "._")
    strange = [file for file in files if not _WRITTEN.fullmatch(file.name)]
    if strange or not (files or (place / _PART).is_dir()):
        why = f"{strange[0].name} is in it" if strange else "it has no files of one"
        error = UnknownFormatError(f"{path} is not a folder that anabranch run has written: {why}")
        error.add_note("Give a file, or the folder in [sink] path of a job.")
        raise error
    return files


def clock_of_written(path: str) -> Clock | None:
    """What ticks are in a folder that a sink wrote; None where nothing says it."""
    for file in written_files(path):
        if file.suffix == ".parquet":
            return clock_of_elements(pq.read_schema(file))
        if file.suffix == ".arrow":
            return clock_of_elements(pa.ipc.open_file(file).schema)
        with file.open("rb") as lines:
            start = next((start for line in lines if (start := _start_of(line)) is not None), None)
        if start is not None:
            return Clock.TICKS if isinstance(start, int) else _clock_of_text(str(start))
    return None


def _start_of(line: bytes) -> Any:
    """The start in a line of JSON; a line that is none is for others to refuse."""
    try:
        return msgspec.json.decode(line, type=dict[str, Any]).get("start")
    except (ValueError, RecursionError):
        return None


def _clock_of_text(time: str) -> Clock:
    if len(time) == len(_DAY):
        return Clock.DAYS
    return Clock.LOCAL if datetime.fromisoformat(time).tzinfo is None else Clock.MOMENTS


def element_of_row(line: bytes) -> Element:
    """The element in a line of JSON."""
    row = msgspec.json.decode(line, type=dict[str, Any])
    kind, start, end, old_end = row.get("kind"), *(_tick(row.get(name)) for name in _TIMES)
    payload = {name: value for name, value in row.items() if name not in RESERVED[:-1]}
    if list(payload) == ["payload"] and isinstance(payload["payload"], dict):
        payload = payload["payload"]
    match kind:
        case "insert":
            return Insert(payload, start, end)
        case "adjust":
            return Adjust(payload, start, old_end, end)
        case "stable":
            return Stable(start)
    raise ValueError(f"a row that a run wrote is an insert, an adjust or a stable, this one is {kind!r}")


def _tick(value: Any) -> int:
    if value is None:
        return FOREVER
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if not isinstance(value, str):
        raise ValueError(f"a time is a whole number or ISO 8601, not {value!r}")
    if len(value) == len(_DAY):
        return date.fromisoformat(value).toordinal() - _EPOCH
    moment = datetime.fromisoformat(value)
    return ticks(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
