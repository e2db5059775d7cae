"""Through Spark Connect a merge, or a plan, is what it is in a session of one's own."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

QUERY = Path(__file__).with_name("connect_query.py")


@pytest.mark.slow
def test_both_doors_the_status_and_a_plan_of_two_levels_work_through_spark_connect(tmp_path):
    command = [sys.executable, str(QUERY), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.strip().splitlines()[-1])
    whole = {"received": 20, "emitted": 10, "rows": 10}
    assert found["frame"] == whole
    assert found["folder"] == whole
    assert found["plan"] == {"received": 20, "rows": 8, "stables": 1}
