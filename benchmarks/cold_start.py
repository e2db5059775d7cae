"""CPU seconds of a fresh process: help, commands over two small files, merges that compile and that do not.

./run bench cold_start
"""

import os
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

RUNS = 5
MERGE = ("--start", "at", "--duration", "5 minutes", "--disorder", "1 minute", "--lossy", "all", "-o")


def seconds(command: list[str], cache: Path) -> float:
    """Seconds of CPU, user and system, of one process; ``cache`` is where Numba keeps what it compiles."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    env = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    subprocess.run(command, check=False, capture_output=True, env=env)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    """Measure and print: the first start over an empty cache, and the median of later ones."""
    command = [sys.executable, "-m", "anabranch.cli.main"]
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        a, b, large, larger = (str(place / f"{name}.txt") for name in ("a", "b", "large", "larger"))
        Path(a).write_text("+ a [3, 9)\n| 5\n")
        Path(b).write_text("+ a [3, 9)\n+ b [4, 8)\n| 9\n")
        for path, count in ((large, 5_000), (larger, 50_000)):
            Path(path).write_text("".join(f"+ a{n} [{n}, {n + 5})\n" for n in range(count)) + "| 90000\n")
        rows = [str(place / name) for name in ("north.csv", "south.csv")]
        for name in rows:
            Path(name).write_text("room,at\nA,2026-11-19 06:00:00\nB,2026-11-19 06:01:00\n")
        ways = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "import numba": [sys.executable, "-c", "import numba"],
            "import pyarrow.compute": [sys.executable, "-c", "import pyarrow.compute"],
            "anabranch --help": [*command, "--help"],
            "anabranch show, 2 elements": [*command, "show", a],
            "anabranch diff, 2 and 3": [*command, "diff", a, b],
            "anabranch merge, 2 and 3": [*command, "merge", a, b],
            "anabranch merge, 2 CSV of 2": [*command, "merge", *rows, *MERGE, str(place / "out.parquet")],
            "anabranch diff, 2 and 5,000": [*command, "diff", a, large],
            "anabranch merge, 2 and 5,000": [*command, "merge", a, large],
            "anabranch merge, 2 and 50,000": [*command, "merge", a, larger],
        }
        print(f"{'seconds of CPU':<30} first  later")
        for number, (name, way) in enumerate(ways.items()):
            first = seconds(way, place / f"cache-{number}")
            later = [seconds(way, place / f"cache-{number}") for _ in range(RUNS)]
            print(f"{name:<30} {first:5.2f}  {statistics.median(later):5.2f}")


if __name__ == "__main__":
    main()
