"""Brokers of Kafka: whether they answer, are reached where they say they are, and have a job's topics."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from anabranch.cli.doctor.finding import Finding, Request, failed, ok, trouble

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

    from anabranch.connectors.kafka.cluster import Topic

SECONDS = 5


def brokers(asked: Request) -> Iterator[Finding]:
    """Each broker that was asked for."""
    for address in asked.brokers:
        yield _broker(address, asked.broker_config)


def topics(asked: Request) -> Iterator[Finding]:
    """Each topic of the job, asked for with the settings that the job has for it."""
    if asked.job is None:
        return
    from anabranch.jobs.ends import SourceSection

    for source in asked.job.ends.values():
        if isinstance(source, SourceSection) and source.kafka is not None:
            for topic in source.kafka.asked():
                yield _topic("source", topic)
    if asked.job.sink.kafka is not None:
        yield _topic("sink", asked.job.sink.kafka.asked())


def _topic(what: str, topic: Topic) -> Finding:
    from anabranch.connectors.kafka.cluster import Cluster, check_packages

    try:
        check_packages()
        count = len(Cluster(topic, SECONDS).partitions())
        return ok(what, f"topic {topic.name} at {topic.servers} has {count} partitions")
    except (ImportError, OSError, ValueError) as error:
        return failed(what, error)


def _broker(address: str, config: Mapping[str, str]) -> Finding:
    try:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient
    except ImportError as reason:
        return trouble("broker", f"{address} cannot be asked: {reason}", "pip install 'anabranch[kafka]'")
    heard: list[KafkaError] = []
    try:
        admin = AdminClient(
            {"bootstrap.servers": address, "log_level": 0, "error_cb": heard.append, **config}
        )
    except KafkaException as reason:
        words = reason.args[0].str()
        return trouble("broker", f"{address} cannot be asked: {words}", "Mend --broker-config.")
    try:
        found = admin.list_topics(timeout=SECONDS)
    except KafkaException as reason:
        admin.poll(0)
        return _silent(address, [*heard, reason.args[0]])
    lost = [f"{one.host}:{one.port}" for one in found.brokers.values() if not _answers(one.host, one.port)]
    if lost:
        return trouble(
            "broker",
            f"{address} answers, and sends clients to {', '.join(lost)}, which cannot be reached from here",
            "Set advertised.listeners of the broker to an address that clients can reach.",
        )
    return ok("broker", f"{address} answers: {len(found.brokers)} brokers, {len(found.topics)} topics")


def _silent(address: str, errors: list[KafkaError]) -> Finding:
    """The first error says why; those after it say that nobody is left."""
    error = errors[0]
    return trouble(
        "broker",
        f"{address} does not answer within {SECONDS} s: {error.name().lstrip('_')}, {error.str()}",
        "See that the broker runs, that host and port are those it listens on, and that no firewall is",
        "between. A broker that wants TLS or a password does not answer a plain question either: give",
        "--broker-config security.protocol=SASL_SSL and what else it wants.",
    )


def _answers(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), SECONDS):
            return True
    except OSError:
        return False
