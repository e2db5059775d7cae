"""A state as bytes: plain values and record batches behind a mark with a version.

After the mark come 16 bytes of digest of all that follows, the length of the values and the values as JSON,
then for each batch its length and itself as an Arrow stream with compressed buffers. Lengths are 8 bytes,
little-endian.
"""

import json
from hashlib import blake2b
from io import BytesIO
from typing import Any

import pyarrow as pa

MARK = b"anabranch-merge-1\n"
_DIGEST = 16


def to_bytes(values: dict[str, Any], batches: list[pa.RecordBatch]) -> bytes:
    """Values and batches as bytes."""
    parts = [json.dumps(values, separators=(",", ":")).encode()]
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    for batch in batches:
        sink = BytesIO()
        with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
            writer.write_batch(batch)
        parts.append(sink.getvalue())
    body = b"".join(len(part).to_bytes(8, "little") + part for part in parts)
    return MARK + _digest(body) + body


def from_bytes(data: bytes) -> tuple[dict[str, Any], list[pa.RecordBatch]]:
    """The values and batches that the bytes hold."""
    if not data.startswith(MARK):
        found = data[: len(MARK)]
        error = ValueError(f"the state of a merge begins with {MARK!r}, this begins with {found!r}")
        error.add_note("Load what Merger.dump() gave, with the version that gave it or a later one.")
        raise error
    begin = len(MARK) + _DIGEST
    if _digest(data[begin:]) != data[len(MARK) : begin]:
        error = ValueError(f"the state of a merge is as it was dumped, these {len(data)} bytes were changed")
        error.add_note("They were cut off or damaged; load an earlier state, or start the inputs anew.")
        raise error
    parts, position = [], begin
    while position < len(data):
        length = int.from_bytes(data[position : position + 8], "little")
        parts.append(data[position + 8 : position + 8 + length])
        position += 8 + length
    values, *streams = parts
    return json.loads(values), [_batch(stream) for stream in streams]


def _digest(body: bytes) -> bytes:
    return blake2b(body, digest_size=_DIGEST).digest()


def _batch(stream: bytes) -> pa.RecordBatch:
    with pa.ipc.open_stream(stream) as reader:
        return reader.read_next_batch()
