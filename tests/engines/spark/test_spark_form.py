"""The types in which Spark hands columns to Python are known without it, and are those that Spark says."""

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import from_arrow_schema

from anabranch.engines.spark.session.row_types import arrow_schema, in_spark_form, with_columns

ZONE = "Asia/Tokyo"
PLAIN = [
    pa.bool_(),
    pa.int8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.float32(),
    pa.float64(),
    pa.string(),
    pa.large_string(),
    pa.binary(),
    pa.large_binary(),
    pa.binary(16),
    pa.date32(),
    pa.timestamp("ns"),
    pa.timestamp("s", "UTC"),
    pa.timestamp("ms", "Europe/Paris"),
    pa.time64("us"),
    pa.duration("s"),
    pa.decimal128(12, 2),
    pa.decimal256(12, 2),
    pa.dictionary(pa.int32(), pa.large_string()),
]
NESTED = [
    wrap(dtype)
    for dtype in (pa.large_string(), pa.timestamp("ns", "UTC"), pa.list_(pa.timestamp("s")))
    for wrap in (
        pa.list_,
        pa.large_list,
        lambda dtype: pa.list_(dtype, 3),
        lambda dtype: pa.list_(pa.field("item", dtype, nullable=False)),
        lambda dtype: pa.map_(pa.string(), dtype),
        lambda dtype: pa.map_(pa.string(), pa.field("value", dtype, nullable=False)),
        lambda dtype: pa.struct([pa.field("a", dtype, nullable=False), pa.field("b", dtype)]),
    )
]


@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize("dtype", [*PLAIN, *NESTED], ids=str)
def test_a_column_has_the_type_in_which_spark_hands_it_to_python(dtype, nullable):
    columns = pa.schema([pa.field("v", dtype, nullable)])
    assert in_spark_form(columns, ZONE).equals(arrow_schema(from_arrow_schema(columns), ZONE))


def test_a_column_of_nulls_has_no_other_type_on_spark():
    columns = pa.schema([("v", pa.null())])
    assert in_spark_form(columns, ZONE).equals(arrow_schema(from_arrow_schema(columns), ZONE))


def test_a_type_that_spark_has_not_stays_as_it_is():
    columns = pa.schema([("n", pa.uint64()), ("t", pa.time32("s")), ("d", pa.decimal256(50, 2))])
    assert in_spark_form(columns, ZONE) == columns


def test_columns_are_added_alike_to_columns_of_arrow_and_of_spark():
    columns = pa.schema([pa.field("v", pa.int64(), nullable=False)])
    added = {"op": pa.string(), "time": pa.timestamp("us", ZONE), "version": pa.int64()}
    of_spark = with_columns(from_arrow_schema(columns), added)
    assert with_columns(columns, added).equals(arrow_schema(of_spark, ZONE))
