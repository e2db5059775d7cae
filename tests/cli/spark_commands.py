"""Commands that start Spark in a process of their own, as a person does; jobs in a session that is there."""

import os
import select
import subprocess
import sys
import time
from pathlib import Path

from anabranch.cli.main import command_line
from anabranch.cli.run_spark import run_in
from anabranch.jobs.beforehand import check_job
from anabranch.jobs.job_file import read_job

COMMAND = [sys.executable, "-m", "anabranch.cli.main"]
MINUTES = 240


def run(*arguments: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        cwd=cwd,
        env=os.environ | env,
        capture_output=True,
        text=True,
        timeout=MINUTES,
        check=False,
    )


def start(*arguments: str, cwd: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run_job(spark, *arguments: str) -> int:
    """What ``anabranch run`` does when its Spark has started, on the session that the tests share."""
    options = command_line().parse_args(["run", *arguments])
    job = read_job(options.file)
    check_job(job)
    job.checkpoint.mkdir(parents=True, exist_ok=True)
    return run_in(job, spark, options)


def descendants(process: int) -> set[int]:
    """All processes that one started, and those they started."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
    found = {process}
    while new := {child for child, parent in parents.items() if parent in found} - found:
        found |= new
    return found - {process}


def are_gone(processes: set[int], seconds: float = 20) -> bool:
    """None of the processes is there any more, or will be in a moment; a defunct one is gone."""
    until = time.monotonic() + seconds
    for number in processes:
        try:
            process = os.pidfd_open(number)
        except ProcessLookupError:
            continue
        ended, _, _ = select.select([process], [], [], max(until - time.monotonic(), 0))
        os.close(process)
        if not ended:
            return False
    return True
