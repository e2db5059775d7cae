"""What is in a topic, as any consumer reads it."""

import json
from typing import Any

from confluent_kafka import Consumer, KafkaError, TopicPartition


def records(servers: str, topic: str, *, partitions: int = 1) -> list[tuple[int, dict[str, Any]]]:
    """The time, in milliseconds, and the value of every committed record, partition by partition."""
    settings = {"bootstrap.servers": servers, "group.id": "scene", "enable.partition.eof": True}
    settings |= {"isolation.level": "read_committed", "enable.auto.commit": False, "log_level": 0}
    consumer, found = Consumer(settings), []
    try:
        for partition in range(partitions):
            consumer.assign([TopicPartition(topic, partition, 0)])
            while True:
                message = consumer.poll(60)
                if message is None:
                    raise OSError(f"the broker on {servers} does not answer")
                if message.error() is None:
                    found.append((message.timestamp()[1], json.loads(message.value())))
                elif message.error().code() == KafkaError._PARTITION_EOF:
                    break
                else:
                    raise OSError(str(message.error()))
    finally:
        consumer.close()
    return found
