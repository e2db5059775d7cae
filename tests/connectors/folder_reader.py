"""A reader of a folder as Spark uses it, without Spark."""

import base64

import msgspec
import pyarrow as pa

from anabranch.connectors.folder.source import FolderReader
from anabranch.engines.spark.transport.packing import Packing
from anabranch.rows.layout import Layout

COLUMNS = pa.schema([("v", pa.int64()), ("at", pa.int64()), ("replica", pa.string())])


def reader(place, *, tasks=1, columns=COLUMNS, edge="rows", **options):
    packing = Packing(Layout("at", replica="replica", disorder=0), 1, 100, ordered=True, edge=edge)
    settings = {
        "path": str(place),
        "packing": msgspec.json.encode(packing).decode(),
        "shards": "[0]",
        "columns": base64.b64encode(columns.serialize()).decode(),
        "tasks": str(tasks),
    }
    return FolderReader(settings | {name: str(value) for name, value in options.items()})


def everything(source, limit=None):
    """The offsets of the micro-batches that read all there is."""
    offsets = [source.initialOffset()]
    while True:
        end = source.latestOffset(offsets[-1], limit or source.getDefaultReadLimit())
        if end == offsets[-1]:
            return offsets
        offsets.append(end)
