"""A state as bytes: plain values and record batches behind a mark with a version.

mark, then the length of the values and the values as JSON, then for each batch its length and itself as an
Arrow stream with compressed buffers; lengths are 8 bytes, little-endian.
"""

import json
from io import BytesIO
from typing import Any

import pyarrow as pa

MARK = b"anabranch-merge-1\n"


def to_bytes(values: dict[str, Any], batches: list[pa.RecordBatch]) -> bytes:
    """Values and batches as bytes."""
    parts = [json.dumps(values, separators=(",", ":")).encode()]
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    for batch in batches:
        sink = BytesIO()
        with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
            writer.write_batch(batch)
        parts.append(sink.getvalue())
    return MARK + b"".join(len(part).to_bytes(8, "little") + part for part in parts)


def from_bytes(data: bytes) -> tuple[dict[str, Any], list[pa.RecordBatch]]:
    """The values and batches that the bytes hold."""
    if not data.startswith(MARK):
        found = data[: len(MARK)]
        error = ValueError(f"the state of a merge begins with {MARK!r}, this begins with {found!r}")
        error.add_note("Load what Merger.dump() gave, with the version that gave it or a later one.")
        raise error
    parts, position = [], len(MARK)
    while position < len(data):
        length = int.from_bytes(data[position : position + 8], "little")
        parts.append(data[position + 8 : position + 8 + length])
        position += 8 + length
    if position != len(data) or not parts:
        error = ValueError(f"the state of a merge ends after {position} bytes, these are {len(data)}")
        error.add_note("The bytes were cut off; load an earlier state, or start the inputs anew.")
        raise error
    values, *streams = parts
    return json.loads(values), [_batch(stream) for stream in streams]


def _batch(stream: bytes) -> pa.RecordBatch:
    with pa.ipc.open_stream(stream) as reader:
        return reader.read_next_batch()
