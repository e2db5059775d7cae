"""Parcels in slices: rows that a JVM moves as it moves any others.

A value of megabytes is an array of its own to the JVM in each step of its way, fresh memory that is filled
with zeros, then copied to, then collected; rows of 256 kB share pages that are used again.
"""

import os
from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

SLICE = 256 << 10
"""Bytes of a slice."""
MOST = 2**31 - 1
"""Bytes of a parcel: what a column of Arrow's holds that Spark reads."""


def sliced(body: pa.Buffer) -> tuple[pa.Array, pa.Array, pa.Array]:
    """The slices of a parcel, which share its bytes, with the name of the parcel and their numbers."""
    if body.size > MOST:
        error = ValueError(f"a parcel has at most {MOST:,} bytes, this has {body.size:,}")
        error.add_note("Its rows are very wide; have fewer in a parcel (rows_per_parcel).")
        raise error
    count = max(1, -(-body.size // SLICE))
    bounds = np.minimum(np.arange(count + 1, dtype=np.int64) * SLICE, body.size).astype(np.int32)
    values = pa.Array.from_buffers(pa.binary(), count, [None, pa.py_buffer(bounds), body])
    name = int.from_bytes(os.urandom(8), "little", signed=True)
    return values, pa.repeat(pa.scalar(name, pa.int64()), count), pa.array(np.arange(count, dtype=np.int32))


def whole_bodies(rows: Iterable[Any]) -> list[bytes]:
    """The parcels that rows with slices are of, in the order of their first rows."""
    parts: dict[int, list[tuple[int, bytes]]] = {}
    for row in rows:
        parts.setdefault(row.parcel, []).append((row.slice, row.body))
    return [b"".join(body for _, body in sorted(slices, key=lambda one: one[0])) for slices in parts.values()]
