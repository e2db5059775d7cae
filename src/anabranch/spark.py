"""Anabranch on Spark: what a plain PySpark program imports.

from anabranch import spark as ab
"""

from anabranch.engines.spark.failure import QueryError, failure
from anabranch.engines.spark.merge import merge
from anabranch.engines.spark.session import prepare, session
from anabranch.engines.spark.status import Status

__all__ = ["QueryError", "Status", "failure", "merge", "prepare", "session"]
