"""Schemas as text are read without Spark as Spark reads them, or not at all."""

import pytest

from anabranch.engines.spark.session.ddl import UnknownTypeError, columns_of_ddl
from anabranch.engines.spark.session.row_types import arrow_schema

TEXTS = [
    "sensor string, at timestamp, level double",
    "a int, b: bigint, `c d` string not null, e decimal(10, 2), f decimal, g DECIMAL(7)",
    "x array<struct<a: int, b: map<string, array<double>>>>, y timestamp_ntz, z binary",
    "a STRING COMMENT 'it''s', b date not null comment 'b', c boolean, d smallint, e tinyint, f float",
    "s struct<a int, b string not null>, t struct<`a b`: long>",
    "a byte, b short, c integer, d long, e real, f timestamp_ltz, g map<int, timestamp>, h array<timestamp>",
]


def test_a_schema_is_read_as_spark_reads_it(spark):
    from pyspark.sql.types import StructType

    for text in TEXTS:
        found, theirs = columns_of_ddl(text, "Asia/Tokyo"), StructType.fromDDL(text)
        assert found is None or found.equals(arrow_schema(theirs, "Asia/Tokyo"))


@pytest.mark.parametrize("text", TEXTS[:3])
def test_usual_schemas_are_read_without_spark(text):
    assert columns_of_ddl(text, "UTC") is not None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "a int b int",
        "a int,",
        "a ???",
        "a char(3)",
        "a array<int",
        "a decimal(50)",
        "a decimal(x)",
        "a decimal(2, 3)",
    ],
)
def test_what_is_not_understood_is_left_to_spark(text):
    assert columns_of_ddl(text, "UTC") is None


def test_a_word_that_is_no_type_is_refused_with_the_one_that_is_meant():
    with pytest.raises(UnknownTypeError, match="'strng' is no type of Spark's, did you mean 'string'"):
        columns_of_ddl("sensor strng, at timestamp", "UTC")
