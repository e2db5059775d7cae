"""Anabranch on Spark: what a plain PySpark program imports.

from anabranch import spark as ab
"""

from anabranch.connectors.folder import Folder, folder
from anabranch.connectors.folder_sink import write_folder
from anabranch.engines.spark.failure import QueryError, failure
from anabranch.engines.spark.merge import merge
from anabranch.engines.spark.merge_changes import merge_changes
from anabranch.engines.spark.session import prepare, session
from anabranch.engines.spark.status import Status
from anabranch.engines.spark.table import table
from anabranch.engines.spark.watching import status, wait, watch

__all__ = [
    "Folder",
    "QueryError",
    "Status",
    "failure",
    "folder",
    "merge",
    "merge_changes",
    "prepare",
    "session",
    "status",
    "table",
    "wait",
    "watch",
    "write_folder",
]
