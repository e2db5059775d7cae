"""``[source.kafka]`` and ``[sink.kafka]``: topics as ends of a job."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import field

from anabranch.jobs.sections import Names, Section, one_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.types import StructType

    from anabranch.connectors.kafka.cluster import Topic
    from anabranch.connectors.kafka.embedded import TopicFeeds
    from anabranch.connectors.kafka.topics import Kafka
    from anabranch.engines.spark.columns import Columns
    from anabranch.jobs.job import Job

Config = dict[str, str | int | float | bool]
VALUES = ("json", "arrow", "avro", "debezium")


class TopicSection(Section):
    """A topic of a cluster of its own."""

    name: str
    servers: str
    config: Config = field(default_factory=dict)


class KafkaSourceSection(Section):
    """``[source.kafka]``: one topic, or several that are replicas."""

    topics: str | list[str] | dict[str, str | TopicSection]
    servers: str | None = None
    values: str = "json"
    avro_schema: str | None = None
    """The file of the schema of the values, where they are avro."""
    avro_schemas: dict[str, str] = field(default_factory=dict)
    """Files of schemas by their numbers in a registry."""
    key: str | None = None
    timestamp: str | None = None
    zone: str | None = None
    """The time zone of texts of times that name none; None: that of the Spark session."""
    begin: Any = "earliest"
    patience: str | None = None
    config: Config = field(default_factory=dict)

    def check(self) -> None:
        """Raise where keys do not go together."""
        one_of("[source.kafka] values", self.values, dict.fromkeys(VALUES))
        if (self.values == "avro") != bool(self.avro_schema or self.avro_schemas):
            error = ValueError("[source.kafka] values are avro where a schema is given, and only there")
            error.add_note('Write values = "avro" with avro_schema = "reading.avsc".')
            raise error
        names = self._names()
        if not names or "" in names:
            error = ValueError(f"[source.kafka] topics names at least one topic, and it is {self.topics!r}")
            error.add_note('Write topics = { east = "readings-east", west = "readings-west" }.')
            raise error
        if self.servers is None and any(isinstance(one, str) for one in self._given()):
            error = ValueError(f"a cluster is known by its servers, and topic {names[0]!r} has none")
            error.add_note('Write servers = "host:9092" in [source.kafka], or give each topic its own.')
            raise error

    def _given(self) -> list[str | TopicSection]:
        topics = self.topics
        if isinstance(topics, str):
            return [topics]
        return list(topics.values() if isinstance(topics, dict) else topics)

    def _names(self) -> list[str]:
        return [one if isinstance(one, str) else one.name for one in self._given()]

    def rows(self, job: Job, spark: SparkSession, schema: StructType | str, limit: int | None) -> Kafka:
        """What is merged."""
        from anabranch import spark as ab

        given: dict[str, Any] = {"rows_per_trigger": limit, "patience": self.patience}
        return ab.kafka(
            spark,
            self._topics(),
            schema=schema,
            servers=self.servers,
            format=self._format(job) if self.values == "avro" else self.values,
            key=self.key,
            timestamp=self.timestamp,
            zone=self.zone,
            start=self.begin,
            config=settings(self.config),
            **{name: value for name, value in given.items() if value is not None},
        )

    def feeds(self, job: Job) -> TopicFeeds:
        """What a plan in this process reads."""
        from anabranch.connectors.kafka.embedded import kafka

        given: dict[str, Any] = {} if self.patience is None else {"patience": self.patience}
        return kafka(
            self._topics(),
            servers=self.servers,
            format=self._format(job) if self.values == "avro" else self.values,
            key=self.key,
            timestamp=self.timestamp,
            start=self.begin,
            config=settings(self.config),
            **given,
        )

    def _topics(self) -> Any:
        if not isinstance(self.topics, dict):
            return self.topics
        return {name: one if isinstance(one, str) else self._topic(one) for name, one in self.topics.items()}

    def columns(self, job: Job, schema: pa.Schema, zone: str) -> Columns:
        """The columns of its rows, without Spark; files that it names are there."""
        from anabranch.connectors.kafka.added_columns import topic_columns

        for path in (self.avro_schema, *self.avro_schemas.values()):
            if path is not None:
                job.place(path).open().close()
        topics: Any = self.topics
        return topic_columns(schema, topics, self.values, self.key, self.timestamp, zone)

    def asked(self) -> list[Topic]:
        """The topics, each with the cluster where it is."""
        return [
            self._topic(TopicSection(name=one, servers="") if isinstance(one, str) else one)
            for one in self._given()
        ]

    def _topic(self, one: TopicSection) -> Topic:
        from anabranch.connectors.kafka.cluster import Topic

        config = settings({**self.config, **one.config})
        return Topic(one.name, one.servers or self.servers, config)

    def _format(self, job: Job) -> Any:
        from anabranch.connectors.kafka.formats import Avro

        def text(path: str) -> str:
            return job.place(path).read_text(encoding="utf-8")

        one = text(self.avro_schema) if self.avro_schema else None
        return Avro(one, {int(number): text(path) for number, path in self.avro_schemas.items()})

    def __str__(self) -> str:
        topics = self.topics
        names = [topics] if isinstance(topics, str) else list(topics)
        return f"Kafka: {', '.join(names)}"


class KafkaSinkSection(Section):
    """``[sink.kafka]``: the topic that the merged stream is sent to."""

    topic: str
    servers: str
    key: Names | None = None
    values: str = "json"
    exactly_once: bool = False
    config: Config = field(default_factory=dict)

    def check(self) -> None:
        """Raise where a word is not known."""
        one_of("[sink.kafka] values", self.values, dict.fromkeys(("json", "arrow", "debezium")))

    def write(self, merged: DataFrame, quarantine: Path | None, **given: Any) -> StreamingQuery:
        """Start the query."""
        from anabranch import spark as ab

        return ab.write_kafka(
            merged,
            self.topic,
            servers=self.servers,
            key=self.key,
            format=self.values,
            exactly_once=self.exactly_once,
            quarantine=quarantine,
            config=settings(self.config),
            **given,
        )

    def asked(self) -> Topic:
        """The topic, with the cluster where it is."""
        from anabranch.connectors.kafka.cluster import Topic

        return Topic(self.topic, self.servers, settings(self.config))

    def __str__(self) -> str:
        return f"topic {self.topic} at {self.servers}"


def settings(config: Mapping[str, Any]) -> dict[str, str]:
    """Settings of a connection as text."""
    return {key: str(v).lower() if isinstance(v, bool) else str(v) for key, v in config.items()}
