"""Run one system on one job and print what it took: python -m peers.measure MODULE FOLDER A|B time|memory."""

import gc
import json
import sys
from importlib import import_module
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage


def cpu() -> float:
    """Seconds that this process and its children have computed."""
    return sum(use.ru_utime + use.ru_stime for use in map(getrusage, (RUSAGE_SELF, RUSAGE_CHILDREN)))


def high_water() -> int:
    """Peak resident memory of this process in KiB (getrusage would carry over the parent's)."""
    status = Path("/proc/self/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM")))


def main(module: str, folder: str, job: str, what: str) -> None:
    """Do the job on little data, so that all is loaded and compiled, and then measure it."""
    system = import_module(f"peers.{module}")
    revised = job == "B"
    system.prepare(Path(folder, "little", job), revised, list)()
    run = system.prepare(Path(folder, "all", job), revised, list if what == "time" else iter)
    gc.collect()
    gc.freeze()
    peak, computed = high_water(), cpu()
    rows, ends = run()
    seconds, mib = cpu() - computed, (high_water() - peak) >> 10
    print(json.dumps({"rows": rows, "ends": ends, "seconds": seconds, "mib": mib}))


if __name__ == "__main__":
    main(*sys.argv[1:])
