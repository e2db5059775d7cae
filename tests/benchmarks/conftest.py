"""The baselines are found as they are when a benchmark runs: beside it."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
