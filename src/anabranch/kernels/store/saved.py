"""States as bytes: named sections of plain values and record batches, behind one mark with a version.

After the mark come 16 bytes of digest of all that follows, the length of the head (8 bytes, little-endian)
and the head as JSON: of each section its name, its version, and how many bytes its values and each of its
batches have. Then these, in that order: values as JSON, a batch as an Arrow stream with compressed buffers.
"""

import json
from collections.abc import Mapping
from hashlib import blake2b
from io import BytesIO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from anabranch.errors import AnabranchError
from anabranch.kernels.kernel import State

MARK = b"anabranch-state-2\n"
_OLDER = (b"anabranch-merge-1\n", b"anabranch-shard-1\n")
_DIGEST = 16
_LENGTH = 8


class StateFormatError(AnabranchError, ValueError):
    """State that this version cannot read."""


def to_bytes(sections: Mapping[str, State]) -> bytes:
    """States by name as bytes."""
    head, body = [], []
    for name, state in sections.items():
        values = json.dumps(state.values, separators=(",", ":")).encode()
        batches = [_stream(batch) for batch in state.batches]
        head.append([name, state.version, len(values), [len(batch) for batch in batches]])
        body += [values, *batches]
    text = json.dumps({"sections": head}, separators=(",", ":")).encode()
    whole = b"".join([len(text).to_bytes(_LENGTH, "little"), text, *body])
    return MARK + _digest(whole) + whole


def from_bytes(data: bytes) -> dict[str, State]:
    """The states that bytes hold, by name."""
    _check(data)
    position = len(MARK) + _DIGEST + _LENGTH

    def cut(length: int) -> bytes:
        nonlocal position
        position += length
        return data[position - length : position]

    head = json.loads(cut(int.from_bytes(data[position - _LENGTH : position], "little")))
    return {
        name: State(version, json.loads(cut(values)), [_batch(cut(length)) for length in batches])
        for name, version, values, batches in head["sections"]
    }


def version_of(state: State, known: int, what: str) -> State:
    """A state of the version that is known; a `StateFormatError` where it is of another."""
    if state.version != known:
        error = StateFormatError(
            f"the state of {what} has version {known}, this was written as version {state.version}"
        )
        error.add_note("Load it with the version that wrote it, or start the inputs anew.")
        raise error
    return state


def columns_of(cells: NDArray[np.int64]) -> pa.RecordBatch:
    """Rows of int64 cells as Arrow data, one column per cell."""
    names = [str(column) for column in range(cells.shape[1])]
    columns = [pa.array(np.ascontiguousarray(cells[:, column])) for column in range(cells.shape[1])]
    return pa.RecordBatch.from_arrays(columns, names=names)


def matrix_of(columns: pa.RecordBatch) -> NDArray[np.int64]:
    """The rows of cells that were written as Arrow data."""
    cells = np.empty((columns.num_rows, columns.num_columns), np.int64)
    for place, column in enumerate(columns.columns):
        cells[:, place] = column.to_numpy()
    return cells


def _check(data: bytes) -> None:
    """Raise where bytes are not a state as it was written."""
    older = next((mark for mark in _OLDER if data.startswith(mark)), None)
    if older is not None:
        error = StateFormatError(
            f"a state begins with {MARK!r}, this begins with {older!r}, the mark of an older version"
        )
        error.add_note("Load it with the version that wrote it, or start the inputs anew (a new checkpoint).")
        raise error
    if not data.startswith(MARK):
        error = StateFormatError(f"a state begins with {MARK!r}, this begins with {data[: len(MARK)]!r}")
        error.add_note("Load what dump() gave, with the version that gave it or a later one.")
        raise error
    begin = len(MARK) + _DIGEST
    if _digest(data[begin:]) != data[len(MARK) : begin]:
        error = StateFormatError(f"a state is as it was dumped, these {len(data)} bytes were changed")
        error.add_note("They were cut off or damaged; load an earlier state, or start the inputs anew.")
        raise error


def _digest(body: bytes) -> bytes:
    return blake2b(body, digest_size=_DIGEST).digest()


def _stream(batch: pa.RecordBatch) -> bytes:
    sink = BytesIO()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def _batch(stream: bytes) -> pa.RecordBatch:
    with pa.ipc.open_stream(stream) as reader:
        return reader.read_next_batch()
