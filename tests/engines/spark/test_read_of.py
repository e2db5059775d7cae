"""What a plan reads on Spark is judged by its columns before anything is read, with no session."""

import pyarrow as pa
import pytest
from pyspark.sql.types import LongType, StringType, StructField, StructType, VariantType

from anabranch import source
from anabranch.engines.spark.columns import Columns
from anabranch.engines.spark.plan_sources import check_readable, read_of
from anabranch.engines.spark.planned_query import query_of_columns
from anabranch.engines.spark.session.row_types import arrow_schema
from anabranch.model.schema import SchemaError

COLUMNS = {"at": "int64", "who": "string", "v": "string"}
SPARK = StructType(
    [
        StructField("at", LongType()),
        StructField("who", StringType()),
        StructField("v", StringType(), True, {"comment": "a value"}),
    ]
)


def replicas(columns=COLUMNS, **more):
    return source("rows", columns, start="at", replica="who", lossy=False, disorder=1, **more)


def native(schema=SPARK, **more):
    return Columns(arrow_schema(schema, "UTC"), "UTC", is_native=True, struct=schema, **more)


@pytest.mark.parametrize("how", ["of the source", "in a column"])
def test_a_case_that_needs_one_order_is_not_forced_on_several_channels(how):
    named = {"channel": "v", "payload": "v"} if how == "in a column" else {}
    given = native(channels=how == "of the source")
    plan = replicas(**named).merge(case="R1")
    with pytest.raises(ValueError, match="R1 is forced, and needs the rows of a replica in one order"):
        query_of_columns(plan, {"rows": given})
    query_of_columns(replicas(**named).merge(case="R3"), {"rows": given})
    query_of_columns(replicas().merge(case="R1"), {"rows": native()})


def test_variants_do_not_tell_events_apart():
    schema = StructType([*SPARK.fields[:2], StructField("v", VariantType())])
    held = pa.schema([("at", pa.int64()), ("who", pa.string()), _variant()])
    with pytest.raises(SchemaError, match="has one form for each value, column 'v'"):
        query_of_columns(replicas(held).merge(), {"rows": native(schema)})
    with_id = StructType([*schema.fields, StructField("id", LongType())])
    plan = replicas(held.append(pa.field("id", pa.int64()))).merge(identity="id")
    query_of_columns(plan, {"rows": native(with_id)})


def _variant() -> pa.Field:
    from pyspark.sql.pandas.types import to_arrow_schema

    return to_arrow_schema(StructType([StructField("v", VariantType())])).field("v")


def test_a_source_that_never_sends_a_stable_needs_a_bound_on_disorder():
    schema = StructType([*SPARK.fields, StructField("op", StringType())])
    given, columns = native(schema, op="op"), COLUMNS | {"op": "string"}
    words = {"start": "at", "op": "op", "key": "v", "replica": "who"}
    endless = source("rows", columns, **words)
    with pytest.raises(ValueError, match="disorder where its source never says stable"):
        query_of_columns(endless.merge(), {"rows": given})
    query_of_columns(source("rows", columns, **words, disorder=1).merge(), {"rows": given})


def test_columns_of_the_output_are_those_of_the_source_as_spark_has_them():
    schema = query_of_columns(replicas().merge(), {"rows": native()}).schema()
    assert schema["v"] == SPARK["v"]


def test_replicas_that_a_source_knows_are_awaited_and_others_are_refused():
    given = native(replica="who", replicas=("east", "west"))
    assert read_of(replicas().node, given).source.awaited == ("east", "west")
    assert read_of(replicas(replicas=["west"]).node, given).source.awaited == ("west",)
    with pytest.raises(ValueError, match="idle names replica 'wset', and its source has"):
        read_of(replicas(idle=["wset"]).node, given)


def test_a_path_is_no_frame_and_the_error_says_what_reads_one():
    with pytest.raises(TypeError, match="'rows' is read from a DataFrame") as caught:
        check_readable("rows", "in")
    assert "ab.folder(spark, 'in')" in caught.value.__notes__[0]
