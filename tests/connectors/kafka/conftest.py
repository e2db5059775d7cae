"""Topics of their own for each test, and rows in them."""

import itertools
import json

import pytest

_numbers = itertools.count()


@pytest.fixture
def topic(broker):
    """Makes a topic that nobody has used."""

    def made(partitions=1, **config):
        name = f"topic-{next(_numbers)}"
        broker.make_topic(name, partitions=partitions, config=config)
        return name

    return made


@pytest.fixture
def send(broker):
    """Sends values (objects as JSON, bytes and None as they are) to a partition of a topic."""
    from confluent_kafka import Producer

    def sent(topic, *values, partition=0, key=None, timestamp=0):
        producer = Producer({"bootstrap.servers": broker.servers, "log_level": 0})
        while partition not in producer.list_topics(topic, 60).topics[topic].partitions:
            pass  # a broker does not know of a partition at once that has just been made
        failures = []
        for value in values:
            as_is = value is None or isinstance(value, bytes)
            body = value if as_is else json.dumps(value).encode()
            told = {"on_delivery": lambda error, _: error and failures.append(error)}
            producer.produce(topic, body, key, partition, timestamp=timestamp, **told)
        assert (producer.flush(60), failures) == (0, [])

    return sent
