"""Plans whose process is killed in the middle of micro-batches give what they would have given."""

import json
import os
import select
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from element_rows import relation_of
from engines.spark.plan_shapes import PLANS, Feed, bag
from survival.killing import ARMED, TESTS
from survival.places import ADDRESS

PROGRAM = Path(__file__).with_name("killed_plan.py")
KILLS = [("merged", 1), ("committed", 2)]
"""Where it is struck: a level has put state that Spark has not written; the sink is ahead of Spark."""


SLOW = ("diamond", "windows over a join")


@pytest.mark.parametrize(
    "name", ["several levels", *(pytest.param(one, marks=pytest.mark.slow) for one in SLOW)]
)
def test_a_plan_that_is_killed_gives_what_it_would_have_given(tmp_path, name):
    make, sources = PLANS[name]
    feed = Feed(tmp_path, sources, parts=4)
    for _ in range(4):
        feed.put()
    for place, batch in KILLS:
        killed_at(place, batch, tmp_path, name)
    assert started(tmp_path, name).wait() == 0, (tmp_path / "log").read_text()[-2000:]
    assert bag(relation_of(tmp_path / "out")) == feed.meant(make())


def killed_at(place: str, batch: int, folder: Path, name: str) -> None:
    """Start the query, and kill all its processes where one of them says that it has come to the place."""
    with socket.socket(socket.AF_UNIX) as server:
        (folder / "s").unlink(missing_ok=True)
        server.bind(str(folder / "s"))
        server.listen()
        process = started(folder, name)
        while True:
            with os.fdopen(os.pidfd_open(process.pid)) as ended:
                ready, _, _ = select.select([server, ended], [], [])
            assert server in ready, "it ended before it came to the place"
            line, _ = server.accept()
            with line, line.makefile() as words:
                said = json.loads(words.readline())
                if (said["place"], said["batch"]) == (place, batch):
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
                    return
                line.sendall(b"+")


def started(folder: Path, name: str) -> subprocess.Popen:
    """The query of a plan in a process of its own, whose workers say where they are."""
    path = os.pathsep.join([str(ARMED), str(TESTS), *filter(None, [os.environ.get("PYTHONPATH")])])
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, str(PROGRAM), str(folder), name],
            env=os.environ | {ADDRESS: str(folder / "s"), "PYTHONPATH": path},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
