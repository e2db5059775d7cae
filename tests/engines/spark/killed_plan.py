"""The query of a plan, until it has read all there is; it may be killed and started again.

usage: killed_plan.py FOLDER NAME
"""

import sys
from pathlib import Path

TESTS = Path(__file__).parents[2]
sys.path.insert(0, str(TESTS))

from engines.spark.plan_shapes import PLANS, Feed, run  # noqa: E402

from anabranch import spark as sp  # noqa: E402
from anabranch.engines.spark.session.jvm import SHORT_LIVED  # noqa: E402

if __name__ == "__main__":
    folder, name = Path(sys.argv[1]), sys.argv[2]
    make, sources = PLANS[name]
    session = sp.session(
        "local[2]", shards=2, config={**SHORT_LIVED, "spark.local.dir": str(folder / "local")}
    )
    session.sparkContext.setLogLevel("OFF")
    run(sp.frame(make(), Feed(folder, sources).frames(session)), folder)
    session.stop()
