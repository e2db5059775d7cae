"""A query that keeps a table, in a process of its own that is killed in the middle of a micro-batch.

usage: killed_table_query.py FOLDER KIND WHERE

WHERE is 'working' (a worker kills the JVM and itself when rows have been merged), 'before' or 'after' (the
driver kills itself before or after the next commit to the table, so before Spark notes it) or 'never'.
"""

import os
import signal
import sys
from pathlib import Path

from anabranch import spark as ab
from anabranch.connectors.tables.delta import DeltaTarget
from anabranch.connectors.tables.table_sink import write_table


def killing(mark: Path):
    """A pass that kills the JVM it runs under, once."""

    def passed(batches):
        for batch in batches:
            if not mark.exists():
                mark.touch()
                jvm = int(Path(f"/proc/{os.getppid()}/stat").read_text().rsplit(")", 1)[1].split()[1])
                os.kill(jvm, signal.SIGKILL)
                os.kill(os.getpid(), signal.SIGKILL)
            yield batch

    return passed


def killed_at_commit(mark: Path, where: str) -> None:
    """Let the next commit be the last thing that happens, or the first that does not."""
    commit = DeltaTarget._commit

    def deadly(self, table, changes, batch):
        if where == "after":
            commit(self, table, changes, batch)
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)

    DeltaTarget._commit = deadly


def main(folder: Path, kind: str, where: str) -> None:
    spark = ab.session("local[2]", shards=2, config={"spark.local.dir": str(folder / "local")})
    spark.sparkContext.setLogLevel("OFF")
    rows = ab.folder(spark, folder / "in", files_per_trigger=2)
    merged = ab.merge(
        rows, kind="kind", start="start", end="end", old_end="old_end", replica="replica", case="R4"
    )
    mark = folder / f"killed-{where}"
    if where == "working":
        merged = merged.mapInArrow(killing(mark), merged.schema)
    elif where != "never":
        killed_at_commit(mark, where)
    key = ("sensor",) if kind == "current" else ()
    query = write_table(
        merged, folder / "table", kind=kind, key=key, checkpoint=folder / "checkpoint", available_now=True
    )
    ab.wait(query)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3])
