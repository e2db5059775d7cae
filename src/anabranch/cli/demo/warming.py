"""What the query and its judge run, compiled while Spark starts; each worker would compile it for itself.

There is something to compile the first time on a machine only; others find it in Numba's cache.
"""

from collections.abc import Mapping, Sequence

import pyarrow as pa

from anabranch.cli.demo.feed import columns, relation
from anabranch.cli.demo.readings import Reading
from anabranch.cli.demo.replicas import Row
from anabranch.engines.spark.assignment import Assignment
from anabranch.engines.spark.rows_merge import ROWS_SOURCE
from anabranch.engines.spark.shard import Shard
from anabranch.engines.spark.transport import parcel
from anabranch.engines.spark.transport.packing import ROWS, Packing
from anabranch.model.properties import Properties
from anabranch.plan.levels import levels
from anabranch.plan.merge import Merge
from anabranch.plan.source import Source
from anabranch.rows.layout import Layout
from anabranch.rows.reading import Place, read_rows


def warm(truth: Sequence[Reading], said: Mapping[str, Sequence[Row]]) -> None:
    """Let one shard hear in this process what the query will hear."""
    layout = Layout("start", "end", "old_end", kind="kind", replica="replica", payload=("sensor", "value"))
    reads, schema = [], pa.schema([])
    for name, rows in said.items():
        batch = columns(rows)
        replica = pa.array([name] * len(rows)).dictionary_encode()
        whole = batch.append_column("replica", replica)
        schema = whole.schema
        reads.append(read_rows(layout, whole, Place(name)))
    packing = Packing(layout, 1, ROWS, ordered=True, edge=ROWS_SOURCE)
    parcels = [part for _, part in packing.parcels([reads])]
    inputs = (
        Source(
            name=ROWS_SOURCE,
            columns=schema,
            layout=layout,
            replicas=True,
            declared=Properties.of("keyed"),
        ),
    )
    (level,) = levels(Merge(inputs=inputs))
    assignment = Assignment(level)
    shard = Shard(assignment)
    shard.receive([parcel.from_bytes(parcel.to_bytes(part)) for part in parcels])
    Shard.load(assignment, 0, shard.dump())
    relation(truth)
