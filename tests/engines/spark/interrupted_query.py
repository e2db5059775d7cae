"""A program that waits for a query that goes on; it says 'waiting' when it may be interrupted.

usage: interrupted_query.py FOLDER
"""

import signal
import sys
from pathlib import Path
from threading import Thread

from anabranch import spark as ab


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def tell(before: object) -> None:
    """Say that the program waits, as soon as it has an answer to Ctrl-C."""
    while signal.getsignal(signal.SIGINT) is before:
        pass
    say("waiting")


def main(folder: Path) -> None:
    spark = ab.session("local[2]", shards=1, config={"spark.local.dir": str(folder / "local")})
    spark.sparkContext.setLogLevel("OFF")
    rows = spark.readStream.schema("at long, v string").json(str(folder / "in"))
    merged = ab.merge(rows, start="at", disorder=5)
    query = ab.write_folder(merged, folder / "out", checkpoint=folder / "checkpoint")
    query.processAllAvailable()
    status = ab.status(query)
    say(f"heard {status.received['insert']} in batch {status.batch}")
    say(f"ended {ab.wait(query, 0.01)} {ab.wait(query, 0)}")
    Thread(target=tell, args=(signal.getsignal(signal.SIGINT),), daemon=True).start()
    try:
        ab.wait(query)
    finally:
        say(f"active {query.isActive}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
