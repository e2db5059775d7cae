"""Runs that go on from the offsets up to which topics had been read."""

import random
from collections import Counter

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions

import anabranch as ab
from anabranch import Insert
from anabranch.connectors.kafka import embedded
from anabranch.connectors.kafka.cluster import TopicError
from anabranch.errors import AnabranchError

ROOMS = {"room": "string", "at": "int64"}


def plan(**more):
    return ab.source("levels", ROOMS, start="at", **more)


def starts_of(batches):
    return [one.start for batch in batches for one in batch.elements() if isinstance(one, Insert)]


def rows(*starts):
    return [{"room": "A", "at": at} for at in starts]


@pytest.mark.parametrize("seed", range(3))
def test_a_topic_is_gone_on_with_wherever_a_run_is_stopped(broker, topic, send, monkeypatch, seed):
    monkeypatch.setattr(embedded, "ROWS", 7)
    rng = random.Random(seed)
    name, starts = topic(partitions=2), iter(range(10_000))
    door = ab.kafka(name, servers=broker.servers)
    state, written, found = None, 0, []
    for _ in range(8):
        for _ in range(rng.randint(0, 2)):
            sent = [next(starts) for _ in range(rng.choice([1, 5, 30]))]
            broken = [b"nothing"] * rng.randint(0, 9)
            send(name, *rows(*sent), *broken, partition=rng.randint(0, 1))
            written += len(sent)
        live = rng.random() < 0.7
        settings = {"live": live, "finish": False, "state": state, "on_invalid": ab.Drop()}
        with ab.run(plan(), {"levels": door}, **settings) as run:
            while len(found) < written and rng.random() < 0.7:
                found += starts_of([next(run)])
            state = run.state
    found += starts_of(ab.run(plan(), {"levels": door}, state=state, on_invalid=ab.Drop()))
    assert Counter(found) == Counter(range(written))


def test_a_topic_that_was_begun_at_its_end_misses_nothing_between_two_runs(broker, topic, send):
    name = topic()
    send(name, *rows(1))
    door = ab.kafka(name, servers=broker.servers, start="latest")
    state = ab.run(plan(), {"levels": door}).state
    send(name, *rows(2))
    assert starts_of(ab.run(plan(), {"levels": door}, state=state)) == [2]


def test_a_topic_that_was_made_anew_is_named(broker, topic, send):
    name = topic()
    send(name, *rows(1))
    door = ab.kafka(name, servers=broker.servers)
    run = ab.run(plan(), {"levels": door}, finish=False)
    assert starts_of(run) == [1]
    broker.drop_topic(name)
    broker.make_topic(name, partitions=1)
    with pytest.raises(TopicError, match="another has its name now"):
        ab.run(plan(), {"levels": door}, state=run.state)


def test_a_partition_that_was_added_is_read_from_its_first_record(broker, topic, send):
    name = topic()
    send(name, *rows(1))
    door = ab.kafka(name, servers=broker.servers, start="latest")
    run = ab.run(plan(), {"levels": door}, finish=False)
    assert starts_of(run) == []
    admin = AdminClient({"bootstrap.servers": broker.servers, "log_level": 0})
    admin.create_partitions([NewPartitions(name, 2)])[name].result(30)
    send(name, *rows(2), partition=1)
    assert starts_of(ab.run(plan(), {"levels": door}, state=run.state)) == [2]


def test_another_topic_is_another_input(broker, topic, send):
    one, other = topic(), topic()
    run = ab.run(plan(), {"levels": ab.kafka(one, servers=broker.servers)}, finish=False)
    list(run)
    with pytest.raises(AnabranchError, match="no such input is given"):
        ab.run(plan(), {"levels": ab.kafka(other, servers=broker.servers)}, state=run.state)
