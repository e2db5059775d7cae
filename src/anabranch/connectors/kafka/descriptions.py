"""How topics are described, whatever reads them: which, how their values are written, from when on."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from anabranch.connectors.files.debezium import Debezium
from anabranch.connectors.files.values import Format
from anabranch.connectors.kafka.cluster import Topic
from anabranch.connectors.kafka.formats import Arrow, Avro, Json
from anabranch.model.span import span
from anabranch.model.spelling import did_you_mean
from anabranch.rows.layout import SINGLE

Topics = str | Topic | Iterable[str] | Mapping[str, str | Topic]


def replicas_named(topics: Topics) -> dict[str, Topic]:
    """The topic of each replica; of one that is alone, under the name of rows that nobody tells apart."""

    def as_topic(topic: str | Topic) -> Topic:
        return Topic(topic) if isinstance(topic, str) else topic

    if isinstance(topics, str | Topic):
        return {SINGLE: as_topic(topics)}
    named = dict(topics) if isinstance(topics, Mapping) else {name: name for name in topics}
    if not named:
        raise ValueError("there is at least one topic, none is given")
    return {str(name): as_topic(topic) for name, topic in named.items()}


def topics_named(topics: Topics, servers: str | None, config: Mapping[str, str] | None) -> dict[str, Topic]:
    """The topic of each replica with the cluster where it is, and all settings."""
    whole = {}
    for name, topic in replicas_named(topics).items():
        where = topic.servers or servers
        if where is None:
            error = ValueError(f"a cluster is known by its servers, and topic {topic.name!r} has none")
            error.add_note("Pass servers='host:9092', or a Topic with servers of its own.")
            raise error
        whole[name] = Topic(topic.name, where, {**(config or {}), **topic.config})
    return whole


def format_named(form: str | Avro | Debezium) -> Format:
    """How values are written, by a word or as a value with settings."""
    match form:
        case Avro() | Debezium():
            return form
        case "debezium":
            return Debezium()
        case "json":
            return Json()
        case "arrow":
            return Arrow()
    error = ValueError(
        f"values are json, arrow, debezium, or an Avro with its schema, {form!r} is none of them"
        f"{did_you_mean(form, ('json', 'arrow', 'debezium', 'avro'))}"
    )
    error.add_note("For Avro pass format=ab.Avro(schema='{…}').")
    raise error


def beginning(start: str | datetime) -> str:
    """Where reading begins, as text."""
    if isinstance(start, datetime):
        return start.astimezone().isoformat()
    if start not in ("earliest", "latest"):
        meant = did_you_mean(start, ("earliest", "latest"))
        error = ValueError(f"a new checkpoint begins earliest, latest or at a time, not {start!r}{meant}")
        error.add_note("A time is a datetime.")
        raise error
    return start


def seconds(patience: int | timedelta | str) -> float:
    """How long a cluster is waited for."""
    value = span(patience, "patience")
    return value.total_seconds() if isinstance(value, timedelta) else float(value or 0)
