"""What Spark forks its Python workers from (``spark.python.daemon.module``), with their imports done once.

Spark looks for PySpark in a zip of its own before the one that is installed, and a zip has no compiled files:
that costs each process 0.6 s. Here the installed one is used, where there is one.
"""

import sys
from importlib.machinery import PathFinder


def without_zips(path: list[str]) -> list[str]:
    """The path without Spark's copies of itself, if PySpark is found without them."""
    rest = [place for place in path if not place.endswith(("/python/lib/pyspark.zip", "-src.zip"))]
    return rest if PathFinder.find_spec("pyspark", rest) else path


if __name__ == "__main__":
    sys.path[:] = without_zips(sys.path)

    from pyspark.daemon import manager

    import anabranch.engines.spark.processor
    import anabranch.engines.spark.unpacking  # noqa: F401

    manager()
