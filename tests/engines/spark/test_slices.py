"""Parcels in slices: every byte once, in its place, whatever the order of the rows."""

from random import Random

import pyarrow as pa
import pytest
from pyspark.sql import Row

from anabranch.engines.spark.transport.slices import SLICE, sliced, whole_bodies


def rows_of(body: bytes) -> list[Row]:
    values, names, numbers = (column.to_pylist() for column in sliced(pa.py_buffer(body)))
    return [Row(body=v, parcel=p, slice=n) for v, p, n in zip(values, names, numbers, strict=True)]


@pytest.mark.parametrize("size", [1, SLICE - 1, SLICE, SLICE + 1, 3 * SLICE, 3 * SLICE + 7])
def test_a_parcel_is_whole_again_whatever_the_order_of_its_slices(size):
    random = Random(size)
    bodies = [random.randbytes(size), random.randbytes(2 * SLICE), b"small"]
    rows = [row for body in bodies for row in rows_of(body)]
    assert max(len(row.body) for row in rows) <= SLICE
    assert whole_bodies(rows) == bodies
    assert sorted(whole_bodies(random.sample(rows, len(rows)))) == sorted(bodies)


def test_a_parcel_that_no_column_holds_is_refused():
    too_long = pa.foreign_buffer(1, 2**31)  # nobody looks at the bytes
    with pytest.raises(ValueError, match="has at most 2,147,483,647 bytes, this has 2,147,483,648"):
        sliced(too_long)


def test_slices_share_the_bytes_of_their_parcel():
    body = pa.py_buffer(bytes(2 * SLICE))
    values, _, _ = sliced(body)
    assert values.buffers()[2].address == body.address
