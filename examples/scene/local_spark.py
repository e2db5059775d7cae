"""A Spark for a minute, which leaves nothing behind."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from anabranch import spark as ab
from anabranch.engines.spark.session.jvm import SHORT_LIVED, end_jvm

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

JAVA = "spark.driver.extraJavaOptions"


@contextmanager
def local_spark(place: Path) -> Iterator["SparkSession"]:
    """A session whose files, and what it says, are in a folder."""
    config = {
        **SHORT_LIVED,
        JAVA: f"{SHORT_LIVED[JAVA]} -Djava.io.tmpdir={place}",
        "spark.local.dir": str(place / "local"),
        "spark.sql.warehouse.dir": str(place / "warehouse"),
    }
    try:
        yield ab.session("local[2]", shards=2, config=config, log=place / "spark.log")
    finally:
        end_jvm()
