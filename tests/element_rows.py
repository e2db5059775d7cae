"""Elements as rows for Spark, what the rows of a sink mean, and copies of a stream cut into pieces."""

import json
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from anabranch import FOREVER, Adjust, Attach, Detach, Insert, Relation, Stable
from anabranch.model.batch import Batch

ELEMENTS = {"kind": "kind", "start": "start", "end": "end", "old_end": "old_end", "replica": "replica"}


def element_rows(elements, replica=None):
    """Elements as a table of rows, each with the payload's one column."""
    rows = []
    for element in elements:
        row = {
            "kind": type(element).__name__.lower(),
            "start": None,
            "end": None,
            "old_end": None,
            "value": None,
        }
        match element:
            case Insert(payload, start, end):
                row |= {"start": start, "end": end, "value": payload["value"]}
            case Adjust(payload, start, old_end, end):
                row |= {"start": start, "end": end, "old_end": old_end, "value": payload["value"]}
            case Stable(time):
                row |= {"start": time}
            case Attach(guarantee):
                row |= {"start": guarantee if guarantee > -(2**63) else None}
            case Detach():
                pass
        rows.append({key: None if value == FOREVER else value for key, value in row.items()})
    times = [(name, pa.int64()) for name in ("start", "end", "old_end")]
    schema = pa.schema([("kind", pa.string()), *times, ("value", pa.string())])
    table = pa.Table.from_pylist(rows, schema)
    if replica is not None:
        table = table.append_column("replica", pa.array([replica] * len(rows), pa.string()))
    return table


def put(folder: Path, name: str, number: int, elements) -> None:
    """A file of a replica, which appears whole, whoever is looking."""
    (folder / name).mkdir(parents=True, exist_ok=True)
    part = folder / name / f".{number:04}"
    pq.write_table(element_rows(elements), part)
    part.rename(folder / name / f"{number:04}.parquet")


def pieces(random: Random, elements, count):
    cuts = sorted(random.randrange(len(elements) + 1) for _ in range(count - 1))
    return [elements[a:b] for a, b in zip([0, *cuts], [*cuts, len(elements)], strict=True)]


def relation_of(folder: Path) -> Relation:
    """What the files of a sink say, micro-batch by micro-batch, the stable after the rest."""
    relation = Relation()
    batches: dict[str, list[Path]] = {}
    for file in sorted(folder.glob("*.parquet")):
        batches.setdefault(file.name.split("-")[1], []).append(file)
    for files in batches.values():
        for file in files:
            relation.apply(Batch.from_arrow(pq.read_table(file)))
    return relation


def meant_by(elements) -> Relation:
    relation = Relation()
    relation.apply(elements)
    return relation


def named(copies):
    """The same copies with payloads of one text column."""

    def renamed(element):
        match element:
            case Insert(payload, start, end):
                return Insert({"value": json.dumps(dict(payload), sort_keys=True)}, start, end)
            case Adjust(payload, start, old_end, end):
                return Adjust({"value": json.dumps(dict(payload), sort_keys=True)}, start, old_end, end)
        return element

    return [[renamed(element) for element in copy] for copy in copies]
