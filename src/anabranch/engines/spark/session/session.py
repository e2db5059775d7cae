"""A Spark session that plans run well in, and what one that you bring needs."""

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from anabranch.engines.spark.session.jvm import check_java, start_jvm
from anabranch.engines.spark.session.quiet import quiet
from anabranch.engines.spark.session.worker_python import name_worker_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
SHARDS = "spark.sql.shuffle.partitions"

SETTINGS = {
    PROVIDER: ROCKSDB,
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "16384",
    # Else all parcels of a task travel as one: fresh memory, faulted in page by page, in every micro-batch.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(4 << 20),
}
"""What `prepare` sets; all of it may be set while a session runs, and holds for queries started after."""

_BEFORE_START = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "2g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.shuffle.compress": "false",
    "spark.sql.session.timeZone": "UTC",
}


def session(
    master: str = "local[*]",
    *,
    name: str = "anabranch",
    shards: int | None = None,
    config: Mapping[str, str] | None = None,
    log: str | Path | None = None,
) -> "SparkSession":
    """A session with settings that plans run well with; ``config`` has the last word.

    ``shards`` is how many parts the state has and how many tasks work on it, the cores if None. A checkpoint
    keeps the number it was begun with. ``log`` is a file for what Spark and its workers say, which is on
    standard error otherwise; it counts for the first session of a process. Lines that Spark
    logs of every query though nothing is wrong are in neither.
    """
    from pyspark.sql import SparkSession

    check_shards(shards)
    name_worker_python(master)
    check_java()
    local = _BEFORE_START if master.startswith("local") else {}
    settings = {**local, **SETTINGS, **(config or {})}
    if log is not None:
        start_jvm({"spark.master": master, "spark.app.name": name, **settings}, Path(log))
    builder = SparkSession.builder.master(master).appName(name)
    for key, value in settings.items():
        builder = builder.config(key, value)
    made = builder.getOrCreate()
    quiet(made)
    if shards is not None or SHARDS not in (config or {}):
        cores = max(made.sparkContext.defaultParallelism, 1)
        made.conf.set(SHARDS, cores if shards is None else shards)
    return made


def prepare(spark: "SparkSession", *, shards: int | None = None) -> "SparkSession":
    """Set what plans need in a session of your own; queries that run already are not touched."""
    check_shards(shards)
    for key, value in SETTINGS.items():
        spark.conf.set(key, value)
    if shards is not None:
        spark.conf.set(SHARDS, shards)
    return spark


def check_shards(shards: int | None) -> None:
    """Raise where there would be no shard to hold a state."""
    if shards is not None and shards < 1:
        error = ValueError(f"a query has at least 1 shard, and shards is {shards}")
        error.add_note("Leave shards out for one per core.")
        raise error


def tasks_of(spark: "SparkSession") -> int:
    """How many tasks may run at once; through Spark Connect, which does not tell, as many as shards."""
    from pyspark.errors import PySparkAttributeError

    try:
        return int(spark.sparkContext.defaultParallelism)
    except PySparkAttributeError:
        return int(spark.conf.get(SHARDS) or 1)


def shards_of(spark: "SparkSession") -> int:
    """How many shards a level of a plan has in this session; raises where plans cannot run."""
    if spark.conf.get(PROVIDER, "") != ROCKSDB:
        error = ValueError(f"plans keep their state in RocksDB, and {PROVIDER} is not {ROCKSDB}")
        error.add_note(
            "Call anabranch.spark.prepare(spark), or build the session with anabranch.spark.session()."
        )
        raise error
    shards = int(spark.conf.get(SHARDS) or 200)
    if shards >= 200:
        warnings.warn(
            f"{SHARDS} is {shards}, and each state partition costs time in every micro-batch; "
            "anabranch.spark.prepare(spark, shards=N) sets it, about one per core is good",
            stacklevel=3,
        )
    return shards
