"""A table of a pipeline that is a plan of two levels: what both collectors heard, by sensor."""

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

import anabranch as ab
from anabranch import spark as sp

spark = SparkSession.active()
FEED = StructType.fromDDL("sensor string, level double, at timestamp, replica string")
COLUMNS = {"sensor": "string", "level": "float64", "at": "timestamp[us, tz=UTC]", "replica": "string"}


def plan() -> ab.Stream:
    """Merged by all columns, sorted out by sensor."""
    feed = ab.source(
        "feed",
        COLUMNS,
        start="at",
        duration="5 minutes",
        disorder="10 minutes",
        replica="replica",
        lossy=True,
        properties="keyed",
    )
    return feed.merge(on_broken=ab.Drop()).select("sensor").final()


@dp.table
def heard() -> DataFrame:
    """What is final, as elements; each run adds rows."""
    return sp.frame(plan(), {"feed": spark.readStream.schema(FEED).json("in").to(FEED)})
