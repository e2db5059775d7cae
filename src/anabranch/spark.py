"""Anabranch on Spark: what a plain PySpark program imports.

from anabranch import spark as ab
"""

# isort: off
from anabranch.extras import check_spark

check_spark()
# isort: on

from anabranch.connectors.delta.feeds import DeltaChanges, delta_changes
from anabranch.connectors.files.debezium import Debezium
from anabranch.connectors.folder.sink import write_folder
from anabranch.connectors.folder.source import Folder, folder
from anabranch.connectors.frame import frame
from anabranch.connectors.kafka.cluster import BrokerError, Topic, TopicError
from anabranch.connectors.kafka.formats import Avro
from anabranch.connectors.kafka.sink import write_kafka
from anabranch.connectors.kafka.topics import Kafka, kafka
from anabranch.connectors.tables.sink import write_table
from anabranch.connectors.tables.table_error import TableError
from anabranch.engines.spark.merge import merge
from anabranch.engines.spark.merge_changes import merge_changes
from anabranch.engines.spark.query.failure import QueryError, failure
from anabranch.engines.spark.query.status import Status
from anabranch.engines.spark.query.watch import status, wait, watch
from anabranch.engines.spark.session.session import prepare, session
from anabranch.engines.spark.table import table

__all__ = [
    "Avro",
    "BrokerError",
    "Debezium",
    "DeltaChanges",
    "Folder",
    "Kafka",
    "QueryError",
    "Status",
    "TableError",
    "Topic",
    "TopicError",
    "delta_changes",
    "failure",
    "folder",
    "frame",
    "kafka",
    "merge",
    "merge_changes",
    "prepare",
    "session",
    "status",
    "table",
    "wait",
    "watch",
    "write_folder",
    "write_kafka",
    "write_table",
]
