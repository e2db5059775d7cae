"""How long a fresh process takes: help, the first relation of a small file, and Python alone beside them.

./run bench cold_start
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUNS = 11


def median(command: list[str]) -> float:
    """Seconds of wall time, after one run that warms the caches."""
    times = []
    for _ in range(RUNS + 1):
        begin = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append(time.perf_counter() - begin)
    return statistics.median(times[1:])


def main() -> None:
    """Measure and print."""
    command = [sys.executable, "-m", "anabranch.cli.main"]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "small.txt"
        file.write_text("+ a [3, 9)\n| 5\n")
        ways = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "anabranch --help": [*command, "--help"],
            "anabranch show --help": [*command, "show", "--help"],
            "anabranch show small.txt": [*command, "show", str(file)],
        }
        for name, way in ways.items():
            print(f"{name:<26} {median(way):.3f} s")


if __name__ == "__main__":
    main()
