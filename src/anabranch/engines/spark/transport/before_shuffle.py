"""Steps that run where rows are read: what is made of payloads before rows are dealt out.

How far a source has come, and who spoke, is known from all of its rows, whatever steps make of them.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.engines.spark.transport.parcel import NO_PAYLOAD
from anabranch.kernels.kernel import Refused, Step
from anabranch.model.batch import Batch, Kind
from anabranch.model.origin import Origin
from anabranch.rows.reading import Read
from anabranch.rows.refusal import Refusal

if TYPE_CHECKING:
    from anabranch.engines.spark.transport.packing import Packing


def steps_to_bytes(steps: Sequence[Step], told: Any) -> bytes:
    """Steps, and how what they refuse is told, as bytes that travel to executors."""
    from pyspark import cloudpickle

    return bytes(cloudpickle.dumps((tuple(steps), told))) if steps else b""  # type: ignore[no-untyped-call]


def stepped(
    reads: Sequence[Read], packing: "Packing", refused: list[Refusal] | None
) -> tuple[NDArray[np.int32], list[pa.RecordBatch]]:
    """Of each row where its payload is after the steps, or NO_PAYLOAD, and the payloads."""
    from pyspark import cloudpickle

    steps, told = cloudpickle.loads(packing.steps)
    places, payloads, held = [], [], 0
    for read in reads:
        events = np.flatnonzero(read.batch.kind <= Kind.ADJUST)
        batch, left_out = mapped(steps, read.batch.take(events).with_origin(Origin(events)))
        if refused is not None:
            refused += [one for group in left_out for one in told.of_read(group, read)]
        assert batch.origin is not None, "steps keep the origins of rows"
        place = np.full(len(read.batch), NO_PAYLOAD, np.int32)
        place[batch.origin.number] = np.arange(held, held + len(batch))
        places.append(place)
        payloads.append(batch.payload)
        held += len(batch)
    return np.concatenate(places), payloads


def mapped(steps: Sequence[Step], batch: Batch) -> tuple[Batch, list[Refused]]:
    """What steps make of events, one after the other, and what they refuse."""
    refused: list[Refused] = []
    for step in steps:
        result = step.map(batch)
        refused += result.refused
        batch = result.events
    return batch, refused
