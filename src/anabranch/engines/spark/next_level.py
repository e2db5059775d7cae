"""What a shard says, for the shards of later levels: each shard that speaks is a channel of the edge."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import pyarrow as pa

from anabranch.engines.spark.assignment import Assignment
from anabranch.engines.spark.shard import ShardResult
from anabranch.engines.spark.transport import parcel
from anabranch.engines.spark.transport.level_rows import parcel_slices
from anabranch.engines.spark.transport.packing import split
from anabranch.model.batch import Batch, concat
from anabranch.model.schema import conformed
from anabranch.plan.levels import Edge
from anabranch.progress.channel_rows import Stretch


def for_later_levels(
    assignment: Assignment, ids: tuple[int, ...], shard: int, result: ShardResult, advanced: Mapping[str, int]
) -> Iterator[pa.RecordBatch]:
    """What goes out of a shard in a micro-batch, as parcels, split where it is made."""
    for edge in assignment.later:
        stretch = Stretch("", str(shard))
        for batch in _said(edge, result, advanced.get(edge.name)):
            said = replace(parcel.Parcel.of(stretch, batch), edge=edge.name)
            stretch = Stretch("", str(shard), stretch.sequence + len(batch))
            dealing = assignment.dealing[edge.name]
            for number, part in split(said, dealing.identity, len(ids), dealing=dealing):
                body = parcel.to_bytes(part)
                yield parcel_slices(assignment.goes_to[edge.name], ids[number], body)


def _said(edge: Edge, result: ShardResult, stable: int | None) -> Iterator[Batch]:
    """The events that go on an edge, its stable last."""
    batches = [
        batch.with_payload(conformed(batch.payload, edge.inlet.schema)) for batch in result.outputs[edge.name]
    ]
    if stable is not None:
        last = Batch.stable(stable, edge.inlet.schema)
        batches = [*batches[:-1], concat([*batches[-1:], last])]
    yield from batches
