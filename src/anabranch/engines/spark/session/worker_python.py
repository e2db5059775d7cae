"""The Python that Spark starts for its workers.

Spark looks for PySpark in a zip of its own before the one that is installed, and a zip has no compiled files:
that costs each process half a second, and a first query starts ten of them, one after the other. So on this
machine they are started by a script that takes the zips off the path, if PySpark is found without them.
"""

import os
import sys
from importlib.machinery import PathFinder
from pathlib import Path

NAMED = "PYSPARK_PYTHON"
"""Not the setting spark.pyspark.python: in a session of this process the variable decides."""
OWN = "ANABRANCH_PYTHON"
SCRIPT = str(Path(__file__).with_suffix(".sh"))


def name_worker_python(master: str) -> None:
    """Say which Python the workers of a session run in, unless the user has said it."""
    if os.environ.get(NAMED, SCRIPT) == SCRIPT:
        os.environ[NAMED] = SCRIPT if _can_use_script(master) else sys.executable


def _can_use_script(master: str) -> bool:
    from pyspark import SparkContext

    runs = SparkContext._gateway is not None or "PYSPARK_GATEWAY_PORT" in os.environ
    if runs and OWN not in os.environ:  # a JVM that runs hands on the variables it was started with
        return False
    os.environ[OWN] = sys.executable
    here = master.startswith("local") and not master.startswith("local-cluster")
    can_run = os.name == "posix" and os.access(SCRIPT, os.X_OK)
    return here and can_run and _comes_with_spark() and is_found_without_zips(sys.path)


def _comes_with_spark() -> bool:
    """The Spark that is started is the one of the installed PySpark, not another in SPARK_HOME."""
    import pyspark
    from pyspark.find_spark_home import _find_spark_home

    return Path(_find_spark_home()).resolve() == Path(pyspark.__file__).resolve().parent


def is_found_without_zips(path: list[str]) -> bool:
    """PySpark is installed, and not only in the zips that come with Spark."""
    rest = [place for place in path if not place.endswith(("/python/lib/pyspark.zip", "-src.zip"))]
    return all(PathFinder.find_spec(name, rest) for name in ("pyspark", "py4j"))
