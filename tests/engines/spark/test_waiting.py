"""Waiting for a query: Ctrl-C on a terminal stops it in order."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from anabranch import spark as ab

PROGRAM = Path(__file__).with_name("interrupted_query.py")


@pytest.mark.slow
def test_ctrl_c_stops_the_query_and_is_raised_as_it_always_is(tmp_path):
    (tmp_path / "in").mkdir()
    process = subprocess.Popen(
        [sys.executable, str(PROGRAM), str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    said = []
    while not said or said[-1] not in ("waiting\n", ""):
        said.append(process.stdout.readline())
    os.killpg(process.pid, signal.SIGINT)
    out, errors = process.communicate(timeout=300)
    assert said == ["heard 0 in batch -1\n", "ended False False\n", "waiting\n"], errors
    assert out == "active False\n"
    assert process.returncode == -signal.SIGINT
    trace = errors[errors.index("Traceback") :]
    assert trace.splitlines()[-1] == "KeyboardInterrupt"
    assert "py4j" not in trace.lower()


def test_a_program_keeps_its_own_answer_to_ctrl_c(spark, tmp_path):
    rows = spark.readStream.schema("at long, v string").json(str(tmp_path))
    merged = ab.merge(rows, start="at", disorder=5)
    query = ab.write_folder(merged, tmp_path / "out", checkpoint=tmp_path / "checkpoint")
    heard = []

    def own(number, frame):
        heard.append(number)
        query.stop()

    before = signal.signal(signal.SIGINT, own)
    try:
        os.kill(os.getpid(), signal.SIGINT)
        assert ab.wait(query, 60)
        assert heard == [signal.SIGINT]
        assert signal.getsignal(signal.SIGINT) is own
    finally:
        signal.signal(signal.SIGINT, before)
        query.stop()
