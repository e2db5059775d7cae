"""No compiled loop of the laws reaches past an array."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent.parent


@pytest.mark.slow
def test_no_loop_reaches_past_an_array(tmp_path):
    settings = {"NUMBA_BOUNDSCHECK": "1", "NUMBA_CACHE_DIR": str(tmp_path), "PYTHONPATH": str(TESTS)}
    done = subprocess.run(
        [sys.executable, "-m", "laws.checked_bounds"],
        env=os.environ | settings,
        cwd=TESTS.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
