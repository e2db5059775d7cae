"""A query between topics in a process of its own, whose JVM is killed by the task that sends a certain row.

usage: killed_kafka_query.py SERVERS FROM TO FOLDER
"""

import os
import signal
import sys
from pathlib import Path

from anabranch import spark as ab


def killing(mark: Path):
    """A pass that kills the JVM it runs under when it sees the row, once: a file says that it was done."""

    def passed(batches):
        for batch in batches:
            if "kill me" in batch.column("word").to_pylist() and not mark.exists():
                mark.touch()
                daemon = os.getppid()
                jvm = int(Path(f"/proc/{daemon}/stat").read_text().rsplit(")", 1)[1].split()[1])
                os.kill(jvm, signal.SIGKILL)
                os.kill(os.getpid(), signal.SIGKILL)
            yield batch

    return passed


def main(servers: str, source: str, out: str, folder: Path) -> None:
    spark = ab.session("local[2]", shards=2, config={"spark.local.dir": str(folder / "local")})
    spark.sparkContext.setLogLevel("OFF")
    feeds = ab.kafka(
        spark, source, servers=servers, schema="at long, v long, word string", rows_per_trigger=100
    )
    merged = ab.merge(feeds, start="at", disorder=5)
    merged = merged.mapInArrow(killing(folder / "killed"), merged.schema)
    query = ab.write_kafka(
        merged, out, servers=servers, checkpoint=folder / "cp", exactly_once=True, available_now=True
    )
    ab.wait(query)


if __name__ == "__main__":
    main(*sys.argv[1:4], Path(sys.argv[4]))
