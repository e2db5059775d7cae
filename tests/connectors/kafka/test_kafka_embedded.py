"""Topics as sources of plans, without Spark."""

import threading
from collections import Counter

import pytest

import anabranch as ab
from anabranch import Quarantine, Relation, col
from anabranch.cli.main import main
from anabranch.connectors.kafka.cluster import TopicError

ROOMS = {"room": "string", "at": "int64"}
HEARD = {**ROOMS, "who": "string"}


def events_of(run):
    relation = Relation()
    for batch in run:
        relation.apply(batch)
    return Counter((event.payload["room"], event.start) for event in relation.events())


def test_topics_are_replicas_read_to_their_ends(broker, topic, send):
    east, west = topic(partitions=2), topic()
    send(east, {"room": "A", "at": 1}, {"room": "B", "at": 20}, partition=0)
    send(east, {"room": "C", "at": 2}, partition=1)
    send(west, {"room": "A", "at": 1}, {"room": "D", "at": 21})
    heard = ab.source("heard", HEARD, start="at", disorder=2, replica="who", lossy=True)
    told = []
    door = ab.kafka({"east": east, "west": west}, servers=broker.servers)
    run = ab.run(heard.filter(col("room") != "D").merge(), {"heard": door}, progress=told.append)
    assert events_of(run) == Counter([("A", 1), ("B", 20), ("C", 2)])
    assert told[-1] == 1.0


def test_nothing_is_stable_before_every_partition_has_spoken(broker, topic, send):
    name = topic(partitions=3)
    send(name, *({"room": "A", "at": at} for at in range(50)), partition=0)
    send(name, *({"room": "B", "at": at} for at in range(50)), partition=2)
    levels = ab.source("levels", ROOMS, start="at", disorder=0)
    found = events_of(ab.run(levels.final(), {"levels": ab.kafka(name, servers=broker.servers)}))
    assert found == Counter([(room, at) for room in "AB" for at in range(50)])


@pytest.mark.parametrize("live", [False, True])
def test_every_partition_is_read_where_rows_say_whose_they_are(broker, topic, send, live):
    name = topic(partitions=3)
    for partition in range(3):
        send(name, {"room": "ABC"[partition], "at": 5, "who": "east"}, partition=partition)
    heard = ab.source("heard", HEARD, start="at", disorder=2, replica="who", lossy=True)
    found = Counter()
    with ab.run(heard.merge(), {"heard": ab.kafka(name, servers=broker.servers)}, live=live) as run:
        while found.total() < 3:
            found += events_of([next(run)])
    assert found == Counter([("A", 5), ("B", 5), ("C", 5)])


def test_a_live_topic_is_followed_until_another_thread_stops_the_run(broker, topic, send):
    name = topic()
    send(name, {"room": "A", "at": 1})
    levels = ab.source("levels", ROOMS, start="at")
    run = ab.run(levels, {"levels": ab.kafka(name, servers=broker.servers)}, live=True)
    next(run)
    stopper = threading.Thread(target=run.stop)
    stopper.start()
    assert next(run, None) is None
    stopper.join()


def test_a_value_that_is_no_row_is_set_aside_with_its_partition_and_offset(broker, topic, send):
    name = topic()
    send(name, {"room": "A", "at": 9}, b"nothing", {"room": "late", "at": 1})
    aside = Quarantine()
    levels = ab.source("levels", ROOMS, start="at", disorder=0)
    door = ab.kafka(name, servers=broker.servers)
    assert events_of(ab.run(levels, {"levels": door}, on_invalid=aside)) == Counter([("A", 9), ("late", 1)])
    assert [one.place for one in aside.violations] == [f"{name}[0]@1"]


def test_key_and_time_of_a_record_are_columns(broker, topic, send):
    name = topic()
    send(name, {"at": 1}, key="A", timestamp=5000)
    columns = {"at": "int64", "room": "string", "heard": "timestamp[us, tz=UTC]"}
    levels = ab.source("levels", columns, start="at")
    door = ab.kafka(name, servers=broker.servers, key="room", timestamp="heard")
    run = ab.run(levels.select("room"), {"levels": door})
    assert events_of(run) == Counter([("A", 1)])


def test_a_live_topic_is_followed(broker, topic, send):
    name = topic()
    send(name, {"room": "A", "at": 1})
    run = ab.run(
        ab.source("levels", ROOMS, start="at"), {"levels": ab.kafka(name, servers=broker.servers)}, live=True
    )
    assert [e.payload["room"] for e in next(run).elements()] == ["A"]
    send(name, {"room": "B", "at": 2})
    assert [e.payload["room"] for e in next(run).elements()] == ["B"]
    run.close()


def test_a_topic_that_is_not_there_is_named(broker):
    door = ab.kafka("no-such-topic", servers=broker.servers)
    with pytest.raises(TopicError, match="no-such-topic"):
        ab.run(ab.source("levels", ROOMS, start="at"), {"levels": door})


def test_several_topics_need_a_source_of_replicas(broker):
    door = ab.kafka(["a", "b"], servers=broker.servers)
    with pytest.raises(ab.PlanError, match="not of replicas"):
        ab.run(ab.source("levels", ROOMS, start="at"), {"levels": door})


def test_a_job_file_names_topics_as_replicas(broker, topic, send, tmp_path, capsys):
    east, west = topic(), topic()
    send(east, {"room": "A", "at": 1}, b"nothing")
    send(west, {"room": "B", "at": 2})
    (tmp_path / "job.toml").write_text(
        "[sources.heard]\n"
        'columns = { room = "string", at = "int64", replica = "string" }\n'
        'start = "at"\ndisorder = 2\nreplica = "replica"\nlossy = true\n'
        f'kafka = {{ servers = "{broker.servers}", topics = {{ east = "{east}", west = "{west}" }} }}\n'
        '[plan]\nsteps = ["merge"]\n[sink]\nfile = "out.jsonl"\n'
    )
    assert main(["run", str(tmp_path / "job.toml"), "--engine", "embedded", "--check"]) == 0
    assert main(["run", str(tmp_path / "job.toml"), "--engine", "embedded"]) == 0
    assert events_of(ab.read(str(tmp_path / "out.jsonl"))) == Counter([("A", 1), ("B", 2)])
    assert "3 in, 2 out, 1 malformed" in capsys.readouterr().err
    (kept,) = (tmp_path / "job-quarantine").iterdir()
    assert f"{east}[0]@1" in kept.read_text()


def test_a_check_asks_for_the_topics_of_a_plan(broker, tmp_path, capsys):
    (tmp_path / "job.toml").write_text(
        '[sources.heard]\ncolumns = { room = "string", at = "int64" }\nstart = "at"\n'
        f'kafka = {{ servers = "{broker.servers}", topics = "no-such-topic" }}\n[plan]\n'
    )
    assert main(["run", str(tmp_path / "job.toml"), "--engine", "embedded", "--check"]) == 2
    told = capsys.readouterr().err
    assert "no-such-topic" in told
    assert "source 'heard'" in told
