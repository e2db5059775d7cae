"""The same query on other masters: executors in processes of their own, and a standalone cluster."""

import os
import subprocess
import sys
from pathlib import Path
from random import Random

import pyspark
import pytest
from element_rows import meant_by, named, pieces, put, relation_of

from anabranch import Case, difference
from anabranch.testing.presentations import replicas
from anabranch.testing.references import Shape

pytestmark = pytest.mark.slow
PROGRAM = """
import sys
from anabranch import spark as ab

master, place = sys.argv[1:]
spark = ab.session(master, shards=2, config={
    "spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1", "spark.executor.memory": "1g",
})
spark.sparkContext.setLogLevel("OFF")
assert spark.sparkContext.master == master
rows = ab.folder(spark, f"{place}/in", files_per_trigger=2)
merged = ab.merge(
    rows, kind="kind", start="start", end="end", old_end="old_end", replica="replica", case="R3"
)
ab.wait(ab.write_folder(merged, f"{place}/out", checkpoint=f"{place}/checkpoint", available_now=True))
"""


@pytest.fixture
def feeds(tmp_path):
    random = Random(2)
    _, copies = replicas(random, 2, case=Case.R3, shape=Shape(events=40, payloads=15, horizon=60))
    copies = named(copies)
    for name, copy in zip("ab", copies, strict=True):
        for number, part in enumerate(pieces(random, copy, 3)):
            put(tmp_path / "in", name, number, part)
    return copies[0]


def check(master, place, meant):
    command = [sys.executable, "-c", PROGRAM, master, str(place)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert difference(relation_of(place / "out"), meant_by(meant)) is None
    assert not list((place / "out").glob("_quarantine/*"))


def test_executors_of_their_own(tmp_path, feeds):
    check("local-cluster[2,1,1024]", tmp_path, feeds)


@pytest.fixture
def standalone(tmp_path):
    """The address of a cluster of one master and two workers on this machine."""
    home = Path(pyspark.__file__).parent
    settings = {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    environment = os.environ | settings
    started = []

    def start(*arguments, ready):
        command = [str(home / "bin" / "spark-class"), *arguments]
        process = subprocess.Popen(
            command,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            process_group=0,
        )
        started.append(process)
        for line in process.stdout:
            if ready in line:
                return line
        raise AssertionError(f"{arguments[0]} ended before it said {ready!r}")

    master = [
        "org.apache.spark.deploy.master.Master",
        "--host",
        "127.0.0.1",
        "--port",
        "0",
        "--webui-port",
        "0",
    ]
    line = start(*master, ready="Starting Spark master at")
    address = line.split()[-1]
    for number in range(2):
        worker = ["org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "-c", "1", "-m", "1g"]
        folder = ["-d", str(tmp_path / f"worker-{number}"), "--webui-port", "0", address]
        start(*worker, *folder, ready="Successfully registered with master")
    yield address
    for process in reversed(started):
        os.killpg(process.pid, 9)
        process.stdout.close()
        process.wait()


def test_a_standalone_cluster(tmp_path, feeds, standalone):
    check(standalone, tmp_path, feeds)
