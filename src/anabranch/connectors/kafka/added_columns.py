"""The columns of the rows of topics: those of the values, and those that are added to them."""

from collections.abc import Iterable, Mapping

import pyarrow as pa

from anabranch.connectors.files.debezium import Debezium
from anabranch.connectors.files.envelope_columns import with_change
from anabranch.connectors.kafka.cluster import Topic
from anabranch.connectors.kafka.descriptions import replicas_named
from anabranch.engines.spark.columns import Columns
from anabranch.engines.spark.session.row_types import Held, with_columns
from anabranch.rows.layout import SINGLE

REPLICA = "replica"
"""The column that holds the name of the replica of each row."""


def topic_columns(
    schema: pa.Schema,
    topics: str | Topic | Iterable[str] | Mapping[str, str | Topic],
    form: str,
    key: str | None,
    timestamp: str | None,
    zone: str,
) -> Columns:
    """The columns that `kafka` gives rows, without Spark; ``zone`` is where times are shown."""
    extra = {"key": key, "timestamp": timestamp, "replica": REPLICA}
    if list(replicas_named(topics)) == [SINGLE]:
        extra["replica"] = None
    change = Debezium() if form == "debezium" else None
    columns = schema if change is None else with_change(schema, change, zone)
    check_apart(columns, extra)
    return Columns(
        with_extra(columns, extra, zone),
        zone,
        is_native=True,
        replica=extra["replica"],
        replicas=() if extra["replica"] is None else tuple(replicas_named(topics)),
        channels=True,
        op=None if change is None else change.op,
    )


def check_apart(columns: Held, extra: Mapping[str, str | None]) -> None:
    """Raise where a column that is added is one of the values."""
    for what, name in extra.items():
        if name is not None and name in columns.names:
            error = ValueError(f"{what} is the column {name!r}, and the values have one of that name")
            error.add_note("Rename the column of the values, or leave it out of the schema.")
            raise error


def with_extra(columns: Held, extra: Mapping[str, str | None], zone: str = "UTC") -> Held:
    """The columns of the values and those that are added: the key, its time in Kafka, the replica."""
    types = {"timestamp": pa.timestamp("us", zone)}
    added = {name: types.get(what, pa.string()) for what, name in extra.items() if name is not None}
    return with_columns(columns, added)
