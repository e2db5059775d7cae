"""What replicas say of the readings, as files: a file has a minute of all of them, and is a micro-batch."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from scene.readings import Reading, moment

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

MINUTE = 60
TIME = pa.timestamp("us", "UTC")
COLUMNS = {"replica": pa.string(), "said": TIME, "sensor": pa.string(), "value": pa.float64(), "at": TIME}
SIGNAL = {"signal": pa.int64()}
SCHEMA = "replica string, said timestamp, sensor string, value double, at timestamp"


@dataclass(frozen=True, slots=True)
class Heard:
    """A reading as a replica says it, and when; how strong the signal was, where that counts."""

    said: int
    replica: str
    reading: Reading
    signal: int | None = None


def put(folder: Path, heard: Sequence[Heard]) -> Path:
    """Write all that was said, minute by minute."""
    folder.mkdir()
    columns = COLUMNS | (SIGNAL if any(one.signal is not None for one in heard) else {})
    schema = pa.schema(list(columns.items()))
    for minute in range(max(one.said for one in heard) // MINUTE + 1):
        file = folder / f"{minute:04}.parquet"
        rows = [_row(one) for one in heard if one.said // MINUTE == minute]
        pq.write_table(pa.Table.from_pylist(rows, schema), file)
        age = moment((minute + 1) * MINUTE).timestamp()
        os.utime(file, (age, age))  # Spark's file source reads files by age
    return folder


def _row(one: Heard) -> dict[str, object]:
    reading = one.reading
    return {
        "replica": one.replica,
        "said": moment(one.said),
        "sensor": reading.sensor,
        "value": reading.value,
        "at": moment(reading.at),
        "signal": one.signal,
    }


def stream(
    spark: "SparkSession", folder: Path, *, signal: bool = False, at_once: bool = False
) -> "DataFrame":
    """The rows of all replicas as a streaming frame, a minute at a time or all at once."""
    source = spark.readStream.schema(SCHEMA + (", signal long" if signal else ""))
    if not at_once:
        source = source.option("maxFilesPerTrigger", 1)
    return source.parquet(str(folder))
