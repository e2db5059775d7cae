"""Brokers of Kafka: whether they answer, and whether they can be reached where they say they are."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING

from anabranch.cli.health.finding import Asked, Finding, ok, trouble

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

SECONDS = 5


def brokers(asked: Asked) -> Iterator[Finding]:
    """Each broker that was asked for."""
    for address in asked.brokers:
        yield _broker(address)


def _broker(address: str) -> Finding:
    try:
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient
    except ImportError as reason:
        return trouble("broker", f"{address} cannot be asked: {reason}", "pip install 'anabranch[kafka]'")
    heard: list[KafkaError] = []
    admin = AdminClient({"bootstrap.servers": address, "log_level": 0, "error_cb": heard.append})
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
        "between. A broker that wants TLS or a password does not answer a plain question either.",
    )


def _answers(host: str, port: int) -> bool:
    try:
        with socket.create_connection((host, port), SECONDS):
            return True
    except OSError:
        return False
