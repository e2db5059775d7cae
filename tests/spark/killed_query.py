"""A query in a process of its own, whose JVM is killed in the middle of a micro-batch by one of its workers.

usage: killed_query.py FOLDER WHERE

WHERE is 'before' (rows are being packed), 'after' (the state has been written, the sink has not) or 'never'.
The worker that sees the row 'kill me' sends SIGKILL, once: a file says that it has been done.
"""

import os
import signal
import sys
from pathlib import Path

from anabranch import spark as ab


def killing(mark: Path):
    """A pass that kills the JVM it runs under when it sees the row."""

    def passed(batches):
        for batch in batches:
            if "kill me" in batch.column("value").to_pylist() and not mark.exists():
                mark.touch()
                daemon = os.getppid()
                jvm = int(Path(f"/proc/{daemon}/stat").read_text().rsplit(")", 1)[1].split()[1])
                os.kill(jvm, signal.SIGKILL)
                os.kill(os.getpid(), signal.SIGKILL)
            yield batch

    return passed


def main(folder: Path, where: str) -> None:
    spark = ab.session("local[2]", shards=2, config={"spark.local.dir": str(folder / "local")})
    spark.sparkContext.setLogLevel("OFF")
    schema = "kind string, start long, end long, old_end long, value string, replica string, n long"
    rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    if where == "before":
        rows = rows.mapInArrow(killing(folder / "killed-before"), schema)
    merged = ab.merge(
        rows,
        kind="kind",
        start="start",
        end="end",
        old_end="old_end",
        replica="replica",
        sequence="n",
        case="R3",
    )
    if where == "after":
        merged = merged.mapInArrow(killing(folder / "killed-after"), merged.schema)
    query = ab.write_folder(merged, folder / "out", checkpoint=folder / "checkpoint", available_now=True)
    ab.wait(query)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
