"""Two collectors hear the same sensors: what they wrote as a stream of elements, and the table it denotes."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from anabranch import Drop
from anabranch import spark as ab

spark = SparkSession.active()
FEED = StructType.fromDDL("sensor string, level double, at timestamp, replica string")


def merged() -> DataFrame:
    """What both collectors wrote as one stream of inserts, adjusts and stables."""
    feed = spark.readStream.schema(FEED).json("in").to(FEED)
    return ab.merge(
        feed,
        replica="replica",
        start="at",
        duration="5 minutes",
        disorder="10 minutes",
        lossy=True,
        properties="keyed",
        on_broken=Drop(),
    )


@dp.table
def elements() -> DataFrame:
    """The merged stream; each run adds rows."""
    return merged()


@dp.materialized_view
def readings() -> DataFrame:
    """The readings that any collector heard, each once."""
    return ab.table(spark.read.table("elements"), schema=merged().schema)
