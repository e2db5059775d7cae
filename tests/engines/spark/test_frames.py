"""Rows on their way out of a shard: Spark takes them as they are."""

from datetime import UTC, datetime
from random import Random

import pyarrow as pa
import pytest
from engines.spark.spark_rows import random_rows, same_rows
from pyspark.sql.conversion import PandasToArrowConversion
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructField, StructType
from quick import cases

from anabranch.engines.spark.transport.frames import frame

ZONE = "America/New_York"


def taken(batch: pa.RecordBatch) -> pa.RecordBatch:
    """What Spark's worker makes of a frame."""
    rows = StructType([StructField("_0", from_arrow_schema(batch.schema))])
    found = PandasToArrowConversion.convert(
        [frame(batch)], rows, timezone=ZONE, arrow_cast=True, assign_cols_by_name=True
    )
    return pa.RecordBatch.from_struct_array(found.column(0))


@pytest.mark.parametrize("chunk", range(cases(3)))
def test_types_and_values_are_those_that_were_given(chunk):
    for seed in range(chunk * 20, (chunk + 1) * 20):
        random = random_rows(Random(seed), 9, columns=4)
        types = to_arrow_schema(from_arrow_schema(random.schema), timezone=ZONE)
        batch = pa.RecordBatch.from_arrays(
            [column.cast(field.type) for column, field in zip(random.columns, types, strict=True)],
            types.names,
        )
        assert same_rows(taken(batch), batch), seed


def test_no_value_is_copied():
    nested = pa.array([{"at": datetime(1, 1, 1, tzinfo=UTC), "v": [1.5, None]}] * 3)
    batch = pa.RecordBatch.from_arrays([pa.array(["a", "b", "c"]), nested], names=["text", "nested"])
    for given, found in zip(batch.columns, taken(batch).columns, strict=True):
        addresses = [[buffer and buffer.address for buffer in column.buffers()] for column in (given, found)]
        assert addresses[0] == addresses[1]


def test_a_frame_may_have_no_rows():
    batch = random_rows(Random(1), 2, columns=2).slice(0, 0)
    assert taken(batch).num_rows == 0
